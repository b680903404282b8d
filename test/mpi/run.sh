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

types=800
[ "${1:-}" != --full ] || types=20000

plugin=$UCX_PLUGIN_PATH
shim=$CUDA_NC_HOME/lib/libcuda_nc_preload.so
with_ucx=$LD_LIBRARY_PATH
without_ucx=$CUDA_NC_HOME/lib
unset UCX_PLUGIN_PATH
# Both names: Open MPI 5 and 4.
export OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export OMPI_MCA_mpi_yield_when_idle=1 UCX_WARN_UNUSED_ENV_VARS=n
export UCX_CUDA_NC_SIM_DELAY=20
failed=0

# check NAME COMMAND...: one test with a time limit.
check() {
    local name=$1 log=$logs/$1.log status=0
    shift
    timeout -k 10 180 "$@" >"$log" 2>&1 </dev/null || status=$?
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

compile() { # SUFFIX MPICXX
    make -s -C "$root/bench" -f mpi_layouts.mk MPICXX="$2" OUTPUT="$work/mpi_layouts-$1" \
        >"$logs/build-$1.log" 2>&1 &&
        "$2" -std=c++17 -O2 -Wall -Wextra -I"$root/test/mpi" "$root/test/mpi/random_types.cc" \
            "$root"/test/mpi/support/*.cc -o "$work/random_types-$1" -ldl \
            >>"$logs/build-$1.log" 2>&1
}

# suite NAME SUFFIX MPIRUN...: the tests under one MPI, with the environment as it is.
suite() {
    local name=$1 suffix=$2 memory layout
    shift 2
    for memory in host sim sim,host; do
        check "random_types-$name-${memory/,/-}" env UCX_CUDA_NC_GPU="${gpu:-sim}" \
            "$@" -np 2 "$work/random_types-$suffix" --types "$types" --memory "$memory"
    done
    for memory in host sim; do
        for layout in vector-8B triangle transpose face-x struct random-64B; do
            check "layout-$layout-$name-$memory" env UCX_CUDA_NC_GPU=sim bash -c 'layouts "$@"' - \
                "$work/$name-$layout-$memory.json" "$@" -np 2 "$work/mpi_layouts-$suffix" \
                --memory "$memory" --layout "$layout"
        done
    done
}

if compile 5 mpicxx; then
    export LD_LIBRARY_PATH=$with_ucx
    UCX_PLUGIN_PATH=$plugin suite ompi5-plugin 5 mpirun
    check random_types-ompi5-shim-sim env UCX_CUDA_NC_GPU=sim LD_PRELOAD="$shim" \
        mpirun -np 2 "$work/random_types-5" --types "$types" --memory sim
    check random_types-ompi5-both-sim env UCX_CUDA_NC_GPU=sim LD_PRELOAD="$shim" \
        UCX_PLUGIN_PATH="$plugin" mpirun -np 2 "$work/random_types-5" --types 500 --memory sim
    check random_types-ompi5-tcp-sim env UCX_CUDA_NC_GPU=sim UCX_TLS=tcp,self \
        UCX_PLUGIN_PATH="$plugin" mpirun -np 2 "$work/random_types-5" --types 500 --memory sim
    check random_types-ompi5-small-staging env UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_STAGING_SIZE=64K \
        UCX_PLUGIN_PATH="$plugin" mpirun -np 2 "$work/random_types-5" --types 500 --memory sim
    check random_types-ompi5-no-pinned-memory env UCX_CUDA_NC_GPU=sim \
        UCX_CUDA_NC_SIM_FAULTS=pinned:1+ UCX_PLUGIN_PATH="$plugin" \
        mpirun -np 2 "$work/random_types-5" --types 100 --memory sim
else
    failed=1
    echo "FAIL build-ompi5"
fi

if command -v mpirun.openmpi >/dev/null && command -v mpicxx.openmpi >/dev/null; then
    if compile 4 mpicxx.openmpi; then
        LD_LIBRARY_PATH=$with_ucx UCX_PLUGIN_PATH=$plugin suite ompi4-ucx1.22 4 mpirun.openmpi
        LD_LIBRARY_PATH=$without_ucx LD_PRELOAD=$shim suite ompi4-system-ucx 4 mpirun.openmpi
    else
        failed=1
        echo "FAIL build-ompi4"
    fi
else
    echo "SKIP ompi4: no system Open MPI 4 is installed"
fi
exit $failed
