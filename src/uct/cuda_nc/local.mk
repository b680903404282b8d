# Sources of src/uct/cuda_nc; see Makefile.am for the variables.
