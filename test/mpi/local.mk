# The MPI tests are built with each MPI's compiler, by test/mpi/run.sh.
EXTRA_DIST += test/mpi/run.sh test/mpi/programs.mk \
	test/mpi/random_types/arena.hpp test/mpi/random_types/batch.cc \
	test/mpi/random_types/batch.hpp test/mpi/random_types/exchange.cc \
	test/mpi/random_types/exchange.hpp test/mpi/random_types/main.cc \
	test/mpi/random_types/message.cc test/mpi/random_types/message.hpp \
	test/mpi/support/array_types.cc test/mpi/support/basic_types.cc \
	test/mpi/support/made_type.cc test/mpi/support/made_type.hpp test/mpi/support/memory.hpp \
	test/mpi/support/random.hpp test/mpi/support/random_type.cc \
	test/mpi/support/random_type.hpp test/mpi/support/type_map.hpp
