# Sources of test/gtest/ucs/exec/kernels; see Makefile.am for the variables.
