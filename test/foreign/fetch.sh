#!/usr/bin/env bash
# Brings the test suites of others to .local/foreign; nothing of them is committed.
#
# usage: test/foreign/fetch.sh mpi4py
#        test/foreign/fetch.sh mpich-tests NAME MPICC    MPICH's tests, built with this compiler
#        test/foreign/fetch.sh nixl VERSION [REPOSITORY REVISION]
#                NIXL's Python tests and examples, of VERSION's tag at GitHub or of a revision elsewhere
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../contrib/lib.sh"
FOREIGN=$LOCAL/foreign
MPI4PY=4.1.2
# What NIXL's tests import. It is the usual build, with CUDA's libraries: 5 GB.
TORCH=2.14.1
PYTEST_TIMEOUT=2.4.0
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

# PyPI has NIXL's wheels alone, so its tests come from git. What is there for this version stays,
# whatever its revision, unless a repository is named.
need_nixl() { # VERSION [REPOSITORY REVISION]
    local to=$FOREIGN/nixl version=$1 repository=${2:-} revision=${3:-v$1} packages
    packages="$version $TORCH $PYTEST_TIMEOUT"
    if [ -z "$repository" ]; then
        stamp_is "$to/.installed" "$packages" && return
        repository=https://github.com/ai-dynamo/nixl
    fi
    command -v git >/dev/null || die "NIXL's tests come from its git repository: git is not here"
    if ! GIT_TERMINAL_PROMPT=0 timeout 60 git ls-remote -q "$repository" HEAD >/dev/null 2>&1; then
        # The status by which a test is skipped.
        echo "NIXL's tests cannot be fetched: $repository is out of reach; test/foreign/fetch.sh nixl" \
            "$version REPOSITORY REVISION takes another one"
        exit 77
    fi
    say "fetching NIXL's tests, $revision of $repository, into $to"
    rm -rf "$to/.installed" "$to/source"
    mkdir -p "$to/source"
    logged git-nixl git -C "$to/source" init -q
    logged git-nixl git -C "$to/source" fetch -q --depth 1 "$repository" "$revision"
    git -C "$to/source" archive FETCH_HEAD test/python examples/python | tar -x -C "$to/source"
    git -C "$to/source" rev-parse FETCH_HEAD >"$to/revision"
    rm -rf "$to/source/.git"
    if ! stamp_is "$to/package/.installed" "$packages"; then
        say "installing PyTorch and what else NIXL's tests import from PyPI into $to"
        rm -rf "$to/package"
        logged pip-nixl "$VENV/bin/python3" -m pip install --no-input --no-deps --no-compile \
            --target "$to/package" "nixl==$version" "pytest-timeout==$PYTEST_TIMEOUT"
        logged pip-nixl-torch "$VENV/bin/python3" -m pip install --no-input --no-compile \
            --no-cache-dir --target "$to/package" "torch==$TORCH"
        stamp "$to/package/.installed" "$packages"
    fi
    stamp "$to/.installed" "$packages"
}

case ${1:-} in
mpi4py) need_mpi4py ;;
mpich-tests) need_mpich_tests "$2" "$3" ;;
nixl) shift && need_nixl "$@" ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
