# Language level, warnings, visibility.
AC_DEFUN([CUDA_NC_COMPILER], [
    AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors])],
                  [], [enable_werror=no])
    CUDA_NC_WARNINGS="-Wall -Wextra -Wshadow"
    AS_IF([test "x$enable_werror" = xyes], [CUDA_NC_WARNINGS="$CUDA_NC_WARNINGS -Werror"])
    AC_SUBST([CUDA_NC_WARNINGS])

    AC_LANG_PUSH([C++])
    AC_MSG_CHECKING([whether $CXX compiles C++17])
    save_CXXFLAGS="$CXXFLAGS"
    CXXFLAGS="$CXXFLAGS -std=c++17"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <optional>]],
                                       [[if (std::optional<int> x = 1; x) return *x - 1;]])],
                      [AC_MSG_RESULT([yes])],
                      [AC_MSG_RESULT([no]); AC_MSG_ERROR([a C++17 compiler is needed])])
    AC_MSG_CHECKING([whether $CXX knows -fno-gnu-unique])
    CXXFLAGS="$save_CXXFLAGS -Werror -fno-gnu-unique"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
                      [CUDA_NC_NO_UNIQUE=-fno-gnu-unique; AC_MSG_RESULT([yes])],
                      [CUDA_NC_NO_UNIQUE=; AC_MSG_RESULT([no])])
    AC_SUBST([CUDA_NC_NO_UNIQUE])
    CXXFLAGS="$save_CXXFLAGS"
    AC_LANG_POP([C++])
])

# --enable-asan: address and undefined behaviour; --enable-tsan: data races.
AC_DEFUN([CUDA_NC_SANITIZERS], [
    AC_ARG_ENABLE([asan],
                  [AS_HELP_STRING([--enable-asan], [address and undefined behaviour sanitizers])],
                  [], [enable_asan=no])
    AC_ARG_ENABLE([tsan], [AS_HELP_STRING([--enable-tsan], [thread sanitizer])],
                  [], [enable_tsan=no])
    CUDA_NC_SANITIZE=
    cuda_nc_sanitizers=no
    AS_IF([test "x$enable_asan" = xyes && test "x$enable_tsan" = xyes],
          [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])
    AS_IF([test "x$enable_asan" = xyes],
          [CUDA_NC_SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all"
           cuda_nc_sanitizers="address undefined"])
    AS_IF([test "x$enable_tsan" = xyes],
          [CUDA_NC_SANITIZE="-fsanitize=thread"
           cuda_nc_sanitizers=thread])
    AS_IF([test -n "$CUDA_NC_SANITIZE"],
          [CUDA_NC_SANITIZE="$CUDA_NC_SANITIZE -fno-omit-frame-pointer"])
    AC_SUBST([CUDA_NC_SANITIZE])
])
