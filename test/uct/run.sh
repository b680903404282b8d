#!/usr/bin/env bash
# The transport cuda_nc through each UCX release that it serves, after contrib/setup.sh: prints PASS,
# FAIL or SKIP, and a name, line by line; exit status 1 where one failed.
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
batches=12
limit=180 # seconds of a test
if [ "${1:-}" = --full ]; then
    types=2000
    batches=300
    limit=900
fi

# check NAME COMMAND...: one test with a time limit.
check() {
    local name=$1 status=0
    shift
    timeout -k 10 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null || status=$?
    if [ "$status" = 0 ]; then
        echo "PASS $name"
    elif [ "$status" = 77 ]; then
        echo "SKIP $name: $(tail -n 1 "$logs/$name.log")"
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

# UCP's requests tell which receive is meant, from the first message on: in this release too they
# are as we believe, and every message of any size is a rendezvous.
knows_requests() {
    local text
    text=$(UCX_CUDA_NC_STATS=y "$local_dir/matrix" --seed 1 --batches 12 --ranks 4 --kinds g \
        "$@" 2>&1)
    echo "$text"
    grep RIGHT <<<"$text" && ! grep "GPU zero-copy\|GPU staged" <<<"$text" &&
        [ "$(grep -c 'GPU to GPU: .* 0 declined, 0 messages abandoned' <<<"$text")" = 4 ]
}

runs() { # TEST SIZE
    ucx_perftest -l -t "$1" -s "$2" -n 200 -w 10
}
# Every message from GPU to GPU is counted as moved this way.
goes_by() { # pull|pipe|slots|"host slots"
    local other text
    text=$(UCX_CUDA_NC_STATS=y "$local_dir/matrix" --seed 1 --batches 16 --kinds g 2>&1)
    echo "$text"
    for other in pull pipe slots "host slots"; do
        # What cannot be pulled goes by pipe.
        [ "$other" = "$1" ] || [ "$1$other" = pullpipe ] ||
            ! grep "sent .*[1-9][0-9]* by $other" <<<"$text" || return 1
    done
    grep "sent .*[1-9][0-9]* by $1" <<<"$text" && grep RIGHT <<<"$text"
}
# What a process sends to itself.
goes_to_itself() { # pull|slots
    local text
    text=$(UCX_CUDA_NC_STATS=y "$local_dir/matrix" --seed 1 --batches 20 --window 24 --kinds g --self 2>&1)
    echo "$text"
    grep "sent .*[1-9][0-9]* by $1, .*received" <<<"$text" && grep RIGHT <<<"$text"
}
export -f goes_by goes_to_itself is_listed knows_requests runs same_tables
export root releases logs local_dir

if ! python3 -c 'import elftools' 2>/dev/null &&
    ! python3 -m pip install -q --disable-pip-version-check pyelftools; then
    echo "FAIL pyelftools cannot be installed"
    exit 1
fi
# By the makefile that the MPI tests use, in their directory.
programs=$local_dir/mpi-tests/5
program=$programs/random-types
check build-random_types make -s -f "$root/test/mpi/programs.mk" MPICXX=mpicxx \
    OUTPUT="$programs" "$program"

home_libraries=$CUDA_NC_HOME/lib
ucx=$(echo "$local_dir"/venv/lib/python3*/site-packages/libucx)
check build-matrix "${CXX:-g++}" -std=c++17 -O1 -Wall -Wextra -I"$root/include" \
    -I"$root" -isystem "$ucx/include" "$root/test/uct/matrix.cc" "$root/bench/test_memory.cc" \
    -o "$local_dir/matrix" -L"$home_libraries" -lcuda_nc -L"$ucx/lib" -lucp -lucs -ldl
check build-closing "${CXX:-g++}" -std=c++17 -O1 -Wall -Wextra -I"$root/include" \
    -I"$root" -isystem "$ucx/include" "$root/test/uct/closing.cc" "$root/bench/test_memory.cc" \
    -o "$local_dir/closing" -L"$home_libraries" -lcuda_nc -L"$ucx/lib" -lucp -lucs -ldl
# Small messages too, so that each batch has many from GPU to GPU, and slots that are used again.
direct=(UCX_CUDA_NC_DIRECT=y UCX_CUDA_NC_DIRECT_THRESH=2000 UCX_RNDV_THRESH=1000
    UCX_CUDA_NC_STAGING_SIZE=8M)
# Messages of any size, where the threshold alone is set.
small=(UCX_CUDA_NC_DIRECT_THRESH=1 UCX_RNDV_THRESH=auto)
seed=${CUDA_NC_SEED:-1000}
echo "seed $seed (CUDA_NC_SEED sets another)"
# legal COMMAND...: it succeeds, and no kernel of a simulated GPU touches memory that is not there.
legal() {
    local output status=0
    output=$("$@" 2>&1) || status=$?
    echo "$output"
    [ "$status" = 0 ] || return "$status"
    ! grep 'illegal access' <<<"$output" >/dev/null
}
export -f legal
matrix() { # NAME VARIABLE... -- ARGUMENT...
    local name=$1 variables=()
    shift
    while [ "$1" != -- ]; do
        variables+=("$1")
        shift
    done
    shift
    seed=$((seed + 1))
    check "matrix-$name" env "${with[@]}" "${direct[@]}" "${variables[@]}" bash -c 'legal "$@"' - \
        "$local_dir/matrix" --seed "$seed" --batches "$batches" "$@"
}
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
        for tls in cuda_nc,self cuda_nc,cma,self; do
            check "knows-requests-$release-$way-$tls" env "${with[@]}" UCX_TLS=$tls "${small[@]}" \
                bash -c 'knows_requests --largest 3000'
        done
        for carrier in posix tcp; do
            name=$release-$way-$carrier
            with+=(UCX_TLS=cuda_nc,self UCX_CUDA_NC_CARRIERS="$carrier")
            # Without the transport self: to itself through the carrier.
            for test in "tag_lat 8" "tag_bw 1000000" "ucp_put_bw 5000" "ucp_get 5000" \
                "ucp_am_bw 70000" "stream_bw 3000"; do
                check "${test/ /-}-$name" env "${with[@]}" UCX_TLS=cuda_nc bash -c "runs $test"
            done
            # One of them without pulls.
            if [ "$carrier" = tcp ]; then
                with+=(UCX_CUDA_NC_PULL_MAX=0)
            else
                with+=(UCX_CUDA_NC_PULL_MAX=64M)
            fi
            matrix "$name" --
            matrix "small-$name" "${small[@]}" -- --largest 3000
            matrix "small-peer-errors-$name" "${small[@]}" UCX_POSIX_ERROR_HANDLING=y -- --largest 20000 \
                --peer-errors
            check "random_types-$name" mpirun -np 1 env "${with[@]}" "$program" \
                --types "$types" --memory sim,host : \
                -np 1 env "${with[@]}" UCX_CUDA_NC_SIM_DEVICE=1 "$program" \
                --types "$types" --memory sim,host
        done
    done
done

# The last release, loaded by the plugin path, in other circumstances.
with=(UCX_PLUGIN_PATH="$plugin" UCX_TLS=cuda_nc,self)
matrix four-ranks -- --ranks 4 --window 24 --kinds gggc
matrix wakeup -- --wakeup --kinds ggh
matrix one-gpu -- --gpus 1 --kinds ggc
matrix slots UCX_CUDA_NC_PIPE=n -- --kinds ggc
matrix launches-block CUDA_LAUNCH_BLOCKING=1 -- --kinds ggc
matrix no-patience UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_PIPE_PATIENCE=0 -- --kinds g
matrix little-patience UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_PIPE_PATIENCE=50 -- --window 24 --kinds g
matrix one-lane UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_MAX_SMS=1 -- --kinds g
check pulls-are-used env "${with[@]}" "${direct[@]}" bash -c "goes_by pull"
check pipes-are-used env "${with[@]}" "${direct[@]}" UCX_CUDA_NC_PULL_MAX=0 bash -c "goes_by pipe"
check slots-are-used env "${with[@]}" "${direct[@]}" UCX_CUDA_NC_PIPE=n bash -c "goes_by slots"
check self-by-slots env "${with[@]}" "${direct[@]}" UCX_CUDA_NC_CARRIERS=posix,self \
    UCX_CUDA_NC_PULL_MAX=0 bash -c "goes_to_itself slots"
check self-by-pull env "${with[@]}" "${direct[@]}" UCX_CUDA_NC_CARRIERS=posix,self \
    bash -c "goes_to_itself pull"
matrix self-without-pulls UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_CARRIERS=posix,tcp,self -- --self \
    --window 16 --kinds ggch
matrix self UCX_CUDA_NC_CARRIERS=posix,tcp,self -- --self --window 16 --kinds ggch
matrix self-three-ranks UCX_CUDA_NC_CARRIERS=posix,self -- --self --ranks 3 --gpus 1 --kinds ggi
matrix self-wakeup UCX_CUDA_NC_CARRIERS=posix,self -- --self --wakeup --kinds ggc
matrix self-by-posix UCX_TLS=cuda_nc UCX_CUDA_NC_CARRIERS=posix -- --self --kinds ggc
matrix self-by-tcp UCX_TLS=cuda_nc UCX_CUDA_NC_CARRIERS=tcp -- --self --kinds ggc
# Where events run out most messages go by a copy for each block, which takes long: fewer of them.
matrix self-events-run-out UCX_CUDA_NC_CARRIERS=posix,self UCX_CUDA_NC_SIM_FAULTS=event:9+ -- --self \
    --kinds g --batches $((batches / 2))
# Small messages in other circumstances.
matrix small-four-ranks "${small[@]}" -- --largest 3000 --ranks 4 --window 24 --kinds gggci
matrix small-wakeup "${small[@]}" -- --largest 3000 --wakeup --kinds ggh
matrix small-self "${small[@]}" UCX_CUDA_NC_CARRIERS=posix,self -- --largest 3000 --self --kinds ggc
check small-to-itself env "${with[@]}" "${small[@]}" UCX_CUDA_NC_CARRIERS=posix,self \
    bash -c 'knows_requests --largest 3000 --self'
matrix small-old-protocols "${small[@]}" UCX_PROTO_ENABLE=n UCX_RNDV_THRESH=1 -- --largest 3000
matrix small-closed-by-force "${small[@]}" -- --largest 3000 --close-batch 2 --window 24 --kinds g
# Ranks whose settings differ.
matrix one-without-direct "${small[@]}" -- --odd UCX_CUDA_NC_DIRECT=n --ranks 4 --kinds ggch
matrix other-thresholds "${small[@]}" -- --odd UCX_CUDA_NC_DIRECT_THRESH=20000 --kinds ggc
matrix one-without-gpus "${small[@]}" -- --odd UCX_CUDA_NC_GPU=none --kinds chi
# The receiver takes the bytes itself.
matrix pulls -- --window 24 --kinds g
matrix pulls-four-ranks -- --ranks 4 --window 24 --kinds g
matrix pulls-wakeup -- --wakeup --kinds gg
matrix pulls-one-lane UCX_CUDA_NC_MAX_SMS=1 -- --kinds g
matrix pulls-little-staging UCX_CUDA_NC_STAGING_SIZE=2M -- --window 16 --kinds g
matrix pulls-third-ipc UCX_CUDA_NC_SIM_FAULTS=ipc_open:3 -- --kinds g
matrix pulls-streams-run-out UCX_CUDA_NC_SIM_FAULTS=stream:11+ -- --kinds ggc
# Messages that UCP sends in one piece after all.
matrix pulls-large-segments UCX_POSIX_SEG_SIZE=32K -- --window 24 --kinds g
matrix pulls-slow-streams UCX_CUDA_NC_SIM_FAULTS=slow:10 -- --kinds ggc
# Endpoints that are closed by force while messages are under way. UCX allows it in peer-error mode
# alone: no early offers there, and no pulls.
closes=(--close-batch 2 --window 24 --kinds g)
matrix closed-by-force -- "${closes[@]}"
matrix closed-by-force-through-host UCX_CUDA_NC_DIRECT=n -- "${closes[@]}"
matrix closed-by-force-slots UCX_CUDA_NC_PIPE=n -- "${closes[@]}"
matrix closed-by-force-host-slots UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ -- "${closes[@]}"
matrix closed-by-force-slow-streams UCX_CUDA_NC_SIM_FAULTS=slow:10 -- "${closes[@]}"
matrix closed-by-force-tcp UCX_CUDA_NC_CARRIERS=tcp -- "${closes[@]}"
matrix closed-by-force-four-ranks -- --close-batch 2 --ranks 4 --window 16 --kinds ghci
# Endpoints that are closed by a flush while a message is under way.
for way in "pull PULL_MAX=64M" "pipe PULL_MAX=0" "slots PIPE=n"; do
    check "closed-by-flush-${way%% *}" env "${with[@]}" "UCX_CUDA_NC_${way#* }" \
        UCX_CUDA_NC_SIM_FAULTS=slow:1000 bash -c 'legal "$@"' - "$local_dir/closing" --seed "$seed"
done
# GPUs that do not reach each other.
check host-slots-are-used env "${with[@]}" "${direct[@]}" UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ \
    bash -c "goes_by 'host slots'"
matrix little-staging UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_STAGING_SIZE=2M -- --window 16 --kinds g
matrix no-ipc UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ -- --kinds ggc
matrix no-ipc-one-gpu UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ -- --gpus 1 --kinds g
matrix no-ipc-little-staging UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ UCX_CUDA_NC_STAGING_SIZE=2M -- \
    --window 16 --kinds g
matrix no-ipc-four-ranks UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ -- --ranks 4 --window 24 --kinds g
matrix no-ipc-killed-peer UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ UCX_CUDA_NC_CARRIERS=tcp \
    UCX_KEEPALIVE_INTERVAL=0.3s -- --kill-batch 2 --window 12 --kinds gggc
matrix no-ipc-no-pinning UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+,pin:1+ -- --kinds ggc
matrix second-pinning UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+,pin:2 -- --kinds g
matrix third-ipc UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_SIM_FAULTS=ipc_open:3 -- --kinds g
matrix second-ipc UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_SIM_FAULTS=ipc_open:2 -- --kinds g
matrix streams-run-out UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_SIM_FAULTS=stream:11+ -- --kinds ggc
matrix fifth-pinned UCX_CUDA_NC_SIM_FAULTS=pinned:5 -- --kinds g
matrix events-run-out UCX_CUDA_NC_SIM_FAULTS=event:9+ -- --kinds ggc --batches $((batches / 2))
matrix slow-streams UCX_CUDA_NC_PULL_MAX=0 UCX_CUDA_NC_SIM_FAULTS=slow:10 -- --kinds ggc
# Launches and kernels that fail on the way through host memory, at the end of short messages too.
through_host=(UCX_CUDA_NC_DIRECT=n UCX_CUDA_NC_STAGING_SIZE=256M)
for fault in launch:6 launch:8+ kernel:5 load:1+ mark:7; do
    matrix "through-host-$fault" "${through_host[@]}" UCX_CUDA_NC_SIM_FAULTS=$fault -- --kinds gc \
        --window 24 --largest 100000
done
# The same between GPUs. A message that has begun there may fail, where a kernel does.
between_gpus=(--kinds g --window 24 --largest 300000 --batches $((batches / 3)))
for fault in launch:6 launch:8+ mark:7 kernel:5 stuck:3; do
    may=()
    case $fault in
    kernel* | stuck*) may=(--may-fail) ;;
    esac
    faulty=(UCX_CUDA_NC_SIM_FAULTS="$fault")
    [ "$fault" = launch:8+ ] ||
        matrix "pull-$fault" "${faulty[@]}" -- "${between_gpus[@]}" "${may[@]}"
    matrix "pipe-$fault" "${faulty[@]}" UCX_CUDA_NC_PULL_MAX=0 -- "${between_gpus[@]}" "${may[@]}"
    matrix "slots-$fault" "${faulty[@]}" UCX_CUDA_NC_PIPE=n -- "${between_gpus[@]}" "${may[@]}"
