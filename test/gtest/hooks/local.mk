# Sources of test/gtest/hooks; see Makefile.am for the variables.
