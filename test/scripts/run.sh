#!/usr/bin/env bash
# Tests of the scripts, the installed product and the shim, as a user meets them. Prints
# "PASS name" or "FAIL name"; each test is a function with a time limit.
set -uo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
LOCAL=${CUDA_NC_LOCAL:-$ROOT/.local}
HOME_DIR=$LOCAL/install
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
export ROOT LOCAL HOME_DIR WORK

# sourced SHELL COMMAND: the command after env.sh, in that shell, from another directory.
sourced() { (cd / && env CUDA_NC_QUIET=1 "$1" -c ". '$ROOT/contrib/env.sh' && $2"); }

needed() { [ -f "$1" ] && readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

env_works_in() {
    [ "$(sourced "$1" 'echo $CUDA_NC_HOME')" = "$HOME_DIR" ] &&
        [ "$(sourced "$1" 'command -v mpicxx')" = "$LOCAL/venv/bin/mpicxx" ] &&
        [ "$(sourced "$1" 'echo $UCX_PLUGIN_PATH')" = "$HOME_DIR/lib/ucx-cuda-nc" ]
}
test_env_works_in_bash() { env_works_in bash; }
test_env_works_in_sh() { env_works_in sh; }
if command -v zsh >/dev/null; then
    test_env_works_in_zsh() { env_works_in zsh; }
fi
test_env_twice_changes_nothing_more() {
    [ "$(sourced bash 'echo $PATH:$LD_LIBRARY_PATH')" = \
        "$(sourced bash ". '$ROOT/contrib/env.sh'; echo \$PATH:\$LD_LIBRARY_PATH")" ]
}
test_env_leads_to_its_own_mpi_and_ucx() {
    sourced bash 'nc_info' | grep "^MPI .*Open MPI v5.* at $(realpath "$LOCAL/venv")/lib/libmpi" &&
        [ "$(sourced bash 'which -a ucx_info' | tail -n 1)" = \
            "$(echo "$LOCAL"/venv/lib/python3*/site-packages/libucx/bin/ucx_info)" ]
}
test_nc_info_names_the_mpi_of_the_path_or_says_that_none_is_there() {
    PATH=$WORK "$HOME_DIR/bin/nc_info" | grep -E 'beside mpicxx or mpirun in PATH'
}
test_env_leaves_no_names_behind() {
    [ -z "$(sourced bash 'set | grep ^_nc_')" ]
}
test_env_says_what_a_job_needs() {
    bash -c ". '$ROOT/contrib/env.sh'" | grep 'export UCX_PLUGIN_PATH=' >/dev/null &&
        bash -c ". '$ROOT/contrib/env.sh'" | grep 'export LD_PRELOAD=' >/dev/null
}
test_env_survives_strict_shells() {
    bash -euo pipefail -c "CUDA_NC_QUIET=1; . '$ROOT/contrib/env.sh'; mpicxx --version >/dev/null"
}

perftest() { env UCX_CUDA_NC_GPU=sim "$HOME_DIR/bin/nc_perftest" "$@"; }
# perftest_fails_with TEXT ARGUMENT...
perftest_fails_with() {
    local text=$1 said
    shift
    said=$(perftest "$@" 2>&1) && return 1
    grep -F "$text" <<<"$said" >/dev/null
}
test_perftest_measures_verified_layouts_on_host_and_simulated_gpu() {
    local memory
    for memory in host gpu pinned; do
        perftest pack --set small -d pack,unpack,copy -m "$memory" -n 2 -b 2 \
            --json "$WORK/$memory.json" --csv "$WORK/$memory.csv" >/dev/null || return 1
        [ "$(wc -l <"$WORK/$memory.csv")" -eq 64 ] || return 1
        python3 -c "
import json
rows = json.load(open('$WORK/$memory.json'))['rows']
assert len(rows) == 63 and all(r['verified'] and r['time']['min_us'] > 0 for r in rows)" ||
            return 1
    done
}
# Astaroth's lie in a GiB each: boxes of 32^3 in place of theirs of 256^3.
application_layouts() {
    local box halo
    perftest pack --list | sed -n '/^applications:/,/^messages:/s/^  \([^ ]*\) .*/\1/p' |
        grep -v '^Astaroth_'
    for halo in 32x32x3 32x3x32 3x32x32 32x3x3 3x3x3; do
        box=subarray:8,38x38x38,$halo,3x3x3
        echo "parts:0=$box;438976=$box;877952=$box"
    done
}
test_perftest_verifies_layouts_of_applications() {
    local memory names
    mapfile -t names < <(application_layouts)
    [ ${#names[@]} = 23 ] || return 1
    for memory in host gpu; do
        perftest pack "${names[@]/#/-l}" -d pack,unpack -m "$memory" -n 1 -b 1 \
            --json "$WORK/applications.json" || return 1
        python3 -c "
import json
rows = json.load(open('$WORK/applications.json'))['rows']
assert len(rows) == 46 and all(r['verified'] for r in rows), rows" || return 1
    done
}
test_perftest_measures_layouts_of_several_sizes() {
    perftest pack -l 'vector:*,8,16' -l small-off-1 --sizes 64,1K,100K -m host -n 2 -b 50 \
        --json "$WORK/sizes.json" || return 1
    python3 -c "
import json
rows = json.load(open('$WORK/sizes.json'))['rows']
assert [r['bytes'] for r in rows if r['direction'] == 'pack'] == [64, 12288, 1024, 102400], rows
assert all(r['verified'] and r['sector_ratio'] > 0 for r in rows), rows" || return 1
    "$LOCAL/venv/bin/python3" "$ROOT/contrib/plot/perftest_plot.py" "$WORK/sizes.json" \
        --output "$WORK/packed" && [ -s "$WORK/packed-pack.png" ] &&
        [ -s "$WORK/packed-pack-sizes.png" ]
}
test_perftest_says_what_is_wrong_with_options() {
    local wanted
    perftest_fails_with 'give --layout or --set' pack &&
        perftest_fails_with 'neither a known layout' pack -l nonsense &&
        perftest_fails_with 'nc_perftest: layout vector:1:' pack -l vector:1 &&
        perftest_fails_with 'a layout of any size' pack -l vector-8 &&
        perftest_fails_with 'is not a range' pack -l vector-8 --sizes 64:8 &&
        perftest_fails_with 'standard' pack --set nonsense &&
        perftest_fails_with 'there is no GPU 9' pack -l vector:1,8,8 --device 9 || return 1
    for wanted in "" "pack" "pack -l vector:1,8,8 -n 0" "pack -l vector:1,8,8 -d sideways" "tuna"; do
        perftest $wanted >/dev/null 2>&1 && return 1
    done
    return 0
}

# output_is_missed COMMAND...: one message and status 1 where its output goes nowhere.
output_is_missed() {
    local closed full
    closed=$("$@" 2>&1 >&-)
    [ $? = 1 ] || return 1
    full=$("$@" 2>&1 >/dev/full)
    [ $? = 1 ] && echo "$closed" && echo "$full" && [ "$(wc -l <<<"$closed")" = 1 ] &&
        [ "$(wc -l <<<"$full")" = 1 ] && grep 'could not be written' <<<"$full"
}
test_output_that_nobody_gets_is_an_error() {
    result one.json 10 && result two.json 10 &&
        output_is_missed perftest pack -l vector:1K,8,16 -n 2 &&
        output_is_missed perftest pack --list && output_is_missed perftest --help &&
        output_is_missed perftest compare --all "$WORK/one.json" "$WORK/two.json" &&
        output_is_missed perftest_p2p --fork -m host --sizes 8 -l vector-8 --seconds 0.01 &&
        output_is_missed "$HOME_DIR/bin/nc_info" &&
        output_is_missed "$HOME_DIR/bin/nc_info" --settings
}

# With the UCX of the job.
perftest_p2p() {
    (
        CUDA_NC_QUIET=1 . "$ROOT/contrib/env.sh"
        unset UCX_PLUGIN_PATH
        UCX_CUDA_NC_GPU=${gpu:-sim} UCX_CUDA_NC_SIM_DELAY=20 nc_perftest p2p "$@"
    )
}
# p2p_fails_with TEXT ARGUMENT...: with a bad status, and saying so.
p2p_fails_with() {
    local text=$1 said
    shift
    said=$(perftest_p2p "$@" 2>&1) && return 1
    grep -F "$text" <<<"$said" >/dev/null || { echo "$said" && return 1; }
}
test_perftest_p2p_measures_verified_messages() {
    local memory
    for memory in host gpu gpu,host; do
        perftest_p2p --fork -m "$memory" --sizes 64,100K -l vector-8 -l triangle \
            -l indexed:1K,1,100,1,7 -t latency,bandwidth --bidir --window 4 --seconds 0.02 \
            --json "$WORK/p2p.json" --csv "$WORK/p2p.csv" || return 1
        [ "$(wc -l <"$WORK/p2p.csv")" -eq 31 ] || return 1
        python3 -c "
import json
file = json.load(open('$WORK/p2p.json'))
rows = file['rows']
assert len(rows) == 30 and file['library'].startswith('UCX'), file
assert all(r['verified'] and r['time']['min_us'] > 0 and r['ratio'] > 0 for r in rows), rows
assert {r['transport'] for r in rows} == {'y', 'n'}
assert {r['test'] for r in rows} == {'latency', 'bandwidth', 'bidir'}" || return 1
    done
}
test_perftest_p2p_names_a_gpu_that_is_not_there() {
    p2p_fails_with 'there is no GPU 7: 2 simulated' --fork --gpus 0,7 -m gpu --sizes 8 -l vector-8
}
test_carriers_that_are_not_there_are_told_once() {
    local said
    said=$(UCX_CUDA_NC_CARRIERS=pigeon,owl perftest_p2p --fork --transport y -m host --sizes 8 \
        -l vector-8 --seconds 0.01 2>&1)
    # By each side, unless the other has ended first.
    said=$(grep -c 'UCX_CUDA_NC_CARRIERS=pigeon,owl: .* there are: .*posix' <<<"$said")
    [ "$said" = 1 ] || [ "$said" = 2 ]
}
test_perftest_p2p_uses_the_transport_or_says_why_not() {
    perftest_p2p --fork --transport y -m host --sizes 8 -l vector-8 --seconds 0.01 |
        grep '^# with the transport cuda_nc: cuda_nc/' >/dev/null &&
        UCX_TLS=posix,self p2p_fails_with 'does UCX_TLS leave it out' --fork --transport y -m host \
            --sizes 8 -l vector-8
}
test_perftest_p2p_sees_wrong_bytes() {
    local what
    for what in byte gap; do
        p2p_fails_with WRONG --fork -m gpu --transport y --sizes 64K -l vector-64 --inject $what ||
            return 1
    done
}
test_perftest_p2p_client_and_server() {
    local port=$((20000 + $$ % 20000)) status=0
    perftest_p2p -p $port -m host &
    perftest_p2p 127.0.0.1 -p $port -m host --sizes 8 -l vector-8 --seconds 0.01 || status=1
    wait $! && [ $status = 0 ]
}
test_perftest_p2p_server_outlives_strangers() {
    local port=$((20000 + ($$ + 1) % 20000)) status=0
    perftest_p2p -p $port -m host --timeout 20 >"$WORK/server.txt" 2>&1 &
    for _ in $(seq 100); do
        ! grep waiting "$WORK/server.txt" >/dev/null || break
        sleep 0.1
    done
    python3 -c "
import socket
for text in b'GET / HTTP/1.0\r\n\r\n', b'':
    with socket.create_connection(('127.0.0.1', $port)) as one:
        one.sendall(text)"
    perftest_p2p 127.0.0.1 -p $port -m host --sizes 8 -l vector-8 --seconds 0.01 || status=1
    wait $! || status=1
    cat "$WORK/server.txt"
    [ $status = 0 ] && [ "$(grep -c 'waiting for the next client' "$WORK/server.txt")" = 2 ]
}
test_perftest_p2p_waits_for_nobody_without_end() {
    local port=$((40000 + $$ % 20000)) client
    p2p_fails_with 'no client has come' -p $port --timeout 0.2 &&
        p2p_fails_with 'no server at' 127.0.0.1 -p $port --timeout 0.2 -l vector-8 || return 1
    perftest_p2p --fork --timeout 0.1 -m gpu --sizes 256M -l vector-8 >"$WORK/said" 2>&1
    grep -E 'illegal access|is gone' "$WORK/said" && return 1
    # A server that takes the connection and says nothing, then one that hangs up.
    python3 -c "
import socket, sys, time
at = socket.create_server(('127.0.0.1', $port))
one = at.accept()[0]
two = at.accept()[0]
two.close()
one.recv(1)
at.accept()" &
    p2p_fails_with 'says nothing' 127.0.0.1 -p $port --timeout 1 -l vector-8 --transport n &&
        p2p_fails_with 'is gone' 127.0.0.1 -p $port --timeout 10 -l vector-8 --transport n
    client=$?
    kill $! && return $client
}
children_of() { # PROCESS: one a line (a bare system has no pgrep)
    sed -n "s/^\([0-9]*\) (.*) [A-Za-z] $1 .*/\1/p" /proc/[0-9]*/stat 2>/dev/null
}
test_perftest_p2p_ends_when_the_other_side_is_killed() {
    local port=$((30000 + $$ % 9000)) server side status=0
    perftest_p2p -p $port >"$WORK/server.txt" 2>&1 &
    server=$!
    {
        perftest_p2p 127.0.0.1 -p $port -m host --sizes 8 -l vector-8 --transport y --seconds 100 \
            -n 1000000 2>&1 || echo "status $?"
    } >"$WORK/client.txt" &
    for _ in $(seq 100); do # until the server's side of the plan runs
        ! grep -q '^latency\|^test' "$WORK/client.txt" || break
        sleep 0.1
    done
    server=$(children_of "$server" | head -n 1)
    side=$(children_of "$server" | head -n 1)
    kill -9 "${side:-$server}" || return 1
    wait || status=$?
    cat "$WORK/client.txt" "$WORK/server.txt"
    grep 'the other process is gone' "$WORK/client.txt" && grep 'status 1' "$WORK/client.txt" &&
        grep 'ended by signal 9' "$WORK/server.txt"
}
# result FILE MICROSECONDS: a result file of one row.
result() {
    printf '{"mode": "pack", "device": "d", "rows": [{"layout": "v", "direction": "pack", "time":
        {"min_us": %s, "median_low_us": %s, "median_us": %s, "median_high_us": %s}}]}' \
        "$2" "$2" "$2" "$2" >"$WORK/$1"
}
test_perftest_compare_says_what_is_slower() {
    result old.json 10 && result same.json 10.1 && result slow.json 20 || return 1
    perftest compare "$WORK/old.json" "$WORK/same.json" | grep '1 same' &&
        perftest compare "$WORK/slow.json" "$WORK/old.json" | grep '1 faster' || return 1
    perftest compare "$WORK/old.json" "$WORK/slow.json" >"$WORK/said"
    [ $? = 1 ] && grep SLOWER "$WORK/said" || return 1
    perftest compare "$WORK/old.json" "$WORK/slow.json" --threshold 150 || return 1
    perftest compare "$WORK/old.json" /no/such/file
    [ $? = 2 ] || return 1
    perftest compare "$WORK/said" "$WORK/old.json"
    [ $? = 2 ]
}
test_perftest_results_are_compared_and_drawn() {
    perftest_p2p --fork -m host --sizes 8,4K -l vector-8 -l triangle -t latency,bandwidth \
        --transport n --seconds 0.01 --json "$WORK/drawn.json" &&
        perftest compare --all "$WORK/drawn.json" "$WORK/drawn.json" | grep '8 same' || return 1
    "$LOCAL/venv/bin/python3" "$ROOT/contrib/plot/perftest_plot.py" "$WORK/drawn.json" \
        "$WORK/drawn.json" --label a --label b --output "$WORK/picture" &&
        [ -s "$WORK/picture-latency.png" ] && [ -s "$WORK/picture-bandwidth.png" ] || return 1
    ! "$LOCAL/venv/bin/python3" "$ROOT/contrib/plot/perftest_plot.py" "$WORK/none" --output x
}
# script_fails_with TEXT SCRIPT ARGUMENT...: one line and status 1.
script_fails_with() {
    local text=$1 said
    shift
    said=$("$LOCAL/venv/bin/python3" "$ROOT/contrib/$@" 2>&1 >"${to:-/dev/null}")
    [ $? = 1 ] && [ "$(wc -l <<<"$said")" = 1 ] && grep -F "$text" <<<"$said" ||
        { echo "$said" && return 1; }
}
test_pictures_that_cannot_be_drawn_are_told_in_a_sentence() {
    cat >"$WORK/trace.json" <<'END'
{"traceEvents": [
{"ph": "b", "name": "send", "id": "0x1", "pid": 1, "ts": 0, "args": {"bytes": 4096}},
{"ph": "e", "name": "send", "id": "0x1", "pid": 1, "ts": 1},
{"ph": "b", "name": "send", "id": "0x2", "pid": 1, "ts": 2, "args": {"bytes": 8192}},
{"ph": "e", "name": "send", "id": "0x2", "pid": 1, "ts": 4}]}
END
    python3 "$ROOT/contrib/timeline.py" -b 4K "$WORK/trace.json" | grep '0.0 to *1.0  send' &&
        python3 "$ROOT/contrib/timeline.py" "$WORK/trace.json" | grep '0.0 to *2.0  send' &&
        script_fails_with 'there are: 4096, 8192' timeline.py -b 7 "$WORK/trace.json" &&
        script_fails_with 'cannot be written' timeline.py -o /no/a.png "$WORK/trace.json" &&
        script_fails_with 'cannot be drawn' timeline.py -o "$WORK/a.xyz" "$WORK/trace.json" &&
        echo '[]' >"$WORK/list.json" &&
        script_fails_with 'not a trace' timeline.py "$WORK/list.json" &&
        to=/dev/full script_fails_with 'No space left' timeline.py "$WORK/trace.json" || return 1
    printf '{"rows": [{"layout": "v", "direction": "pack", "ratio": 1, "time": {"median_us": 1}}]}' \
        >"$WORK/plot.json"
    script_fails_with 'cannot be written' plot/perftest_plot.py "$WORK/plot.json" --output /no/a &&
        to=/dev/full script_fails_with 'No space left' plot/perftest_plot.py "$WORK/plot.json" \
            --output "$WORK/a"
}
# tuned ARGUMENT...: with a cache directory of the test's own.
tuned() { XDG_CACHE_HOME=$WORK/none perftest tune "$@" 2>/dev/null; }
test_perftest_tune_measures_host_and_simulated_gpus() {
    local began=$SECONDS gpu file
    for gpu in sim none; do
        export UCX_CUDA_NC_GPU=$gpu
        XDG_CACHE_HOME=$WORK/cache "$HOME_DIR/bin/nc_perftest" tune --seconds 15 --check -s small \
            --json "$WORK/check.json" >"$WORK/said" 2>"$WORK/progress" || return 1
        grep '^ *0%  ' "$WORK/progress" && grep '^# written: ' "$WORK/said" &&
            { [ $gpu = none ] || grep '^  kernel rules: ' "$WORK/said"; } &&
            grep '^# predictions: .* of 42 ' "$WORK/said" || return 1
        file=$(ls "$WORK/cache/ucx-cuda-nc/"*-"$gpu".json) || return 1
        python3 -c "
import json
profile = json.load(open('$file'))
assert len(profile['gpus']) == (2 if '$gpu' == 'sim' else 0), len(profile['gpus'])
rules = [len(gpu['rules']) for gpu in profile['gpus']]
assert all(number == 23 for number in rules), rules
assert len(profile['host_moves']['figures']) > 10
assert len(json.load(open('$WORK/check.json'))) == 42" || return 1
        XDG_CACHE_HOME=$WORK/cache "$HOME_DIR/bin/nc_info" --explain 'vector:*,8,16' 64K |
            grep "^figures  *measured on .*$file" || return 1
    done
    [ $((SECONDS - began)) -lt 60 ]
}
test_perftest_tune_writes_only_what_it_is_told() {
    tuned --dry-run --seconds 0.5 | grep 'nothing was written' && [ ! -e "$WORK/none" ] &&
        tuned --seconds 0.5 -o "$WORK/here.json" | grep 'steps left out' &&
        [ -s "$WORK/here.json" ] && [ ! -e "$WORK/none" ] || return 1
    ls "$WORK"/here.json.* && return 1 # a temporary file
    tuned --seconds 0.5 -o /proc/none/here.json && return 1
    UCX_CUDA_NC_PROFILE=none perftest_fails_with 'no place for the profile' tune --seconds 0.5
}
test_perftest_tune_fails_where_too_few_predictions_are_near() {
    local status near
    tuned --dry-run --seconds 0.5 --check -s small --require 100 >"$WORK/said"
    status=$?
    near=$(sed -n 's/^# predictions: \([0-9]*\) of 42 .*/\1/p' "$WORK/said")
    [ -n "$near" ] && [ "$status" = $((near < 42)) ] || return 1
    tuned --require 90 --seconds 0.5 --dry-run # without --check
    [ $? -ge 100 ] && perftest_fails_with 101 tune --check --require 101
}
test_a_broken_machine_profile_is_ignored_with_one_warning() {
    printf '{"format": 1' >"$WORK/broken.json"
    UCX_CUDA_NC_PROFILE=$WORK/broken.json UCX_CUDA_NC_GPU=sim "$HOME_DIR/bin/nc_info" \
        --explain vector:1K,8,16 >"$WORK/said" 2>&1 || return 1
    [ "$(grep -c 'broken.json is ignored: it is no JSON' "$WORK/said")" = 2 ] # warning and figures
}
test_perftest_looks_for_trouble_before_it_measures() {
    local mode
    for mode in "pack -l vector:4M,8,16 -n 1000000" "tune --check" "tune --seconds 3000 --check"; do
        timeout 20 "$HOME_DIR/bin/nc_perftest" $mode --json /no/such/place >"$WORK/said" 2>&1
        [ $? = 1 ] && grep '/no/such/place cannot be written: No such file' "$WORK/said" || return 1
    done
    p2p_fails_with 'cannot be written: Is a directory' --fork -l vector-8 --csv "$WORK" &&
        perftest_fails_with 'there is no set "bogus"' tune --check --set bogus --seconds 3000 &&
        perftest_fails_with '/none/x.json cannot be written' tune -o "$WORK/none/x.json" \
            --seconds 3000 && [ ! -e "$WORK/none" ] || return 1
    perftest pack -l vector:4K,8,16 -l vector:1 >"$WORK/said" 2>&1 && return 1
    ! grep vector:4K "$WORK/said" || return 1
    p2p_fails_with 'nothing to measure' --fork --sizes 7 -l transpose
}
test_perftest_mpi_halos_take_no_layouts() {
    (
        cd / && . "$ROOT/contrib/env.sh" >/dev/null &&
            mpirun -np 1 nc_perftest mpi -t halo6 --box 8 -m host --seconds 0.01 >"$WORK/halo" &&
            [ "$(wc -l <"$WORK/halo")" = 3 ]
    )
}
test_perftest_mpi_is_its_own_program() {
    needed "$HOME_DIR/bin/nc_perftest" | grep mpi && return 1
    needed "$HOME_DIR/bin/nc_perftest_mpi" | grep libmpi &&
        (
            cd / && . "$ROOT/contrib/env.sh" >/dev/null &&
                mpirun -np 2 nc_perftest mpi -m host --sizes 8,64K -l vector-8 --seconds 0.01 \
                    --json "$WORK/mpi.json" &&
                python3 -c "
import json
file = json.load(open('$WORK/mpi.json'))
assert file['mode'] == 'mpi' and file['library'].startswith('Open MPI')
assert len(file['rows']) == 2 and all(r['verified'] for r in file['rows'])
assert 'UCX_PLUGIN_PATH' in file['environment']"
        )
}
test_perftest_says_what_is_wrong_with_messages() {
    p2p_fails_with 'neither a known layout' --fork -l nonsense &&
        p2p_fails_with 'there is no set' --fork -s nonsense &&
        p2p_fails_with 'is not a range' --fork --sizes 64:8 &&
        p2p_fails_with 'takes no HOST' --fork localhost &&
        p2p_fails_with 'at most two values' --fork -m host,host,gpu &&
        p2p_fails_with 'at most two values' --fork --gpus 0,1,0 &&
        p2p_fails_with 'no managed memory' --fork -m managed -l vector-8 --sizes 8 || return 1
    [ ! -e /dev/nvidiactl ] || return 0
    gpu=cuda p2p_fails_with 'there is no GPU' --fork -m gpu -l vector-8 --sizes 8
}