done
matrix no-kernel UCX_CUDA_NC_SIM_FAULTS=load:1+ -- --kinds ggc --largest 100000
matrix old-protocols UCX_PROTO_ENABLE=n -- --kinds ggch
matrix short-addresses UCX_ADDRESS_VERSION=v2 --
matrix little-carrier UCX_POSIX_FIFO_SIZE=4 -- --window 20 --kinds ggc
matrix two-lanes UCX_MAX_EAGER_LANES=2 UCX_TLS=cuda_nc,sysv,self -- --kinds ggc
matrix peer-errors UCX_POSIX_ERROR_HANDLING=y -- --peer-errors
matrix all-transports UCX_TLS=all UCX_CUDA_NC_TRANSPORT=y --
matrix stock-thresholds UCX_RNDV_THRESH=auto UCX_CUDA_NC_DIRECT_THRESH=64K \
    UCX_CUDA_NC_STAGING_SIZE=256M -- --largest 8000000 \
    --window 4
# Of its own accord UCP would send these eagerly: 64 KiB at most, with and without cma.
check build-mpi_sizes make -s -f "$root/bench/mpi_sizes.mk" MPICXX=mpicxx OUTPUT="$local_dir/mpi_sizes"
goes_from_gpu_to_gpu() {
    local text
    text=$(mpirun -np 2 "$local_dir/mpi_sizes" --memory sim --largest 65536 --repeats 20 2>&1)
    echo "$text"
    grep 'wrong bytes: 0' <<<"$text" && awk '/^GPU to GPU: sent/ { if ($5 + $8 < 500) few = 1; n++ }
        END { exit few || n != 2 }' <<<"$text"
}
export -f goes_from_gpu_to_gpu
for tls in cuda_nc,self cuda_nc,cma,self; do
    check "64-kib-$tls" env "${with[0]}" UCX_TLS=$tls UCX_CUDA_NC_STATS=y bash -c goes_from_gpu_to_gpu
