# Sources of test/gtest/ucs/layout; see Makefile.am for the variables.
