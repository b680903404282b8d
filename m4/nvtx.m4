# CUDA_NC_CHECK_NVTX: NVTX 3, headers of the CUDA toolkit. With them messages are ranges in NVIDIA's
# tools; without them, or without CUDA, that part is left out.
AC_DEFUN([CUDA_NC_CHECK_NVTX], [
    have_nvtx=no
    AS_IF([test "x$have_cuda" = xyes], [
        AC_LANG_PUSH([C++])
        save_CPPFLAGS="$CPPFLAGS"
        CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
        AC_CHECK_HEADER([nvtx3/nvToolsExt.h], [have_nvtx=yes])
        CPPFLAGS="$save_CPPFLAGS"
        AC_LANG_POP([C++])
    ])
    AS_IF([test "x$have_nvtx" = xyes],
          [AC_DEFINE([HAVE_NVTX], [1], [nvtx3/nvToolsExt.h is there])])
    AM_CONDITIONAL([HAVE_NVTX], [test "x$have_nvtx" = xyes])
])