done
# One ring of memory for all; a sender that sleeps must not keep it from the others.
sleeps=(--ranks 4 --each-way 16 --kinds g --batches 2 --sleep-batch 1 --largest 1000000)
for pull_max in 0 64M; do
    matrix "a-sleeper-pulls-$pull_max" UCX_CUDA_NC_PULL_MAX=$pull_max UCX_CUDA_NC_STAGING_SIZE=128K -- \
        "${sleeps[@]}"
done
# A sender that ends once its sends are complete.
leaves=(--leave-batch 2 --window 24 --kinds g)
for carrier in posix tcp; do
    rendezvous=(UCX_CUDA_NC_CARRIERS="$carrier" UCX_RNDV_THRESH=1)
    matrix "sender-leaves-pull-$carrier" "${rendezvous[@]}" -- "${leaves[@]}"
    matrix "sender-leaves-pipe-$carrier" "${rendezvous[@]}" UCX_CUDA_NC_PULL_MAX=0 -- "${leaves[@]}"
    matrix "sender-leaves-slots-$carrier" "${rendezvous[@]}" UCX_CUDA_NC_PIPE=n -- "${leaves[@]}"
    matrix "sender-leaves-host-slots-$carrier" "${rendezvous[@]}" UCX_CUDA_NC_SIM_FAULTS=ipc_open:1+ -- \
        "${leaves[@]}"
