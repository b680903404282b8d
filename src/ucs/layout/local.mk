# Sources of src/ucs/layout; see Makefile.am for the variables.
