# CUDA_NC_CHECK_JSON: the header-only nlohmann-json. The library cannot be built without it: it
# reads a machine's figures and writes timelines with it, and the tools write their results.
AC_DEFUN([CUDA_NC_CHECK_JSON], [
    AC_LANG_PUSH([C++])
    save_CXXFLAGS="$CXXFLAGS"
    CXXFLAGS="$CXXFLAGS -std=c++17"
    AC_MSG_CHECKING([for nlohmann-json 3.9 or later])
    AC_COMPILE_IFELSE(
        [AC_LANG_PROGRAM([[#include <nlohmann/json.hpp>]], [[nlohmann::ordered_json any;]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([nlohmann/json.hpp 3.9 or later was not found; please install nlohmann-json3-dev])])
    CXXFLAGS="$save_CXXFLAGS"
    AC_LANG_POP([C++])
])