done
matrix sender-leaves-four-ranks UCX_RNDV_THRESH=1 -- --ranks 4 --leave-batch 2 --window 24
matrix killed-peer-four-ranks UCX_CUDA_NC_CARRIERS=tcp UCX_KEEPALIVE_INTERVAL=0.3s -- --ranks 4 \
    --kill-batch 1 --window 24 --kinds gggc
for ranks in 2 4; do
    matrix "killed-peer-posix-$ranks" UCX_CUDA_NC_CARRIERS=posix UCX_POSIX_ERROR_HANDLING=y \
        UCX_KEEPALIVE_INTERVAL=0.3s -- --ranks $ranks --kill-batch 1 --window 24 --kinds gggc \
        --notice-within 5
done
# Carriers, devices and settings of which the others are not.
matrix sysv UCX_CUDA_NC_CARRIERS=sysv -- --kinds ggch
matrix shm-device UCX_SHM_DEVICES=memory -- --kinds ggch
matrix lo-device UCX_CUDA_NC_CARRIERS=tcp UCX_NET_DEVICES=lo -- --kinds ggch
for setting in UCX_CUDA_NC_PIPE=n UCX_CUDA_NC_STAGING_SIZE=512K UCX_CUDA_NC_CARRIERS=tcp; do
    matrix "odd-$setting" -- --odd $setting --kinds ggch
done
# Two hosts, and four: only TCP leads from one to another.
matrix two-hosts UCX_CUDA_NC_CARRIERS=tcp -- --hosts
matrix four-hosts UCX_CUDA_NC_CARRIERS=tcp -- --hosts --ranks 4 --window 16
matrix two-hosts-wakeup UCX_CUDA_NC_CARRIERS=tcp -- --hosts --wakeup --kinds ggh
matrix two-hosts-killed-peer UCX_CUDA_NC_CARRIERS=tcp UCX_KEEPALIVE_INTERVAL=0.3s -- --hosts \
    --kill-batch 1 --window 12 --kinds gggc
kills=''
[ "${1:-}" != --full ] || kills='0 1 2 3 4 5 6 7 8 9'
for batch in $kills; do
    matrix "killed-peer-$batch" UCX_CUDA_NC_CARRIERS=tcp UCX_KEEPALIVE_INTERVAL=0.3s -- \
        --kill-batch "$batch" --window 12 --kinds gggc --ranks $((2 + batch % 3))
done
exit $failed
