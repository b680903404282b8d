# CUDA: an nvcc counts only if it compiles a kernel and the result links with the static runtime.
AC_DEFUN([CUDA_NC_CHECK_CUDA], [
    AC_ARG_WITH([cuda],
                [AS_HELP_STRING([--with-cuda=DIR|auto|no],
                                [CUDA toolkit: DIR/bin/nvcc (auto: nvcc on PATH, /usr/local/cuda)])],
                [], [with_cuda=auto])
    AC_ARG_WITH([cuda-arch],
                [AS_HELP_STRING([--with-cuda-arch="80 90"],
                                [machine code to embed (default: all that nvcc knows of 75 80 86
                                 89 90 100 120)])],
                [], [with_cuda_arch=])
    AS_IF([test "x$with_cuda" = xyes], [with_cuda=auto])
    have_cuda=no NVCC= CUDA_CPPFLAGS= CUDA_LDFLAGS= CUDA_LIBS= NVCC_ARCH=
    AS_CASE([$with_cuda],
        [no], [],
        [auto], [
            cuda_nc_on_path=`command -v nvcc 2>/dev/null`
            AS_IF([test -n "$cuda_nc_on_path"],
                  [cuda_nc_on_path=`readlink -f "$cuda_nc_on_path"`
                   _CUDA_NC_TRY([`dirname "$cuda_nc_on_path" | $SED 's,/bin$,,'`])])
            AS_IF([test "x$have_cuda" = xno], [_CUDA_NC_TRY([/usr/local/cuda])])],
        [_CUDA_NC_TRY([$with_cuda])
         AS_IF([test "x$have_cuda" = xno],
               [AC_MSG_ERROR([the nvcc of $with_cuda cannot build a program; see config.log])])])

    cuda_nc_cuda_summary=$have_cuda
    AS_IF([test "x$have_cuda" = xyes], [
        AC_DEFINE([HAVE_CUDA], [1], [The CUDA backend is built])
        _CUDA_NC_ARCHITECTURES
        cuda_nc_cuda_summary="$NVCC ($with_cuda_arch)"])
    AM_CONDITIONAL([HAVE_CUDA], [test "x$have_cuda" = xyes])
    AC_SUBST([with_cuda])
    AC_SUBST([with_cuda_arch])
    AC_SUBST([NVCC])
    AC_SUBST([NVCC_ARCH])
    AC_SUBST([CUDA_CPPFLAGS])
    AC_SUBST([CUDA_LDFLAGS])
    AC_SUBST([CUDA_LIBS])
])

# _CUDA_NC_TRY(DIR): takes the toolkit in DIR if a test program builds.
AC_DEFUN([_CUDA_NC_TRY], [
    cuda_nc_dir="$1"
    AC_MSG_CHECKING([for a working nvcc in $cuda_nc_dir])
    NVCC="$cuda_nc_dir/bin/nvcc"
    CUDA_CPPFLAGS="-isystem $cuda_nc_dir/include"
    CUDA_LIBS="-lcudart_static -ldl -lrt -lpthread"
    CUDA_LDFLAGS=
    for cuda_nc_lib in "$cuda_nc_dir/lib64" "$cuda_nc_dir/lib" /usr/lib/x86_64-linux-gnu; do
        AS_IF([test -z "$CUDA_LDFLAGS" && test -f "$cuda_nc_lib/libcudart_static.a"],
              [CUDA_LDFLAGS="-L$cuda_nc_lib"])
    done
    cat >conftest.cu <<'_ACEOF'
#include <cuda_runtime.h>
__global__ void set(int *p) { *p = 1; }
int main() { int *p = nullptr; set<<<1, 1>>>(p); return cudaGetLastError() == cudaSuccess; }
_ACEOF
    AS_IF([test -x "$NVCC" &&
           "$NVCC" -ccbin "${CXX%% *}" -std=c++17 -c conftest.cu -o conftest.$ac_objext >&AS_MESSAGE_LOG_FD 2>&1 &&
           $CXX $LDFLAGS conftest.$ac_objext -o conftest$ac_exeext $CUDA_LDFLAGS $CUDA_LIBS >&AS_MESSAGE_LOG_FD 2>&1],
          [have_cuda=yes],
          [have_cuda=no NVCC= CUDA_CPPFLAGS= CUDA_LDFLAGS= CUDA_LIBS=])
    rm -f conftest.cu conftest.$ac_objext conftest$ac_exeext
    AC_MSG_RESULT([$have_cuda])
])

# Machine code for each architecture, no PTX: that of a new nvcc may be too new for a driver.
AC_DEFUN([_CUDA_NC_ARCHITECTURES], [
    AS_IF([test -z "$with_cuda_arch"], [
        cuda_nc_known=`"$NVCC" --list-gpu-code 2>/dev/null | $SED -n 's/^sm_//p' | tr '\n' ' '`
        for cuda_nc_arch in 75 80 86 89 90 100 120; do
            AS_CASE([" $cuda_nc_known "],
                    [*" $cuda_nc_arch "*], [with_cuda_arch="$with_cuda_arch $cuda_nc_arch"])
        done])
    with_cuda_arch=`echo $with_cuda_arch`
    for cuda_nc_arch in $with_cuda_arch; do
        NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$cuda_nc_arch,code=sm_$cuda_nc_arch"
    done
    AS_IF([test -z "$NVCC_ARCH"], [AC_MSG_ERROR([$NVCC knows none of the architectures])])
])
