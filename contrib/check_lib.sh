# shellcheck shell=bash
# Runs suites and counts: each suite leaves lines "PASS name", "FAIL name", "SKIP name: reason" in a
# file of $RESULTS. To be sourced by check.sh, after lib.sh.

report() { # SUITE LINE
    printf '%s\n' "$2" >>"$RESULTS/$1"
    case $2 in
    PASS*) ;;
    *) printf '%s: %s\n' "$1" "$2" ;;
    esac
}

# Summary of a suite that has ended.
summary() {
    local suite=$1 seconds=$2 file=$RESULTS/$1
    [ -f "$file" ] || : >"$file"
    say "$suite: $(grep -c '^PASS' "$file" || true) passed," \
        "$(grep -c '^FAIL' "$file" || true) failed," \
        "$(grep -c '^SKIP' "$file" || true) skipped in $seconds s"
}

# gtest SUITE SECONDS PROGRAM: in as many parts as there are cores (2 at most), side by side, each
# with the time limit.
gtest() {
    local suite=$1 limit=$2 program=$3 start=$SECONDS parts part base=$LOGS/$1 pids=() status
    [ "$(nproc)" -gt 1 ] && parts=2 || parts=1
    mkdir -p "$LOGS"
    rm -f "$base"-*
    if ! "$ROOT/contrib/gtest_lines.py" split "$program" $parts "$base-flags"; then
        report "$suite" "FAIL $suite: its tests cannot be listed"
        parts=0
    fi
    for ((part = 0; part < parts; ++part)); do
        timeout -k 10 "$limit" "$program" --gtest_flagfile="$base-flags-$part" --gtest_color=no \
            --gtest_output="json:$base-$part.json" >"$base-$part.log" 2>&1 </dev/null &
        pids+=($!)
    done
    for ((part = 0; part < parts; ++part)); do
        status=0
        wait "${pids[$part]}" || status=$?
        gtest_part "$suite" "$base-$part" "$status"
    done
    [ -s "$RESULTS/$suite" ] || report "$suite" "FAIL $suite: no test ran"
    summary "$suite" $((SECONDS - start))
}

gtest_part() {
    local suite=$1 base=$2 status=$3 line failed=
    while read -r line; do
        case $line in FAIL*) failed=1 ;; esac
        report "$suite" "$line"
    done < <("$ROOT/contrib/gtest_lines.py" read "$base.json" "$base.log" "$status")
    if [ "$status" != 0 ] && [ -z "$failed" ]; then
        # A leak that a sanitizer found at the end, for one.
        report "$suite" "FAIL $suite (exit status $status)"
        failed=1
    fi
    [ -z "$failed" ] && return
    echo "--- of $base.log"
    grep -B 12 '^\[  FAILED  \]' "$base.log" | head -n 60 || true
    echo "..."
    tail -n 25 "$base.log"
}

