# Sources of src/tools; see Makefile.am for the variables.
