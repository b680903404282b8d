# An MPI's C++ compiler: nc_perftest_mpi is built where one is found. Nothing else needs an MPI.
AC_DEFUN([CUDA_NC_CHECK_MPI], [
    AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=MPICXX|no],
                                       [compiler of the MPI that nc_perftest measures (default: mpicxx)])],
                [], [with_mpi=yes])
    have_mpi=no MPICXX=mpicxx
    AS_CASE([$with_mpi], [no|yes], [], [MPICXX=$with_mpi])
    AS_IF([test "x$with_mpi" != xno], [
        AC_MSG_CHECKING([whether $MPICXX builds MPI programs])
        cat >conftest.cc <<'_ACEOF'
#include <mpi.h>
int main(int argc, char **argv) { return MPI_Init(&argc, &argv) != MPI_SUCCESS; }
_ACEOF
        AS_IF([$MPICXX -std=c++17 conftest.cc -o conftest$ac_exeext >&AS_MESSAGE_LOG_FD 2>&1],
              [have_mpi=yes])
        rm -f conftest.cc conftest$ac_exeext
        AC_MSG_RESULT([$have_mpi])
        AS_CASE([$have_mpi:$with_mpi], [yes:*|no:yes], [],
                [AC_MSG_ERROR([$MPICXX does not build MPI programs; see config.log])])])
    cuda_nc_mpi_summary=$have_mpi
    AS_IF([test "x$have_mpi" = xyes], [cuda_nc_mpi_summary=$MPICXX])
    AM_CONDITIONAL([HAVE_MPI], [test "x$have_mpi" = xyes])
    AC_SUBST([MPICXX])
])
