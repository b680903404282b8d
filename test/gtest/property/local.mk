# Sources of test/gtest/property; see Makefile.am for the variables.
