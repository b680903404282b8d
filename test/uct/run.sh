#!/usr/bin/env bash
# The transport cuda_nc through each UCX release that it serves, after contrib/setup.sh: prints PASS
# or FAIL and a name, line by line; exit status 1 where one failed.
#
# usage: test/uct/run.sh [--full]
#
# The releases come from PyPI, with the debug information that the tables are compared with.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CUDA_NC_QUIET=1 . "$root/contrib/env.sh"
local_dir=${CUDA_NC_LOCAL:-$root/.local}
releases=$local_dir/ucx
logs=$local_dir/log/uct
plugin=$UCX_PLUGIN_PATH
shim=$CUDA_NC_HOME/lib/libcuda_nc_preload.so
mkdir -p "$releases" "$logs"
unset UCX_PLUGIN_PATH
export UCX_CUDA_NC_GPU=sim UCX_CUDA_NC_SIM_DELAY=20
export OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any
export OMPI_MCA_mpi_yield_when_idle=1
failed=0
types=60
[ "${1:-}" != --full ] || types=2000

# check NAME COMMAND...: one test with a time limit.
check() {
    local name=$1 status=0
    shift
    timeout -k 10 180 "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
    if [ "$status" = 0 ]; then
        echo "PASS $name"
    else
        failed=1
        echo "FAIL $name (status $status)"
        tail -n 5 "$logs/$name.log" | sed 's/^/    /'
    fi
}

fetch() { # RELEASE
    local directory=$releases/$1
    [ ! -f "$directory/.complete" ] || return 0
    rm -rf "$directory" && mkdir -p "$directory" &&
        python3 -m pip download -q --disable-pip-version-check --no-deps -d "$directory" \
            "libucx-cu13==$1" &&
        (cd "$directory" && python3 -m zipfile -e ./*.whl . && rm -f ./*.whl) &&
        chmod +x "$directory"/libucx/bin/* && touch "$directory/.complete"
}

same_tables() { # RELEASE
    "${CXX:-g++}" -std=c++17 -g -fno-eliminate-unused-debug-types -I"$root/src" \
        -isystem "$releases/$1/libucx/include" -c "$root/test/abi/mirror.cc" \
        -o "$logs/mirror.o" &&
        python3 "$root/test/abi/check_abi.py" "$logs/mirror.o" "$1" \
            "$releases/$1/libucx/lib/libuct.so.0"
}

# It is listed where UCX_TLS names it, over both carriers, and nowhere else; no release is warned of.
is_listed() {
    local list
    list=$(UCX_TLS=cuda_nc,self ucx_info -d 2>&1)
    echo "$list"
    [ "$(grep -c 'Transport: cuda_nc$' <<<"$list")" -ge 2 ] &&
        grep 'Component: cuda_nc_posix$' <<<"$list" && grep 'Component: cuda_nc_tcp$' <<<"$list" &&
        ! grep WARN <<<"$list" &&
        [ "$(ucx_info -d | grep -c cuda_nc)" = 0 ] &&
        [ "$(UCX_TLS=^cuda_nc ucx_info -d | grep -c cuda_nc)" = 0 ] &&
        [ "$(UCX_TLS=all UCX_CUDA_NC_TRANSPORT=y UCX_CUDA_NC_CARRIERS=sysv ucx_info -d |
            grep -c 'Transport: cuda_nc$')" = 1 ] &&
        [ "$(UCX_TLS=cuda_nc UCX_CUDA_NC_TRANSPORT=n ucx_info -d | grep -c cuda_nc)" = 0 ]
}

runs() { # TEST SIZE
    ucx_perftest -l -t "$1" -s "$2" -n 200 -w 10
}
export -f is_listed runs same_tables
export root releases logs

if ! python3 -c 'import elftools' 2>/dev/null &&
    ! python3 -m pip install -q --disable-pip-version-check pyelftools; then
    echo "FAIL pyelftools cannot be installed"
    exit 1
fi
program=$local_dir/mpi-tests/random_types-5
if [ ! -x "$program" ] || [ "$root/test/mpi/random_types.cc" -nt "$program" ]; then
    mkdir -p "${program%/*}"
    check build-random_types mpicxx -std=c++17 -O1 -I"$root/test/mpi" \
        "$root/test/mpi/random_types.cc" "$root"/test/mpi/support/*.cc -o "$program" -ldl
fi

home_libraries=$CUDA_NC_HOME/lib
venv_path=$PATH
for release in 1.19.0 1.20.1 1.21.0 1.22.0; do
    if ! fetch "$release" >"$logs/fetch-$release.log" 2>&1; then
        failed=1
        echo "FAIL fetch-$release"
        continue
    fi
    check "tables-$release" bash -c "same_tables $release"
    export LD_LIBRARY_PATH=$releases/$release/libucx/lib:$home_libraries
    export PATH=$releases/$release/libucx/bin:$venv_path
    ways="shim"
    [ "$release" != 1.22.0 ] || ways="shim plugin both"
    for way in $ways; do
        case $way in
        shim) with=(LD_PRELOAD="$shim") ;;
        plugin) with=(UCX_PLUGIN_PATH="$plugin") ;;
        both) with=(LD_PRELOAD="$shim" UCX_PLUGIN_PATH="$plugin") ;;
        esac
        check "listed-$release-$way" env "${with[@]}" bash -c is_listed
        for carrier in posix tcp; do
            name=$release-$way-$carrier
            with+=(UCX_TLS=cuda_nc,self UCX_CUDA_NC_CARRIERS="$carrier")
            # Without the transport self: to itself through the carrier.
            for test in "tag_lat 8" "tag_bw 1000000" "ucp_put_bw 5000" "ucp_get 5000" \
                "ucp_am_bw 70000" "stream_bw 3000"; do
                check "${test/ /-}-$name" env "${with[@]}" UCX_TLS=cuda_nc bash -c "runs $test"
            done
            check "random_types-$name" mpirun -np 2 env "${with[@]}" "$program" \
                --types "$types" --memory sim,host
        done
    done
done
exit $failed
