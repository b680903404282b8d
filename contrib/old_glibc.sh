# shellcheck shell=bash
# A compiler whose programs run with glibc 2.28 (RHEL 8, Debian 10, Ubuntu 20.04), on a machine with
# a later one. To be sourced after lib.sh.
#
# The compiler is the machine's own g++. Headers and libraries to link against are those of glibc
# 2.28, as the Zig compiler makes them: PyPI has it, and it knows the symbols of every release. What
# glibc 2.28 lacks is an error of the compiler or the linker. libstdc++ is linked in; what it and its
# headers want of later releases is in old_glibc.c.

OLD_GLIBC_MINOR=28
# The headers of later Zigs declare functions that CUDA 13.0's headers declare otherwise.
ZIG_PACKAGE=ziglang==0.13.0
# Headers without a library, of Debian's packages.
OLD_GLIBC_HEADERS=(CLI fmt gtest nlohmann xxhash.h xxh3.h)

# need_old_glibc DIR PYTHON: DIR/bin/gcc, DIR/bin/g++, DIR/sysroot.
need_old_glibc() {
    local to=$1 python=$2 version name
    version=$(hash_of "$to" "$OLD_GLIBC_MINOR" "$ZIG_PACKAGE" "$(cat "$ROOT"/contrib/old_glibc.*)" \
        "$(g++ -dumpfullversion)" "${OLD_GLIBC_HEADERS[@]}")
    stamp_is "$to/.installed" "$version" && return
    [ "$(uname -m)" = x86_64 ] || die "wheels are made on x86-64 alone"
    say "headers and stubs of glibc 2.$OLD_GLIBC_MINOR into $to"
    rm -rf "$to"
    mkdir -p "$to/bin" "$to/sysroot/usr/include" "$to/sysroot/usr/lib"
    old_glibc_files "$to" "$python"
    old_glibc_headers "$to/sysroot/usr/include"
    for name in gcc g++; do
        # The machine's libgcc_s needs a later glibc than its users do; they may leave nothing open.
        # -fPIC: programs that copy data of the C library would know one of its names alone (environ
        # and __environ are two objects in Zig's stubs).
        printf '#!/bin/sh\nexec %s -fPIC --sysroot=%s -B%s/ -Wl,-z,defs,--allow-shlib-undefined "$@"\n' \
            $name "$to/sysroot" "$to/sysroot/usr/lib" >"$to/bin/$name"
        chmod a+x "$to/bin/$name"
    done
    logged old-glibc "$to/bin/gcc" -O2 -fPIC -Wall -Wextra -Werror -c "$ROOT/contrib/old_glibc.c" \
        -o "$to/old_glibc.o"
    ar q "$to/sysroot/usr/lib/libc_nonshared.a" "$to/old_glibc.o"
    stamp "$to/.installed" "$version"
}

# What Zig has and makes: headers, libc.so.6 and its kin without code, start files.
old_glibc_files() {
    local to=$1 python=$2 include=$1/sysroot/usr/include lib=$1/sysroot/usr/lib cache=$1/cache part
    logged pip-zig "$python" -m pip install --disable-pip-version-check --no-input --no-deps \
        --target "$to/zig" "$ZIG_PACKAGE"
    echo 'int main(void) { return 0; }' >"$to/main.c"
    logged zig env ZIG_GLOBAL_CACHE_DIR="$cache" ZIG_LOCAL_CACHE_DIR="$cache" \
        "$to/zig/ziglang/zig" cc -target "x86_64-linux-gnu.2.$OLD_GLIBC_MINOR" "$to/main.c" \
        -o "$to/main"
    for part in any-linux-any x86-linux-any generic-glibc x86_64-linux-gnu; do
        cp -r "$to/zig/ziglang/lib/libc/include/$part/." "$include"
    done
    find "$cache" -name 'lib*.so.*' -exec cp {} "$lib" ';'
    find "$cache" '(' -name libc_nonshared.a -o -name Scrt1.o ')' -exec cp {} "$lib" ';'
    # Start code for programs at any address serves the others too.
    cp "$lib/Scrt1.o" "$lib/crt1.o"
    cp "$(gcc -print-file-name=crti.o)" "$(gcc -print-file-name=crtn.o)" "$lib"
    for part in m pthread dl rt util resolv; do
        ln -s "$(cd "$lib" && echo lib$part.so.?)" "$lib/lib$part.so"
    done
    # Before the machine's libstdc++.so: libtool does not know -static-libstdc++.
    ln -s "$(g++ -print-file-name=libstdc++.a)" "$lib"
    echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )' >"$lib/libc.so"
    rm -rf "$to/zig" "$cache" "$to/main" "$to/main.c"
}

# Zig gives the release by an option; a header that came later would be believed to be there.
old_glibc_headers() {
    local include=$1 name
    sed -i "0,/^#define\t__GLIBC__\t2\$/s//&\n#define\t__GLIBC_MINOR__\t$OLD_GLIBC_MINOR/" \
        "$include/features.h"
    rm "$include/sys/single_threaded.h"
    for name in "${OLD_GLIBC_HEADERS[@]}"; do
        [ ! -e "/usr/include/$name" ] || ln -s "/usr/include/$name" "$include/$name"
    done
}
