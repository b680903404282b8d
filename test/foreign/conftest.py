"""Hours of others' tests: with --full alone."""
from support import mpi

collect_ignore = [] if mpi.FULL else ["test_foreign.py"]
