# Sources of bench; see Makefile.am for the variables.
