# Sources of src/ucs/worklist; see Makefile.am for the variables.
