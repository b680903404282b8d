# Google Benchmark: micro benchmarks (`make bench') are built where it is found.
AC_DEFUN([CUDA_NC_CHECK_BENCH], [
    AC_LANG_PUSH([C++])
    AC_CHECK_HEADER([benchmark/benchmark.h], [have_benchmark=yes], [have_benchmark=no])
    AC_LANG_POP([C++])
    AM_CONDITIONAL([HAVE_BENCHMARK], [test "x$have_benchmark" = xyes])
    AC_SUBST([BENCHMARK_LIBS], ["-lbenchmark -lpthread"])
])
