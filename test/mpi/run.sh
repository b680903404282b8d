#!/usr/bin/env bash
# The MPI tests, after contrib/setup.sh: prints PASS, FAIL or SKIP, a name, and a reason, line by
# line; exit status 1 where one failed.
#
# usage: test/mpi/run.sh [--full]
#
# Each test runs under Open MPI 5 with UCX 1.22 (loaded by UCX_PLUGIN_PATH and by the shim) and,
# where a system Open MPI 4 is installed, under that with UCX 1.22 and with the system's own UCX.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CUDA_NC_QUIET=1 . "$root/contrib/env.sh"
local_dir=${CUDA_NC_LOCAL:-$root/.local}
work=$local_dir/mpi-tests
logs=$local_dir/log/mpi
mkdir -p "$work" "$logs"

# Random types of each test, and the first seed: each test has its own types, CI the same ones in
# every run.
types=2000
seed=20261121
full=
[ "${1:-}" != --full ] || full=--full types=20000 seed=$(date +%s)
all_types=0
limit=${full:+1200}
limit=${limit:-180}

plugin=$UCX_PLUGIN_PATH
shim=$CUDA_NC_HOME/lib/libcuda_nc_preload.so
with_ucx=$LD_LIBRARY_PATH
without_ucx=$CUDA_NC_HOME/lib
unset UCX_PLUGIN_PATH
# Both names: Open MPI 5 and 4.
export OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export OMPI_MCA_mpi_yield_when_idle=1 UCX_WARN_UNUSED_ENV_VARS=n
export UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_SIM_DELAY=20
failed=0
each_rank=() # what runs the program in each rank

# check NAME COMMAND...: one test with a time limit.
check() {
    local name=$1 log=$logs/$1.log status=0
    shift
    timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null || status=$?
    if [ "$status" = 0 ]; then
        echo "PASS $name"
    else
        failed=1
        echo "FAIL $name (status $status)"
        grep -vE '^(--|$)' "$log" | head -n 12 | sed 's/^/    /'
    fi
}

# right JSON: runs the layouts program; a wrong byte fails.
layouts() {
    local output=$1
    shift
    rm -f "$output"
    "$@" --output "$output" --quick && grep -q '"wrong_bytes": 0}' "$output"
}
export -f layouts

# random_types NAME COUNT MEMORY MPIRUN...: COUNT random types between two ranks.
random_types() {
    local name=$1 count=$2 memory=$3
    shift 3
    seed=$((seed + 1))
    all_types=$((all_types + count))
    check "random_types-$name-${memory/,/-}" "$@" -np 2 "$programs/random-types" \
        --types "$count" --seed "$seed" --memory "$memory"
}

# local_calls NAME MEMORY MPIRUN...: random types packed, buffered and copied instead of sent.
local_calls() {
    local name=$1 memory=$2
    shift 2
    check "local_calls-$name-${memory/,/-}" "$@" -np 2 "$programs/random-types" --local \
        --types $((types / 2)) --seed "$((seed += 1))" --memory "$memory"
}

# operations NAME MEMORY KIND RANKS MPIRUN...: the subtests of one kind, each a line. Where one ends
# the program by a crash or a hang, the program starts again behind it.
operations() {
    local name=$1-${2/,/-} log=$logs/operations-$3-$1-${2/,/-}.log after='' last line
    local arguments=(--memory "$2" --kind "$3" ${full:+--full --limit 300})
    local command=("${@:5}" -np "$4" "${each_rank[@]}" "$programs/operations-test")
    while :; do
        timeout -k 10 1200 "${command[@]}" "${arguments[@]}" ${after:+--after "$after"} \
            >"$log${after:+.$after}" 2>&1 </dev/null
        last=$(sed -n 's/^RUN //p' "$log${after:+.$after}" | tail -n 1)
        while read -r line; do
            subtest_line "$name" "$line"
        done < <(grep -aE '^(PASS|FAIL|SKIP) ' "$log${after:+.$after}" |
            sort -u -k 2,2) # several ranks may report one failure
        if grep -aq '^END' "$log${after:+.$after}"; then
            return
        fi
        if ! grep -aq "^\(PASS\|FAIL\) $last\(:\|$\)" "$log${after:+.$after}"; then
            subtest_line "$name" "FAIL ${last:-start of operations}: the program ended"
        fi
        tail -n 60 "$log${after:+.$after}" | sed 's/^/    /'
        if [ "$last" = "$after" ]; then
            return
        fi
        after=$last
    done
}