test_installed_libraries_need_no_ucx_and_no_driver() {
    local library
    for library in libcuda_nc.so libcuda_nc_preload.so ucx-cuda-nc/libuct_cudanc.so.0; do
        [ -f "$HOME_DIR/lib/$library" ] || return 1
        needed "$HOME_DIR/lib/$library" | grep -E '^lib(uc[pstm]|cuda|mpi|open)' |
            grep -v '^libcuda_nc\.so' && return 1
    done
    return 0
}
test_shim_needs_the_c_library_alone() {
    [ -f "$HOME_DIR/lib/libcuda_nc_preload.so" ] &&
        [ -z "$(needed "$HOME_DIR/lib/libcuda_nc_preload.so" | grep -vE '^lib(c|dl)\.so')" ]
}
test_module_is_a_plain_file_of_the_right_name() {
    local file=$HOME_DIR/lib/ucx-cuda-nc/libuct_cudanc.so.0
    [ -f "$file" ] && [ ! -L "$file" ] && readelf -d "$file" | grep NODELETE >/dev/null
}
test_library_exports_only_its_own_names() {
    local names
    names=$(nm -D --defined-only "$HOME_DIR/lib/libcuda_nc.so" | awk '{print $3}' |
        grep -v '^cuda_nc_' | grep -v '@@*')
    [ -z "$names" ] || { echo "$names" && return 1; }
}
test_module_finds_its_library() {
    # All of the output is read: grep -q would end ldd by SIGPIPE, and pipefail the test.
    env -u LD_LIBRARY_PATH ldd "$HOME_DIR/lib/ucx-cuda-nc/libuct_cudanc.so.0" |
        grep "libcuda_nc.so.0 => $HOME_DIR" >/dev/null
}
test_everything_loads_without_a_driver() {
    local library
    for library in libcuda_nc.so libcuda_nc_preload.so ucx-cuda-nc/libuct_cudanc.so.0; do
        python3 -c 'import ctypes, os, sys; ctypes.CDLL(sys.argv[1], os.RTLD_NOW)' \
            "$HOME_DIR/lib/$library" || return 1
    done
}
test_shim_harms_no_other_program() {
    [ "$(LD_PRELOAD=$HOME_DIR/lib/libcuda_nc_preload.so sh -c 'echo fine' 2>&1)" = fine ] &&
        [ "$(LD_PRELOAD=$HOME_DIR/lib/libcuda_nc_preload.so python3 -c 'print(6 * 7)' 2>&1)" = 42 ]
}
test_shim_alone_without_its_library() {
    cp "$HOME_DIR/lib/libcuda_nc_preload.so" "$WORK/"
    cp "$ROOT/test/scripts/vector.cc" "$WORK/alone.cc"
    (
        CUDA_NC_QUIET=1 . "$ROOT/contrib/env.sh"
        unset UCX_PLUGIN_PATH
        mpicxx -O1 "$WORK/alone.cc" -o "$WORK/alone" &&
            mpirun -np 2 -x LD_PRELOAD="$WORK/libcuda_nc_preload.so" "$WORK/alone" | grep RIGHT >/dev/null
    )
}

