# Sources of test/gtest/ucs/worklist; see Makefile.am for the variables.
