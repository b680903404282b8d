#!/usr/bin/env bash
# Sets up what is missing, builds, and runs every test. The last line counts them:
# "N passed, N failed" or "N passed, N failed, N skipped".
#
# usage: contrib/check.sh [--ci] [--full] [--only PART,...]
#   --ci     warnings are errors, code format, address and undefined behaviour sanitizers
#   --full   all that, the thread sanitizer, CUDA 12, 64-bit Arm in an emulator, a fuzzer (clang),
#            distcheck, the wheel and larger counts. It takes hours
#   --only   these parts alone: format, unit, asan, fuzz, tsan, cuda12, arm64, distcheck, wheel, or
#            a folder of test/ (uct, mpi, ...). So --full can be run piece by piece
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

usage() {
    sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
}

FOLDERS=()
for folder in "$ROOT"/test/*/; do
    ! compgen -G "${folder}test_*.py" >/dev/null || FOLDERS+=("$(basename "$folder")")
done
PARTS=(format unit asan fuzz tsan cuda12 arm64 distcheck wheel "${FOLDERS[@]}")
ci=''
full=''
only=''
while [ $# -gt 0 ]; do
    case $1 in
    --ci) ci=1 ;;
    --full) ci=1 full=1 ;;
    --only)
        [ $# -gt 1 ] || usage
        only=$2
        for part in ${only//,/ }; do
            [[ " ${PARTS[*]} " == *" $part "* ]] || die "no part '$part'; there are: ${PARTS[*]}"
        done
        shift
        ;;
    *) usage ;;
    esac
    shift
done

# Whether a part is to run.
wanted() { [ -z "$only" ] || [[ ",$only," == *",$1,"* ]]; }

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
if [ -n "$ci" ] && { wanted asan || { [ -n "$full" ] && wanted fuzz; }; }; then
    # Optimised less and with line numbers alone it compiles in half the time. The unit tests alone
    # run with it; all programs do with --full.
    targets=(unit_tests)
    [ -z "$full" ] || targets=(unit-test-programs)
    beside build-asan env_build '-O1 -g1' build_tree build-asan "${targets[@]}" -- --with-cuda=no \
        --enable-asan --enable-werror
fi
if [ -n "$ci" ] && wanted format; then
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
if wanted unit; then
    gtest unit_tests 900 "$LOCAL/build/unit_tests"
    gtest ucp_tests 600 "$LOCAL/build/ucp_tests"
    UCX_CUDA_NC_SIM_DEVICES=1 gtest ucp_tests-one-gpu 600 "$LOCAL/build/ucp_tests"
    # Its made-up libraries are found from the build tree.
    (cd "$LOCAL/build" && gtest hooks_tests 300 "$LOCAL/build/hooks_tests")
    if have_gpu; then
        UCX_CUDA_NC_GPU=cuda gtest unit_tests-gpu 900 "$LOCAL/build/unit_tests"
        UCX_CUDA_NC_GPU=cuda gtest ucp_tests-gpu 600 "$LOCAL/build/ucp_tests"
    fi
fi
folders=()
for folder in "${FOLDERS[@]}"; do
    ! wanted "$folder" || folders+=("$folder")
done
# Each test has its own time limit; this one is the last resort.
python_tests() {
    (
        unset UCX_CUDA_NC_GPU UCX_WARN_UNUSED_ENV_VARS
        pytest "${full:+2}2700" "$@"
    )
}
if [ ${#folders[@]} -gt 0 ]; then
    python_tests "${folders[*]}" ${full:+--full -m 'not timed'}
fi

if [ -n "${beside_pids[build-asan]:-}" ] && built build-asan; then
    # A test that expects SIGSEGV wants the signal itself.
    export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:handle_segv=0 UBSAN_OPTIONS=print_stacktrace=1
    if wanted asan; then
        # Its fuzzing goes on for longer than in the plain build: it is here that it sees most.
        CUDA_NC_FUZZ_SECONDS=10 gtest unit_tests-asan 1200 "$LOCAL/build-asan/unit_tests"
    fi
    if [ -n "$full" ] && wanted asan; then
        (cd "$LOCAL/build-asan" && gtest hooks_tests-asan 600 "$LOCAL/build-asan/hooks_tests")
        gtest ucp_tests-asan 1200 "$LOCAL/build-asan/ucp_tests"
    fi
    if [ -n "$full" ] && wanted fuzz; then
        seed=$(date +%s)
        say "fuzzing from seed $seed"
        CUDA_NC_FUZZ_SEED=$seed CUDA_NC_FUZZ_SECONDS=300 command_test fuzz-asan 900 \
            "$LOCAL/build-asan/unit_tests" --gtest_filter='fuzz_test.*'
    fi
fi
# They compare times: nothing else runs.
if [ -n "$full" ] && wanted mpi; then
    python_tests mpi --full -m timed -n 1
fi
if [ -n "$full" ] && wanted tsan; then
    build_tree build-tsan unit-test-programs -- --with-cuda=no --enable-tsan
    # Some tests fork, and their children start threads.
    TSAN_OPTIONS="die_after_fork=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}" \
        gtest unit_tests-tsan 1800 "$LOCAL/build-tsan/unit_tests"
fi
if [ -n "$full" ] && wanted cuda12; then
    beside build-cuda12 env_build '-O1 -g1' build_cuda12
    if built build-cuda12; then
        gtest unit_tests-cuda12 900 "$LOCAL/build-cuda12/unit_tests"
    fi
fi
if [ -n "$full" ] && wanted fuzz; then
    if command -v clang++ >/dev/null; then
        beside build-fuzz env_build '-O1 -g1 -fsanitize=fuzzer-no-link' build_fuzzer
        if built build-fuzz; then
            command_test layout-fuzzer 600 env UCX_CUDA_NC_GPU=none \
                "$LOCAL/build-fuzz/layout_fuzzer" -max_total_time=300 -max_len=4096 -timeout=60
        fi
    else
        report layout-fuzzer 'SKIP layout-fuzzer: clang is not here'
    fi
fi
if [ -n "$full" ] && wanted arm64; then
    beside build-arm64 env_build '-O1 -g1' build_arm64
    if built build-arm64; then
        GTEST_FILTER=$ARM64_FILTER gtest unit_tests-arm64 2400 "$LOCAL/build-arm64/emulated_unit_tests"
    fi
fi
if [ -n "$full" ] && wanted distcheck; then
    command_test distcheck 3600 make -C "$LOCAL/build" distcheck
fi
if [ -n "$full" ] && wanted wheel; then
    beside build-wheel build_wheel
    if built build-wheel; then
        # They install it into a fresh environment, and use it as its document says.
        command_test wheel 3600 env -u UCX_CUDA_NC_GPU -u UCX_WARN_UNUSED_ENV_VARS \
            CUDA_NC_WHEEL="$(wheel_built)" "$VENV/bin/python3" -m pytest -q "$ROOT/test/python"
    fi
fi
finish
