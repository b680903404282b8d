# Whole folders: a new script, document, result or test of these needs no line here.
EXTRA_DIST += .ci/run contrib docs bench/results test/abi test/mpi test/scripts test/uct
dist-hook:
	find $(distdir) -name __pycache__ -prune -exec rm -rf {} +
