#!/usr/bin/env bash
# Sets up what is missing, builds, and shows the main job: an unmodified Open MPI sends derived
# datatypes between two ranks, stock and with the plugin, every byte checked; a table and a picture.
#
# usage: contrib/demo.sh [--host] [--quick]
#   --host    host memory even where there is a GPU
#   --quick   fewer repetitions
#
# Results: .local/demo/{stock,ours}.jsonl, layouts.png
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

memory=host
options=()
! have_gpu || memory=cuda
for argument; do
    case $argument in
    --host) memory=host ;;
    --quick) options+=(--quick) ;;
    *)
        sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
    esac
done

started=$SECONDS
setup library
DEMO=$LOCAL/demo
mkdir -p "$DEMO"
CUDA_NC_QUIET=1 . "$ROOT/contrib/env.sh"
say "building the demo program"
logged demo-build make -C "$ROOT/bench" -f mpi_layouts.mk MPICXX=mpicxx \
    OUTPUT="$DEMO/mpi_layouts"
say "set-up and build took $((SECONDS - started)) s; now the measurement"

# one WHO LAYOUT: a process pair of its own, so that a crash ends this layout alone.
one() {
    local who=$1 layout=$2 status=0 log=$LOGS/demo-$1-$2.log
    timeout -k 10 180 mpirun -np 2 "$DEMO/mpi_layouts" --label "$who" --memory "$memory" \
        --layout "$layout" --output "$DEMO/$who.jsonl" "${options[@]}" \
        >"$log" 2>&1 </dev/null || status=$?
    [ "$status" != 0 ] || return 0
    local why="ended by status $status"
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then
        why='no end within 180 s'
    elif grep -qiE 'segmentation fault|signal 11|SIGSEGV' "$log"; then
        why='crashed (SIGSEGV)'
    fi
    printf '{"label": "%s", "memory": "%s", "layout": "%s", "error": "%s"}\n' \
        "$who" "$memory" "$layout" "$why" >>"$DEMO/$who.jsonl"
}

mapfile -t layouts < <("$DEMO/mpi_layouts" --list)
[ ${#layouts[@]} -gt 0 ] || die "the demo program lists no layouts"
rm -f "$DEMO"/*.jsonl
for layout in "${layouts[@]}"; do
    say "$layout in $memory memory"
    (unset UCX_PLUGIN_PATH LD_PRELOAD && one stock "$layout")
    one ours "$layout"
done

status=0
"$VENV/bin/python3" "$ROOT/contrib/demo_report.py" --stock "$DEMO/stock.jsonl" \
    --ours "$DEMO/ours.jsonl" --png "$DEMO/layouts.png" || status=$?
say "picture: $DEMO/layouts.png ($((SECONDS - started)) s since the start)"
say "now the tools nc_info and nc_perftest, which the demo did not need"
setup
exit $status
