# CUDA_NC_CHECK_JSON: the header-only nlohmann-json, by which the figures of a machine are kept.
AC_DEFUN([CUDA_NC_CHECK_JSON], [
    AC_LANG_PUSH([C++])
    save_CXXFLAGS="$CXXFLAGS"
    CXXFLAGS="$CXXFLAGS -std=c++17"
    AC_CHECK_HEADER([nlohmann/json.hpp], [],
        [AC_MSG_ERROR([nlohmann/json.hpp was not found; please install nlohmann-json3-dev (3.9 or later)])])
    CXXFLAGS="$save_CXXFLAGS"
    AC_LANG_POP([C++])
])
