# CUDA_NC_CHECK_XXHASH: the header-only use of xxHash, which names layouts by content.
AC_DEFUN([CUDA_NC_CHECK_XXHASH], [
    AC_LANG_PUSH([C++])
    AC_CHECK_HEADER([xxhash.h], [],
        [AC_MSG_ERROR([xxhash.h was not found; please install libxxhash-dev (0.8 or later)])])
    AC_LANG_POP([C++])
])
