# Sources of src/ucs/exec/kernels; see Makefile.am for the variables.
