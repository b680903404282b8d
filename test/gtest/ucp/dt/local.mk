# Sources of test/gtest/ucp/dt; see Makefile.am for the variables.
