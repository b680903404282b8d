# Sources of src/hooks; see Makefile.am for the variables.
