# Sources of contrib; see Makefile.am for the variables.
