# GoogleTest: unit tests are built where it is found.
AC_DEFUN([CUDA_NC_CHECK_GTEST], [
    AC_ARG_WITH([gtest], [AS_HELP_STRING([--with-gtest=DIR|no], [GoogleTest, for `make check'])],
                [], [with_gtest=yes])
    GTEST_CPPFLAGS= GTEST_LIBS= have_gtest=no
    AS_IF([test "x$with_gtest" != xno], [
        AS_IF([test "x$with_gtest" != xyes],
              [GTEST_CPPFLAGS="-I$with_gtest/include" GTEST_LIBS="-L$with_gtest/lib"])
        GTEST_LIBS="$GTEST_LIBS -lgtest -lpthread"
        AC_LANG_PUSH([C++])
        save_CPPFLAGS="$CPPFLAGS" save_LIBS="$LIBS" save_CXXFLAGS="$CXXFLAGS"
        CPPFLAGS="$CPPFLAGS $GTEST_CPPFLAGS" LIBS="-lgtest_main $GTEST_LIBS $LIBS"
        CXXFLAGS="$CXXFLAGS -std=c++17"
        AC_MSG_CHECKING([for GoogleTest])
        AC_LINK_IFELSE([AC_LANG_SOURCE([[#include <gtest/gtest.h>
TEST(a, b) { EXPECT_EQ(1, 1); }]])], [have_gtest=yes])
        AC_MSG_RESULT([$have_gtest])
        CPPFLAGS="$save_CPPFLAGS" LIBS="$save_LIBS" CXXFLAGS="$save_CXXFLAGS"
        AC_LANG_POP([C++])])
    AM_CONDITIONAL([HAVE_GTEST], [test "x$have_gtest" = xyes])
    AC_SUBST([GTEST_CPPFLAGS])
    AC_SUBST([GTEST_LIBS])
])