test_mpicxx_and_mpirun_work_at_once() {
    cp "$ROOT/test/scripts/vector.cc" "$WORK/a.cc"
    (
        cd "$WORK" && . "$ROOT/contrib/env.sh" >/dev/null &&
            mpicxx a.cc && mpirun -np 2 ./a.out | grep RIGHT >/dev/null
    )
}
test_a_job_says_what_was_served() {
    cp "$ROOT/test/scripts/vector.cc" "$WORK/s.cc"
    (
        cd "$WORK" && . "$ROOT/contrib/env.sh" >/dev/null && mpicxx s.cc -o s &&
            UCX_CUDA_NC_STATS=y mpirun -np 2 ./s >out.txt 2>&1
        cat out.txt
        grep -q RIGHT out.txt && grep -q strided out.txt && ! grep -q unused out.txt
    )
}
# settings_are_known ENVIRONMENT: UCX lists our settings, and warns of a wrong name alone.
settings_are_known() {
    local ucx
    ucx=$(echo "$LOCAL"/venv/lib/python3*/site-packages/libucx)
    export LD_LIBRARY_PATH=$ucx/lib:$HOME_DIR/lib
    env "$1" "$ucx/bin/ucx_info" -c -f | grep -B5 '^UCX_CUDA_NC_STATS=n' | grep 'Print at exit' &&
        env "$1" UCX_CUDA_NC_STATS=n UCX_CUDA_NC_STAT=n timeout 60 "$ucx/bin/ucx_perftest" -l \
            -t tag_lat -n 100 >"$WORK/known.txt" 2>&1 &&
        cat "$WORK/known.txt" &&
        grep 'unused environment variable: UCX_CUDA_NC_STAT ' "$WORK/known.txt"
}
# Name and default, which the README's table and the manual's begin their rows with.
test_settings_and_their_defaults_are_documented() {
    local name value number=0 missing=0
    while IFS='=' read -r name value; do
        number=$((number + 1))
        grep -E "^\| .(UCX_CUDA_NC_)?${name#UCX_CUDA_NC_}. \| ($value )?\|" \
            "$ROOT/README.md" "$ROOT/docs/manual.md" ||
            { echo "no row: $name=$value" && missing=1; }
    done < <(env -i "$HOME_DIR/bin/nc_info" --settings | grep '^UCX_CUDA_NC_')
    [ $number -gt 20 ] && [ $missing = 0 ]
}
test_settings_are_known_to_ucx_with_the_module() {
    settings_are_known UCX_PLUGIN_PATH="$HOME_DIR/lib/ucx-cuda-nc"
}
test_settings_are_known_to_ucx_with_the_shim() {
    settings_are_known LD_PRELOAD="$HOME_DIR/lib/libcuda_nc_preload.so"
}
test_pkg_config_builds_a_c_program() {
    cat >"$WORK/v.c" <<'END'
#include <stdio.h>
#include <cuda_nc/cuda_nc.h>
int main(void) { return puts(cuda_nc_version()) < 0; }
END
    # shellcheck disable=SC2046
    cc "$WORK/v.c" -o "$WORK/v" $(sourced sh 'pkg-config --cflags --libs cuda_nc') &&
        [ "$(LD_LIBRARY_PATH=$HOME_DIR/lib "$WORK/v")" = "$(sourced sh 'pkg-config --modversion cuda_nc')" ]
}
test_setup_explains_wrong_options() {
    "$ROOT/contrib/setup.sh" --nonsense | grep usage >/dev/null
    [ "${PIPESTATUS[0]}" = 2 ]
}

failed=0
for name in $(declare -F | awk '$3 ~ /^test_/ {print $3}'); do
    log=$WORK/$name.log
    # shellcheck disable=SC2163
    export -f "$name" sourced needed env_works_in settings_are_known perftest \
        perftest_fails_with output_is_missed script_fails_with perftest_p2p p2p_fails_with \
        children_of result tuned application_layouts
    timeout -k 5 120 bash -uo pipefail -c "$name" >"$log" 2>&1 </dev/null
    case $? in
    0) echo "PASS ${name#test_}" ;;
    *)
        echo "FAIL ${name#test_}"
        sed 's/^/    /' "$log" | tail -n 20
        failed=1
        ;;
    esac
done
exit $failed
