#!/usr/bin/env bash
# What a job that sends no derived datatype pays for ucx-cuda-nc: the latency of 8-byte messages
# stock, with the plugin, and with the shim preloaded, in turns. Best of all turns, nanoseconds.
#
# usage: bench/idle_cost.sh [turns]
#   CUDA_NC_HOME  the installed prefix; MPICXX and MPIRUN name another MPI library's programs
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=${CUDA_NC_HOME:?is not set: the prefix that ucx-cuda-nc is installed in}
turns=${1:-10}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
program=${IDLE_COST:-$scratch/idle_cost}
[ -x "$program" ] || "${MPICXX:-mpicxx}" -O2 -std=c++17 -I"$here/../src" "$here/idle_cost.cc" -o "$program"
unset UCX_PLUGIN_PATH LD_PRELOAD

run() { # LABEL VARIABLE=VALUE...
    env "${@:2}" "${MPIRUN:-mpirun}" -np 2 "$program" --label "$1" >>"$scratch/lines"
}

for ((turn = 0; turn < turns; ++turn)); do
    run stock NOTHING=
    run plugin UCX_PLUGIN_PATH="$home/lib/ucx-cuda-nc"
    run shim LD_PRELOAD="$home/lib/libcuda_nc_preload.so"
done

best() { # LABEL MEMBER
    grep "\"label\": \"$1\"" "$scratch/lines" | sed "s/.*\"$2\": \([0-9.]*\).*/\1/" | sort -g |
        head -n 1
}

printf '%-8s %20s %12s\n' '' 'half round trip, ns' 'to self, ns'
for label in stock plugin shim; do
    printf '%-8s %20s %12s\n' "$label" "$(best "$label" half_round_trip_ns)" \
        "$(best "$label" self_ns)"
done
