# shellcheck shell=bash disable=SC2034,SC2154
# Ways in which the product gets into a process, and processes in which it must do nothing. To be
# sourced by run.sh, whose check() and variables it uses; each function is one test.

# warns_once VARIABLE=VALUE MPIRUN...: the job runs, and each of its two processes says once that it
# cannot read the value.
warns_once() {
    local output
    output=$(env "$@" -np 2 "$programs/stock-wrong-bytes" 2>&1) || return 1
    echo "$output"
    [ "$(grep -c "${1#*=}" <<<"$output")" = 2 ] && [ "$(grep -c WARN <<<"$output")" = 2 ]
}

# as_stock MPIRUN...: switched off, Open MPI 5.0.11 is wrong as ever, and nothing is counted.
as_stock() {
    local output
    output=$(UCX_CUDA_NC_ENABLE=n UCX_CUDA_NC_STATS=y "$@" -np 2 "$programs/stock-wrong-bytes" 2>&1)
    echo "$output"
    grep '^WRONG' <<<"$output" >/dev/null && ! grep -i 'cuda_nc' <<<"$output"
}

# from_python LIBMPI MPIRUN...: libmpi by dlopen with RTLD_LOCAL; the message must be served by us.
from_python() {
    local libmpi=$1 output
    shift
    output=$(UCX_CUDA_NC_STATS=y "$@" -np 2 python3 "$root/test/mpi/loading/rtld_local.py" \
        "$libmpi" 2>&1) || { echo "$output" && return 1; }
    echo "$output"
    grep '^RIGHT' <<<"$output" >/dev/null && grep 'strided.*host engine' <<<"$output" >/dev/null
}

# says EXPECTED COMMAND...: the shim in a process without MPI changes nothing of its output.
says() {
    local expected=$1 output
    shift
    output=$(LD_PRELOAD=$shim UCX_CUDA_NC_STATS=y "$@" 2>&1) || { echo "$output" && return 1; }
    echo "$output"
    [ "$output" = "$expected" ]
}
export -f warns_once as_stock from_python says

in_bash() { # NAME FUNCTION ARGUMENT...
    local name=$1
    shift
    programs=$work/5 root=$root shim=$shim check "$name" bash -c '"$@"' - "$@"
}

compile_two_workers() {
    local ucx
    ucx=$(echo "$local_dir"/venv/lib/python3*/site-packages/libucx)
    g++ -std=c++17 -O1 -Wall -Wextra "$root/test/mpi/loading/two_workers.cc" -I"$ucx/include" \
        -L"$ucx/lib" -lucp -lucs -Wl,-rpath-link,"$ucx/lib" -o "$work/two-workers" \
        >"$logs/build-two-workers.log" 2>&1
}

loading_tests() {
    local setting
    for setting in HOST_ENGINE STAGING_SIZE ENABLE SIM_FAULTS; do
        UCX_PLUGIN_PATH=$plugin in_bash "unknown-$setting-warns-once" \
            warns_once "UCX_CUDA_NC_$setting=nonsense" mpirun
    done
    UCX_PLUGIN_PATH=$plugin in_bash disabled-plugin-leaves-stock as_stock mpirun
    in_bash disabled-shim-leaves-stock as_stock env LD_PRELOAD="$shim" mpirun

    local lib5
    lib5=$(mpicxx --showme:libdirs | tr ' ' '\n' | head -n 1)/libmpi.so.40
    UCX_PLUGIN_PATH=$plugin in_bash rtld-local-ompi5-plugin from_python "$lib5" mpirun
    in_bash rtld-local-ompi5-shim from_python "$lib5" env LD_PRELOAD="$shim" mpirun

    if command -v mpirun.openmpi >/dev/null; then
        UCX_PLUGIN_PATH=$plugin in_bash rtld-local-ompi4-plugin from_python libmpi.so.40 \
            mpirun.openmpi
        in_bash rtld-local-ompi4-shim from_python libmpi.so.40 env LD_PRELOAD="$shim" mpirun.openmpi
    fi

    in_bash shim-in-true says '' true
    in_bash shim-in-bash says 'one two' bash -c 'echo one $(echo two)'
    in_bash shim-in-python says 42 python3 -c \
        'import subprocess; print(6 * int(subprocess.check_output(["echo", "7"])))'
    if compile_two_workers; then
        in_bash shim-in-ucx-without-mpi says RIGHT "$work/two-workers"
        UCX_PLUGIN_PATH=$plugin check plugin-in-ucx-without-mpi "$work/two-workers"
        UCX_PLUGIN_PATH=$plugin in_bash both-in-ucx-without-mpi says RIGHT "$work/two-workers"
    else
        failed=1
        echo "FAIL build-two-workers"
    fi
}
