# The MPI tests are built with each MPI's compiler, by test/mpi/run.sh.
EXTRA_DIST += \
	test/mpi/loading.sh test/mpi/loading/rtld_local.py test/mpi/loading/two_workers.cc \
	test/mpi/operations/absolute.cc test/mpi/operations/blocking.cc \
	test/mpi/operations/collective.hpp test/mpi/operations/collectives.cc \
	test/mpi/operations/communicators.cc test/mpi/operations/deadline.cc \
	test/mpi/operations/deadline.hpp test/mpi/operations/exchange.cc \
	test/mpi/operations/exchange.hpp test/mpi/operations/fork.cc \
	test/mpi/operations/harness.hpp test/mpi/operations/large.cc test/mpi/operations/main.cc \
	test/mpi/operations/message_batch.cc test/mpi/operations/message_batch.hpp \
	test/mpi/operations/nonblocking.cc test/mpi/operations/pack.cc \
	test/mpi/operations/partitioned.cc test/mpi/operations/persistent.cc \
	test/mpi/operations/probe.cc test/mpi/operations/samples.cc \
	test/mpi/operations/samples.hpp test/mpi/operations/threads.cc \
	test/mpi/operations/typed_buffer.cc test/mpi/operations/typed_buffer.hpp \
	test/mpi/operations/typed_collectives.cc test/mpi/operations/unequal.cc \
	test/mpi/operations/varying_collectives.cc test/mpi/programs.mk \
	test/mpi/random_types/arena.hpp test/mpi/random_types/batch.cc \
	test/mpi/random_types/batch.hpp test/mpi/random_types/exchange.cc \
	test/mpi/random_types/call_arguments.hpp test/mpi/random_types/exchange.hpp \
	test/mpi/random_types/local.cc test/mpi/random_types/local.hpp \
	test/mpi/random_types/main.cc \
	test/mpi/random_types/message.cc test/mpi/random_types/message.hpp test/mpi/run.sh \
	test/mpi/stock_wrong_bytes.cc test/mpi/support/array_types.cc \
	test/mpi/support/basic_types.cc test/mpi/support/made_type.cc \
	test/mpi/support/made_type.hpp test/mpi/support/memory.hpp test/mpi/support/random.hpp \
	test/mpi/support/random_type.cc test/mpi/support/random_type.hpp \
	test/mpi/support/type_map.hpp