# pytest SECONDS FOLDERS OPTION...: all test_*.py of these folders of test/, separated by blanks,
# each a suite. Several at a time: they wait more than they compute.
pytest() {
    local limit=$1 folders=() start=$SECONDS status=0 log=$LOGS/pytest.log outcomes line suite
    local suites=() workers
    read -ra folders <<<"$2"
    shift 2
    outcomes=$(mktemp)
    mkdir -p "$LOGS"
    workers=$(jobs_here)
    [ "$workers" -le 8 ] || workers=8
    say "running test_*.py of test/ in ${folders[*]} (output: $log)"
    timeout -k 30 "$limit" "$VENV/bin/python3" -m pytest "${folders[@]/#/$ROOT/test/}" -q -rs --durations=0 \
        -n "$workers" --dist worksteal --outcomes "$outcomes" "$@" >"$log" 2>&1 </dev/null ||
        status=$?
    while read -r line; do
        suite=${line#* }
        suite=${suite%%/*}_tests
        [ -f "$RESULTS/$suite" ] || suites+=("$suite")
        report "$suite" "$line"
    done <"$outcomes"
    # Exit status 1 says that tests failed; these are in the file. 5: there are no tests.
    if [ "$status" -gt 1 ] || { [ "$status" = 1 ] && ! grep -q '^FAIL' "$outcomes"; }; then
        report pytest "FAIL pytest (exit status $status)"
    fi
    [ -s "$outcomes" ] || report pytest "FAIL pytest: no test ran"
    rm -f "$outcomes"
    [ "$status" = 0 ] || sed -n '/^=* \(ERRORS\|FAILURES\) /,/slowest .* durations/p' "$log" | tail -n 300
    sed -n '/slowest .* durations/,/^=* short test summary/p' "$log" | awk 'NR <= 21'
    for suite in "${suites[@]}"; do
        summary "$suite" $((SECONDS - start))
    done
}

# command_test NAME SECONDS COMMAND...: one test, passed where the command succeeds.
command_test() {
    local name=$1 limit=$2 start=$SECONDS
    shift 2
    mkdir -p "$LOGS"
    if timeout -k 10 "$limit" "$@" >"$LOGS/$name.log" 2>&1 </dev/null; then
        report "$name" "PASS $name"
    else
        report "$name" "FAIL $name"
        tail -n 40 "$LOGS/$name.log"
    fi
    summary "$name" $((SECONDS - start))
}

# The format is that of clang-format 14; other releases differ in details.
check_format() {
    if ! clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
        report format 'SKIP format: clang-format 14 is not here'
        return
    fi
    # shellcheck disable=SC2016
    command_test format 120 bash -o pipefail -c 'cd "$1" && git ls-files -z -- "*.cc" "*.hpp" "*.h" "*.c" \
        "*.cu" "*.cuh" "*.inc" | xargs -0 clang-format --dry-run -Werror' format "$ROOT"
}

check_shell() {
    if ! command -v shellcheck >/dev/null; then
        report shellcheck 'SKIP shellcheck: it is not installed'
        return
    fi
    # shellcheck disable=SC2016
    command_test shellcheck 120 bash -o pipefail -c 'cd "$1" && git ls-files -z -- "*.sh" .ci/run |
        xargs -0 shellcheck -S warning' shellcheck "$ROOT"
}

# beside NAME COMMAND...: runs it in the background at the lowest priority. built NAME: waits for it;
# where it failed, that is a failed test.
declare -A beside_pids
beside() {
    local name=$1
    shift
    (renice -n 19 "$BASHPID" >/dev/null && "$@") &
    beside_pids[$name]=$!
}

built() {
    say "waiting for $1"
    wait "${beside_pids[$1]}" && return
    report "$1" "FAIL $1"
    return 1
}

# env_build FLAGS COMMAND...: with these compiler flags.
env_build() {
    export CFLAGS=$1 CXXFLAGS=$1
    shift
    "$@"
}

# The product and its unit tests with CUDA 12: one architecture shows that all compiles.
build_cuda12() {
    need_cuda12
    build_tree build-cuda12 libcuda_nc.la unit_tests -- --with-cuda="$CUDA_DIR" --with-cuda-arch=90 \
        --enable-werror
}

# The fuzzer of the C API's layouts. CXXFLAGS have -fsanitize=fuzzer-no-link.
build_fuzzer() {
    export CC=clang CXX=clang++
    build_tree build-fuzz layout_fuzzer -- --with-cuda=no --with-mpi=no --enable-asan
}

# The wheel as users get it, for glibc 2.28; one architecture shows that all compiles.
build_wheel() {
    CUDA_NC_ARCH=90 "$ROOT/contrib/wheel.sh" "$LOCAL/wheel/checked"
}

wheel_built() { # its file
    echo "$LOCAL"/wheel/checked/ucx_cuda_nc-*.whl
}

# For 64-bit Arm, and a script that runs the unit tests there in an emulator.
build_arm64() {
    need_arm64
    build_tree build-arm64 "${LIBRARY_TARGETS[@]}" unit_tests -- --host="$ARM64" --with-cuda=no \
        --with-mpi=no --with-gtest="$LOCAL/gtest-arm64" --enable-werror
    cat >"$LOCAL/build-arm64/emulated_unit_tests" <<END
#!/bin/sh
# Tests execute themselves again.
export CUDA_NC_TEST_PROGRAM='$LOCAL/build-arm64/emulated_unit_tests'
exec qemu-aarch64-static -L /usr/$ARM64 -0 "\$CUDA_NC_TEST_PROGRAM" \
    '$LOCAL/build-arm64/unit_tests' "\$@"
END
    chmod a+x "$LOCAL/build-arm64/emulated_unit_tests"
}

# The emulator has threads and memory of its own, which these tests count, or is slower than they
# allow for. It tells a process another start time than the system tells others of that process, so
# that these find it gone; and it maps over what MAP_FIXED_NOREPLACE is to leave.
ARM64_FILTER='-*_gpu.*:fuzz_test.*:split.no_thread_is_made_unless_asked_for'
ARM64_FILTER+=':message_handles.run_out_without_harm_and_say_so'
ARM64_FILTER+=':list_under_way.a_kernel_s_own_word_ends_it_without_the_driver'
ARM64_FILTER+=':arena.shares_no_block_of_addresses_with_host_memory'
ARM64_FILTER+=':*/direct_messages_with_source.allocations_that_are_reached_by_turns_stay_open/*'
ARM64_FILTER+=':*/direct_messages_with_source.an_allocation_is_closed_when_its_owner_goes_after_its_endpoint/*'

# Prints the total and ends the script.
finish() {
    local passed failed skipped
    passed=$(cat "$RESULTS"/* | grep -c '^PASS' || true)
    failed=$(cat "$RESULTS"/* | grep -c '^FAIL' || true)
    skipped=$(cat "$RESULTS"/* | grep -c '^SKIP' || true)
    say "all took $SECONDS s"
    cat "$RESULTS"/* | grep -E '^(FAIL|SKIP)' || true
    local total="$passed passed, $failed failed"
    [ "$skipped" = 0 ] || total="$total, $skipped skipped"
    echo "$total"
    [ "$failed" = 0 ] && [ "$passed" != 0 ]
    exit
}
