#!/usr/bin/env bash
# Brings the test suites of others to .local/foreign; nothing of them is committed.
#
# usage: test/foreign/fetch.sh mpi4py
#        test/foreign/fetch.sh mpich-tests NAME MPICC    MPICH's tests, built with this compiler
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../contrib/lib.sh"
FOREIGN=$LOCAL/foreign
MPI4PY=4.1.2
# The directories of MPICH's tests that are built; their lists are read by support/foreign.py.
PARTS=(datatype pt2pt)
# Open MPI declares the functions that MPI 3 removed only when asked; it has them.
OLD_CALLS=-DOMPI_OMIT_MPI1_COMPAT_DECLS=0

# The package and its tests: the wheel serves Open MPI and MPICH alike, the source has the tests.
need_mpi4py() {
    local to=$FOREIGN/mpi4py
    stamp_is "$to/.installed" "$MPI4PY" && return
    say "installing mpi4py $MPI4PY and its tests from PyPI into $to"
    rm -rf "$to"
    mkdir -p "$to"
    logged pip-mpi4py "$VENV/bin/python3" -m pip install --no-input --no-deps --only-binary :all: \
        --target "$to/package" "mpi4py==$MPI4PY"
    logged pip-mpi4py-source "$VENV/bin/python3" -m pip download --no-input --no-deps \
        --no-binary mpi4py --dest "$to" "mpi4py==$MPI4PY"
    tar -xf "$to/mpi4py-$MPI4PY.tar.gz" -C "$to" --strip-components=1 "mpi4py-$MPI4PY/test"
    stamp "$to/.installed" "$MPI4PY"
}

# Debian's source package of MPICH, of the release that runs here.
need_mpich_source() {
    local to=$FOREIGN/mpich work=$FOREIGN/mpich.apt mirror
    [ ! -f "$to/.unpacked" ] || return 0
    mirror=$(debian_mirror || true)
    [ -n "$mirror" ] || die "MPICH's tests come from Debian's source package: this is no Debian"
    say "unpacking Debian's source of MPICH into $to"
    rm -rf "$work" "$to"
    private_apt "$work" "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror \
$(. /etc/os-release && echo "$VERSION_CODENAME") main"
    (
        export APT_CONFIG=$work/apt.conf
        cd "$work" || exit
        logged apt-update-mpich apt-get update
        logged apt-mpich apt-get source --download-only mpich
    )
    mkdir -p "$to"
    tar -xf "$work"/mpich_*.orig.tar.* -C "$to" --strip-components=1
    rm -rf "$work"
    stamp "$to/.unpacked" 1
}

need_mpich_tests() { # NAME MPICC
    local to=$FOREIGN/mpich-tests-$1 compiler=$2 part
    [ ! -f "$to/.built" ] || return 0
    need_mpich_source
    say "building MPICH's tests with $compiler in $to"
    rm -rf "$to"
    mkdir -p "$to"
    cd "$to"
    logged "mpich-tests-$1-configure" "$FOREIGN/mpich/test/mpi/configure" CC="$compiler" \
        MPICC="$compiler" --disable-fortran --disable-cxx --disable-spawn --enable-strictmpi \
        --without-cuda --without-ze --without-hip
    logged "mpich-tests-$1-dtpools" make -s -j2 -C dtpools CPPFLAGS="$OLD_CALLS"
    logged "mpich-tests-$1-util" make -s -j2 -C util CPPFLAGS="$OLD_CALLS" libmtest.la \
        libmtest_single.la libdtypes.la
    # A program that this MPI cannot build (it lacks what MPI 3 removed) is a test that is skipped.
    for part in "${PARTS[@]}"; do
        make -s -k -j2 -C "$part" CPPFLAGS="$OLD_CALLS" >"$LOGS/mpich-tests-$1-$part.log" 2>&1 || true
    done
    stamp "$to/.built" 1
}

case ${1:-} in
mpi4py) need_mpi4py ;;
mpich-tests) need_mpich_tests "$2" "$3" ;;
*)
    sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