subtest_line() { # CONFIGURATION LINE: with the configuration behind the subtest's name
    local rest=${2#* } word=${2%% *}
    local subtest=${rest%%:*}
    if [ "$word" = FAIL ]; then
        failed=1
    fi
    echo "$word $subtest-$1${rest#"$subtest"}"
}

all_operations() { # NAME MEMORY MPIRUN...
    operations "$1" "$2" pair 2 "${@:3}"
    operations "$1" "$2" threads 2 "${@:3}"
    operations "$1" "$2" collective 4 "${@:3}"
}

compile() { # SUFFIX MPICXX
    make -s -C "$root/bench" -f mpi_layouts.mk MPICXX="$2" OUTPUT="$work/mpi_layouts-$1" \
        >"$logs/build-$1.log" 2>&1 &&
        make -s -j2 -C "$root/test/mpi" -f programs.mk MPICXX="$2" OUTPUT="$work/$1" \
            >>"$logs/build-$1.log" 2>&1 &&
        { [ "$1" = 5 ] || make -s -C "$local_dir/build" "nc_perftest_mpi-$1" "MPI_SUFFIX=-$1" \
            MPICXX="$2" >>"$logs/build-$1.log" 2>&1; }
}

# suite NAME SUFFIX MPIRUN...: the tests under one MPI, with the environment as it is.
suite() {
    local name=$1 suffix=$2 memory layout
    programs=$work/$2
    shift 2
    for memory in host sim sim,host; do
        all_operations "$name" "$memory" "$@"
    done
    [ "$name" != ompi5-shim ] || return
    for memory in host sim sim,host; do
        random_types "$name" "$types" "$memory" "$@"
    done
    for memory in host sim,host; do
        local_calls "$name" "$memory" "$@"
    done
    for memory in host sim; do
        for layout in vector-8B triangle transpose face-x struct random-64B; do
            check "layout-$layout-$name-$memory" bash -c 'layouts "$@"' - \
                "$work/$name-$layout-$memory.json" "$@" -np 2 "$work/mpi_layouts-$suffix" \
                --memory "$memory" --layout "$layout"
        done
    done
}

# over_transport NAME SUFFIX WAY MPIRUN...: the operations, on two GPUs; messages go that way.
over_transport() {
    local name=$1 way=$3 memory
    local each_rank=(bash -c
        'UCX_CUDA_NC_SIM_DEVICE=$((OMPI_COMM_WORLD_RANK % 2)) exec "$@"' -)
    programs=$work/$2
    shift 3
    for memory in sim sim,host; do
        UCX_CUDA_NC_TRANSPORT=y UCX_CUDA_NC_STATS=y all_operations "$name" "$memory" "$@"
    done
    check "messages-go-by-$way-$name" \
        grep -a "GPU to GPU: sent .*[1-9][0-9]* by $way, .*received" \
        "$logs/operations-pair-$name-sim.log"
}

# without_ucp NAME MPIRUN...: messages that do not go through UCX reach us by the convertor alone.
without_ucp() {
    local name=$1 memory
    programs=$work/5
    [ "$name" != ompi4-ob1 ] || programs=$work/4
    shift
    for memory in sim sim,host; do
        OMPI_MCA_pml=ob1 operations "$name" "$memory" pair 2 "$@"
    done
}

# nc_perftest mpi under one MPI: every test at least once, spoilt bytes are seen.
perftest_sees() { # COMMAND...
    "$@" --inject gap 2>&1 | grep WRONG >/dev/null
}
export -f perftest_sees
perftest() { # NAME SUFFIX MPIRUN...
    local name=$1 program=$CUDA_NC_HOME/bin/nc_perftest_mpi memories='host sim' memory
    [ "$2" = 5 ] || program=$local_dir/build/nc_perftest_mpi-$2
    [ "$name" != ompi5-stock ] || memories=host
    shift 2
    for memory in $memories; do
        check "perftest-$name-$memory" "$@" -np 3 "$program" -m "${memory/sim/gpu}" \
            --sizes 1K,100K -l vector-8 -l triangle:100,8 -l plane-x --window 4 --box 8 --halo 2 \
            -t latency,bandwidth,bidir,pairs,pairs-bidir,halo6,halo26 --seconds 0.01
        check "perftest-alone-$name-$memory" "$@" -np 1 "$program" -m "${memory/sim/gpu}" \
            --box 8 --halo 2 -t halo6,halo26 --seconds 0.01
    done
    [ "$name" = ompi5-stock ] ||
        check "perftest-mixed-$name" "$@" -np 2 "$program" -m gpu,host --sizes 1K,100K \
            -l vector-8 -t latency --seconds 0.01
    check "perftest-wrong-bytes-$name" bash -c 'perftest_sees "$@"' - "$@" -np 2 "$program" \
        -m host --sizes 4K -l vector-8 -t latency --seconds 0.01
}

. "$root/test/mpi/loading.sh"

# What the manual says of Open MPI 5.0.11 itself, and of the cure. "WRONG" must be said, not only a
# bad exit status seen.
stock_is_wrong() {
    local output
    output=$("$@")
    grep -q '^WRONG sent' <<<"$output" && grep -q '^WRONG packed' <<<"$output"
}
export -f stock_is_wrong
wrong_bytes() {
    programs=$work/5
    UCX_PLUGIN_PATH=$plugin check wrong-bytes-cured-by-plugin mpirun -np 2 \
        "$programs/stock-wrong-bytes"
    LD_PRELOAD=$shim check wrong-bytes-cured-by-shim mpirun -np 2 "$programs/stock-wrong-bytes"
    check wrong-bytes-of-stock bash -c 'stock_is_wrong "$@"' - mpirun -np 2 \
        "$programs/stock-wrong-bytes"
}

if compile 5 mpicxx; then
    export LD_LIBRARY_PATH=$with_ucx
    wrong_bytes
    loading_tests
    perftest ompi5-stock 5 mpirun
    UCX_PLUGIN_PATH=$plugin perftest ompi5-plugin 5 mpirun
    UCX_PLUGIN_PATH=$plugin UCX_CUDA_NC_TRANSPORT=y perftest ompi5-transport 5 mpirun
    UCX_PLUGIN_PATH=$plugin over_transport ompi5-transport 5 pull mpirun
    UCX_PLUGIN_PATH=$plugin suite ompi5-plugin 5 mpirun
    LD_PRELOAD=$shim suite ompi5-shim 5 mpirun
    LD_PRELOAD=$shim without_ucp ompi5-ob1 mpirun
    LD_PRELOAD=$shim random_types ompi5-shim "$types" sim mpirun
    export UCX_PLUGIN_PATH=$plugin
    LD_PRELOAD=$shim random_types ompi5-both 500 sim mpirun
    UCX_TLS=tcp,self random_types ompi5-tcp 500 sim mpirun
    UCX_CUDA_NC_STAGING_SIZE=64K random_types ompi5-small-staging 500 sim mpirun
    UCX_CUDA_NC_SIM_FAULTS=pinned:1+ random_types ompi5-no-pinned-memory 100 sim mpirun
    unset UCX_PLUGIN_PATH
else
    failed=1
    echo "FAIL build-ompi5"
fi

if command -v mpirun.openmpi >/dev/null && command -v mpicxx.openmpi >/dev/null; then
    if compile 4 mpicxx.openmpi; then
        LD_LIBRARY_PATH=$without_ucx LD_PRELOAD=$shim perftest ompi4-system-ucx 4 mpirun.openmpi
        LD_LIBRARY_PATH=$with_ucx UCX_PLUGIN_PATH=$plugin UCX_CUDA_NC_PULL_MAX=0 \
            over_transport ompi4-transport 4 pipe mpirun.openmpi
        LD_LIBRARY_PATH=$with_ucx UCX_PLUGIN_PATH=$plugin suite ompi4-ucx1.22 4 mpirun.openmpi
        LD_LIBRARY_PATH=$without_ucx LD_PRELOAD=$shim suite ompi4-system-ucx 4 mpirun.openmpi
        LD_LIBRARY_PATH=$without_ucx LD_PRELOAD=$shim without_ucp ompi4-ob1 mpirun.openmpi
    else
        failed=1
        echo "FAIL build-ompi4"
    fi
else
    echo "SKIP ompi4: no system Open MPI 4 is installed"
fi
echo "$all_types random types in all"
exit $failed
