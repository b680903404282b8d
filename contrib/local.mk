EXTRA_DIST += \
	.ci/run \
	contrib/check.sh \
	contrib/check_lib.sh \
	contrib/demo.sh \
	contrib/env.sh \
	contrib/gtest_lines.py \
	contrib/lib.sh \
	contrib/plot/perftest_plot.py \
	contrib/setup.sh \
	test/abi/check_abi.py \
	test/abi/mirror.cc \
	test/scripts/run.sh \
	test/uct/batch.hpp \
	test/uct/endpoints.hpp \
	test/uct/closing.cc \
	test/uct/hosts.hpp \
	test/uct/matrix.cc \
	test/uct/messages.hpp \
	test/uct/options.hpp \
	test/uct/plan.hpp \
	test/uct/run.sh \
	test/scripts/vector.cc \
	docs/manual.md
EXTRA_DIST += contrib/demo_report.py contrib/timeline.py
