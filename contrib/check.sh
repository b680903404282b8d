#!/usr/bin/env bash
# Sets up what is missing, builds, and runs every test. The last line counts them:
# "N passed, N failed" or "N passed, N failed, N skipped".
#
# usage: contrib/check.sh [--ci] [--full]
#   --ci     warnings are errors, code format, address and undefined behaviour sanitizers
#   --full   all that, the thread sanitizer, CUDA 12, 64-bit Arm in an emulator, distcheck and
#            larger counts
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

ci=''
full=''
for argument; do
    case $argument in
    --ci) ci=1 ;;
    --full) ci=1 full=1 ;;
    *)
        sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
    esac
done

started=$SECONDS
# Line numbers are all that a test's stacks need of the debug information.
[ -z "$ci" ] || export CFLAGS='-O2 -g1' CXXFLAGS='-O2 -g1'
setup tests ${ci:+ci}
RESULTS=$(mktemp -d)
trap 'rm -rf "$RESULTS"' EXIT
. "$ROOT/contrib/check_lib.sh"
say "set-up and build took $((SECONDS - started)) s"

# Tests wait a lot, for time limits and for each other's processes: meanwhile the sanitizers' tree is
# compiled, at the lowest priority.
if [ -n "$ci" ]; then
    # Optimised less and with line numbers alone it compiles in half the time. The unit tests alone
    # run with it; all programs do with --full.
    targets=(unit_tests)
    [ -z "$full" ] || targets=(unit-test-programs)
    beside build-asan env_build '-O1 -g1' build_tree build-asan "${targets[@]}" -- --with-cuda=no \
        --enable-asan --enable-werror
    check_format
    check_shell
fi

# Test suites named *_gpu want a real GPU.
if ! have_gpu && [ "${CI:-}" = true ]; then
    say "no GPU here: suites named *_gpu are left out"
    export GTEST_FILTER='-*_gpu.*'
fi
# Everywhere on the simulated GPU; where there is a GPU, there as well.
export UCX_CUDA_NC_GPU=sim UCX_WARN_UNUSED_ENV_VARS=n
gtest unit_tests 900 "$LOCAL/build/unit_tests"
gtest ucp_tests 600 "$LOCAL/build/ucp_tests"
# Its made-up libraries are found from the build tree.
(cd "$LOCAL/build" && gtest hooks_tests 300 "$LOCAL/build/hooks_tests")
if have_gpu; then
    UCX_CUDA_NC_GPU=cuda gtest unit_tests-gpu 900 "$LOCAL/build/unit_tests"
    UCX_CUDA_NC_GPU=cuda gtest ucp_tests-gpu 600 "$LOCAL/build/ucp_tests"
fi
# Each test has its own time limit; this one is the last resort.
(unset UCX_CUDA_NC_GPU UCX_WARN_UNUSED_ENV_VARS && pytest "${full:+2}2700" ${full:+--full})

if [ -n "$ci" ] && built build-asan; then
    # A test that expects SIGSEGV wants the signal itself.
    export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:handle_segv=0 UBSAN_OPTIONS=print_stacktrace=1
    # Its fuzzing goes on for longer than in the plain build: it is here that it sees most.
    CUDA_NC_FUZZ_SECONDS=10 gtest unit_tests-asan 1200 "$LOCAL/build-asan/unit_tests"
    if [ -n "$full" ]; then
        seed=$(date +%s)
        say "fuzzing from seed $seed"
        CUDA_NC_FUZZ_SEED=$seed CUDA_NC_FUZZ_SECONDS=300 command_test fuzz-asan 900 \
            "$LOCAL/build-asan/unit_tests" --gtest_filter='fuzz_test.*'
        (cd "$LOCAL/build-asan" && gtest hooks_tests-asan 600 "$LOCAL/build-asan/hooks_tests")
        gtest ucp_tests-asan 1200 "$LOCAL/build-asan/ucp_tests"
    fi
fi
if [ -n "$full" ]; then
    build_tree build-tsan unit-test-programs -- --with-cuda=no --enable-tsan
    gtest unit_tests-tsan 1800 "$LOCAL/build-tsan/unit_tests"
    beside build-cuda12 env_build '-O1 -g1' build_cuda12
    if built build-cuda12; then
        gtest unit_tests-cuda12 900 "$LOCAL/build-cuda12/unit_tests"
    fi
    beside build-arm64 env_build '-O1 -g1' build_arm64
    if built build-arm64; then
        GTEST_FILTER=$ARM64_FILTER gtest unit_tests-arm64 2400 "$LOCAL/build-arm64/emulated_unit_tests"
    fi
    command_test distcheck 3600 make -C "$LOCAL/build" distcheck
fi
finish
