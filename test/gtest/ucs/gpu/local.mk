# Sources of test/gtest/ucs/gpu; see Makefile.am for the variables.
