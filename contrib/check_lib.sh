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

# gtest SUITE SECONDS PROGRAM: as many shards as there are cores (2 at most), each with the timeout.
gtest() {
    local suite=$1 limit=$2 program=$3 start=$SECONDS shards shard log
    [ "$(nproc)" -gt 1 ] && shards=2 || shards=1
    mkdir -p "$LOGS"
    local pids=()
    for ((shard = 0; shard < shards; ++shard)); do
        log=$LOGS/$suite-$shard.log
        GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard \
            timeout -k 10 "$limit" "$program" --gtest_color=no >"$log" 2>&1 </dev/null &
        pids+=($!)
    done
    for ((shard = 0; shard < shards; ++shard)); do
        local status=0
        wait "${pids[$shard]}" || status=$?
        gtest_lines "$suite" "$LOGS/$suite-$shard.log" "$status"
    done
    [ -s "$RESULTS/$suite" ] || report "$suite" "FAIL $suite: no test ran"
    summary "$suite" $((SECONDS - start))
}

# Reads one shard's output. A test that began and did not end has crashed or hung.
gtest_lines() {
    local suite=$1 log=$2 status=$3 line failed=
    while read -r line; do
        case $line in FAIL*) failed=1 ;; esac
        report "$suite" "$line"
    done < <(awk -v status="$status" '
        /^\[ RUN      \] / { running = $4; next }
        /^\[       OK \] / { print "PASS " $4; running = ""; next }
        /^\[  SKIPPED \] / && running != "" {
            print "SKIP " $4 ": " (reason == "" ? "no reason given" : reason)
            running = ""; reason = ""; next
        }
        /^\[  FAILED  \] / && running != "" { print "FAIL " $4; running = ""; next }
        skip_next { reason = $0; skip_next = 0 }
        /: Skipped$/ { skip_next = 1 }
        END {
            if (running != "") {
                print "FAIL " running " (" (status == 124 || status == 137 ? "timeout" : \
                      "ended by status " status) ")"
            }
        }' "$log")
    if [ "$status" != 0 ] && [ -z "$failed" ]; then
        report "$suite" "FAIL $suite (exit status $status)"
        failed=1
    fi
    [ -z "$failed" ] || { echo "--- end of $log" && tail -n 40 "$log"; }
}

# lines SUITE SECONDS PROGRAM ARGUMENT...: the program prints PASS, FAIL and SKIP lines itself, and
# puts a limit on each of its tests; the one here is the last resort.
lines() {
    local suite=$1 limit=$2 start=$SECONDS status=0 log=$LOGS/$1.log line
    shift 2
    mkdir -p "$LOGS"
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
    local failed=
    while read -r line; do
        case $line in FAIL*) failed=1 ;; esac
        report "$suite" "$line"
    done < <(grep -E '^(PASS|FAIL|SKIP) ' "$log")
    if [ "$status" != 0 ] && [ -z "$failed" ]; then
        report "$suite" "FAIL $suite (exit status $status)"
        failed=1
    fi
    [ -s "$RESULTS/$suite" ] || report "$suite" "FAIL $suite: no test ran"
    [ -z "$failed" ] || { echo "--- end of $log" && tail -n 60 "$log"; }
    summary "$suite" $((SECONDS - start))
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
    command_test format 120 bash -c 'cd "$1" && git ls-files -z -- "*.cc" "*.hpp" "*.h" "*.c" \
        "*.cu" "*.cuh" "*.inc" | xargs -0 clang-format --dry-run -Werror' format "$ROOT"
}

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
