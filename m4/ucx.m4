# UCX: its public headers are needed; its libraries serve the in-process tests only. The product
# itself links to no UCX library.
AC_DEFUN([CUDA_NC_CHECK_UCX], [
    AC_ARG_WITH([ucx], [AS_HELP_STRING([--with-ucx=DIR], [UCX installation: DIR/include, DIR/lib])],
                [], [with_ucx=])
    UCX_CPPFLAGS= UCX_LDFLAGS= UCX_LIBS="-lucp -luct -lucs" UCX_LIBDIR=
    AS_CASE([$with_ucx],
        [''|yes], [
            cuda_nc_ucx_prefix=`$PKG_CONFIG --variable=prefix ucx 2>/dev/null`
            AS_IF([test -n "$cuda_nc_ucx_prefix" && test "$cuda_nc_ucx_prefix" != /usr],
                  [UCX_CPPFLAGS="-isystem $cuda_nc_ucx_prefix/include"
                   UCX_LIBDIR="$cuda_nc_ucx_prefix/lib"])],
        [no], [AC_MSG_ERROR([the UCX headers are needed])],
        [UCX_CPPFLAGS="-isystem $with_ucx/include"
         UCX_LIBDIR="$with_ucx/lib"])
    AS_IF([test -n "$UCX_LIBDIR"], [UCX_LDFLAGS="-L$UCX_LIBDIR -Wl,-rpath,$UCX_LIBDIR"])

    save_CPPFLAGS="$CPPFLAGS" save_LDFLAGS="$LDFLAGS" save_LIBS="$LIBS"
    CPPFLAGS="$CPPFLAGS $UCX_CPPFLAGS" LDFLAGS="$LDFLAGS $UCX_LDFLAGS"
    AC_CHECK_HEADER([ucp/api/ucp.h], [],
                    [AC_MSG_ERROR([ucp/api/ucp.h not found: name a UCX by --with-ucx=DIR])])
    AC_MSG_CHECKING([for the UCX libraries (tests only)])
    LIBS="$UCX_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <ucp/api/ucp.h>]],
                                    [[unsigned a, b, c; ucp_get_version(&a, &b, &c);]])],
                   [have_ucx_libs=yes], [have_ucx_libs=no])
    AC_MSG_RESULT([$have_ucx_libs])
    CPPFLAGS="$save_CPPFLAGS" LDFLAGS="$save_LDFLAGS" LIBS="$save_LIBS"

    cuda_nc_ucx_summary="${with_ucx:-system} (libraries for tests: $have_ucx_libs)"
    AM_CONDITIONAL([HAVE_UCX_LIBS], [test "x$have_ucx_libs" = xyes])
    AC_SUBST([with_ucx])
    AC_SUBST([UCX_CPPFLAGS])
    AC_SUBST([UCX_LDFLAGS])
    AC_SUBST([UCX_LIBS])
    AC_SUBST([UCX_LIBDIR])
])
