# CUDA_NC_CHECK_TOOLS: the tools are built where CLI11 and fmt (headers alone)
# are found.
AC_DEFUN([CUDA_NC_CHECK_TOOLS], [
    AC_ARG_ENABLE([tools], [AS_HELP_STRING([--disable-tools], [do not build nc_info and nc_perftest])],
                  [], [enable_tools=yes])
    AS_IF([test "x$enable_tools" != xno], [
        AC_LANG_PUSH([C++])
        save_CXXFLAGS="$CXXFLAGS"
        CXXFLAGS="$CXXFLAGS -std=c++17"
        AC_CHECK_HEADERS([CLI/CLI.hpp fmt/core.h], [],
                         [enable_tools="no (libcli11-dev or libfmt-dev is missing)"])
        CXXFLAGS="$save_CXXFLAGS"
        AC_LANG_POP([C++])
    ])
    AM_CONDITIONAL([ENABLE_TOOLS], [test "x$enable_tools" = xyes])
])
