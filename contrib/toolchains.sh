# shellcheck shell=bash
# Compilers beside the machine's own: CUDA 12's, and one for 64-bit Arm. Sourced by lib.sh.

# PyPI has no nvcc of CUDA 12; Debian 13 packs that of 12.4. Of the static runtime PyPI has 12.9 alone;
# all of a major release go together.
CUDA12_SUITE=trixie
CUDA12_HEADERS=('nvidia-cuda-nvcc-cu12==12.4.*' 'nvidia-cuda-runtime-cu12==12.4.*' 'nvidia-nvtx-cu12==12.4.*')
CUDA12_RUNTIME='nvidia-cuda-runtime-cu12==12.9.*'
# googletest: its sources, which are compiled for Arm here.
ARM64_PACKAGES=(g++-aarch64-linux-gnu qemu-user-static googletest)
ARM64=aarch64-linux-gnu

# The mirror that this Debian uses.
debian_mirror() {
    # shellcheck disable=SC1091,SC2016
    (. /etc/os-release && [ "$ID" = debian ] &&
        apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
        sed -n "s/^$VERSION_CODENAME main //p" | head -n 1)
}

# private_apt DIR LINE: folders and a configuration, DIR/apt.conf, with which apt knows this source
# alone and installs nothing.
private_apt() {
    mkdir -p "$1/lists/partial" "$1/archives/partial" "$1/state"
    touch "$1/status"
    echo "$2" >"$1/sources.list"
    cat >"$1/apt.conf" <<END
Dir::State "$1/state"; Dir::State::lists "$1/lists"; Dir::State::status "$1/status";
Dir::Cache "$1"; Dir::Etc::sourcelist "$1/sources.list"; Dir::Etc::sourceparts "-";
APT::Sandbox::User "";
END
}

# unpack_nvcc12 DIR: Debian 13's compiler into DIR, in the order of NVIDIA's toolkits. Nothing is
# installed: apt has folders of its own.
unpack_nvcc12() {
    local to=$1 work=$1.apt mirror packed
    mirror=$(debian_mirror || true)
    [ -n "$mirror" ] ||
        die "no nvcc of CUDA 12 here: please name a toolkit by CUDA_NC_CUDA=DIR (Ubuntu 24.04 has 12.0 in nvidia-cuda-toolkit)"
    rm -rf "$work"
    private_apt "$work" \
        "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $CUDA12_SUITE non-free"
    say "unpacking Debian 13's nvcc into $to"
    (
        export APT_CONFIG=$work/apt.conf
        cd "$work" || exit
        logged apt-update-cuda12 apt-get update
        logged apt-cuda12 apt-get download nvidia-cuda-toolkit
    )
    logged dpkg-cuda12 dpkg-deb -x "$work"/nvidia-cuda-toolkit_*.deb "$work/package"
    packed=$work/package/usr
    mkdir -p "$to/bin" "$to/nvvm/bin"
    mv "$packed"/bin/{cudafe++,fatbinary,ptxas,nvlink,bin2c,cuobjdump} \
        "$packed"/lib/nvidia-cuda-toolkit/bin/{nvcc,crt} "$to/bin"
    mv "$packed/lib/nvidia-cuda-toolkit/bin/cicc" "$to/nvvm/bin"
    mv "$packed/lib/nvidia-cuda-toolkit/libdevice" "$to/nvvm"
    rm -rf "$work"
    # Debian's names its own folders; nvcc expands $(...).
    cat >"$to/bin/nvcc.profile" <<'END'
TOP = $(_HERE_)/..
CICC_PATH = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(CICC_PATH):$(_HERE_):
INCLUDES += "-I$(TOP)/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/lib"
END
}

# unpack_wheels TO REQUIREMENT...: their folders include and lib, all in one.
unpack_wheels() {
    local to=$1 wheels=$1.wheels part
    shift
    say "unpacking from PyPI into $to: $*"
    rm -rf "$wheels"
    logged pip-cuda12 "$VENV/bin/python3" -m pip install --disable-pip-version-check --no-input \
        --no-deps --target "$wheels" "$@"
    mkdir -p "$to/include" "$to/lib"
    for part in "$wheels"/nvidia/*/; do
        [ ! -d "$part/include" ] || cp -r "$part/include/." "$to/include"
        [ ! -d "$part/lib" ] || cp -r "$part/lib/." "$to/lib"
    done
    rm -rf "$wheels"
}

# Sets CUDA_DIR to a toolkit of CUDA 12: the system's, else one put together in $LOCAL/cuda12.
need_cuda12() {
    local candidate version
    while read -r candidate; do
        if "$candidate/bin/nvcc" --version | grep -q 'release 12\.' && nvcc_works "$candidate"; then
            say "using the nvcc of $candidate"
            CUDA_DIR=$candidate
            return
        fi
    done < <(cuda_candidates)
    CUDA_DIR=$LOCAL/cuda12
    version=$(hash_of "$CUDA12_SUITE" "${CUDA12_HEADERS[@]}" "$CUDA12_RUNTIME")
    stamp_is "$CUDA_DIR/.installed" "$version" && return
    rm -rf "$CUDA_DIR" "$CUDA_DIR.runtime"
    unpack_nvcc12 "$CUDA_DIR"
    unpack_wheels "$CUDA_DIR" "${CUDA12_HEADERS[@]}"
    unpack_wheels "$CUDA_DIR.runtime" "$CUDA12_RUNTIME"
    mv "$CUDA_DIR.runtime/lib/libcudart_static.a" "$CUDA_DIR/lib"
    rm -rf "$CUDA_DIR.runtime"
    nvcc_works "$CUDA_DIR" || die "the nvcc in $CUDA_DIR does not build a test program"
    stamp "$CUDA_DIR/.installed" "$version"
}

# GoogleTest for Arm, in $LOCAL/gtest-arm64.
need_arm64() {
    local to=$LOCAL/gtest-arm64 from=/usr/src/googletest/googletest part
    need_packages "${ARM64_PACKAGES[@]}"
    [ ! -f "$to/.built" ] || return 0
    mkdir -p "$to/lib"
    for part in gtest-all gtest_main; do
        logged "$part-arm64" "$ARM64-g++" -std=c++17 -O1 -I"$from" -I"$from/include" \
            -c "$from/src/$part.cc" -o "$to/$part.o"
    done
    "$ARM64-ar" rcs "$to/lib/libgtest.a" "$to/gtest-all.o"
    "$ARM64-ar" rcs "$to/lib/libgtest_main.a" "$to/gtest_main.o"
    stamp "$to/.built" 1
}
