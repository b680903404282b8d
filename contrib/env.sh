# shellcheck shell=sh disable=SC2154
# To be sourced (bash, zsh, sh), from any directory, after contrib/demo.sh, check.sh or setup.sh:
#
#     . contrib/env.sh
#     mpicxx a.cc && mpirun -np 2 ./a.out        # runs with the plugin
#
# CUDA_NC_MPI=mpich sets up MPICH in place of Open MPI (contrib/setup.sh --mpich installs it; in bash
# and zsh also: . contrib/env.sh mpich). CUDA_NC_QUIET=1 keeps it silent. Sourcing it twice changes nothing more.

_nc_file=
if [ -n "${BASH_VERSION:-}" ]; then
    eval '_nc_file=${BASH_SOURCE[0]}'
elif [ -n "${ZSH_VERSION:-}" ]; then
    eval '_nc_file=${(%):-%x}'
else
    # A plain sh keeps the file that it reads open.
    for _nc_fd in /proc/$$/fd/*; do
        _nc_link=$(readlink "$_nc_fd" 2>/dev/null)
        case $_nc_link in
        */contrib/env.sh) _nc_file=$_nc_link ;;
        esac
    done
    [ -n "$_nc_file" ] || _nc_file=contrib/env.sh
fi
_nc_root=$(cd "$(dirname "$_nc_file")/.." >/dev/null 2>&1 && pwd)
_nc_local=${CUDA_NC_LOCAL:-$_nc_root/.local}
_nc_mpi=${CUDA_NC_MPI:-}
[ "${1:-}" != mpich ] || _nc_mpi=mpich
_nc_ucx=
for _nc_site in "$_nc_local"/venv/lib/python3.*/site-packages; do
    [ ! -d "$_nc_site/libucx/lib" ] || _nc_ucx=$_nc_site/libucx
done

# _nc_prepend VARIABLE DIRECTORY: puts it first, once.
_nc_prepend() {
    eval "_nc_old=\${$1:-}"
    case ":$_nc_old:" in
    *":$2:"*) ;;
    *) eval "export $1=\"\$2\${_nc_old:+:\$_nc_old}\"" ;;
    esac
}

# _nc_append VARIABLE DIRECTORY: puts it last, once.
_nc_append() {
    eval "_nc_old=\${$1:-}"
    case ":$_nc_old:" in
    *":$2:"*) ;;
    *) eval "export $1=\"\${_nc_old:+\$_nc_old:}\$2\"" ;;
    esac
}

if [ -z "$_nc_ucx" ] || [ ! -e "$_nc_local/install/lib/libcuda_nc.so" ]; then
    echo "env.sh: nothing is installed in $_nc_local yet; run $_nc_root/contrib/setup.sh" >&2
elif [ "$_nc_mpi" = mpich ] && [ ! -x "$_nc_local/mpich/bin/mpicxx" ]; then
    echo "env.sh: MPICH is not installed yet; run $_nc_root/contrib/setup.sh --mpich" >&2
else
    export CUDA_NC_HOME="$_nc_local/install"
    _nc_prepend PATH "$_nc_local/venv/bin"
    _nc_prepend PATH "$CUDA_NC_HOME/bin"
    _nc_append PATH "$_nc_ucx/bin" # ucx_info
    _nc_prepend LD_LIBRARY_PATH "$CUDA_NC_HOME/lib"
    _nc_prepend LD_LIBRARY_PATH "$_nc_ucx/lib"
    _nc_prepend PKG_CONFIG_PATH "$CUDA_NC_HOME/lib/pkgconfig"

    # UCX 1.22 loads the plugin by itself.
    export UCX_PLUGIN_PATH="$CUDA_NC_HOME/lib/ucx-cuda-nc"

    if [ "$_nc_mpi" = mpich ]; then
        _nc_prepend PATH "$_nc_local/mpich/bin"
        _nc_append LD_LIBRARY_PATH "$_nc_local/mpich/lib"
        # Else its own shared memory takes the messages within a machine.
        export MPIR_CVAR_NOLOCAL=1
    fi

    # Open MPI uses UCX by itself only with certain network cards; here always.
    export OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any
    if [ "$(id -u)" = 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    fi
    if [ "$(nproc)" -lt 8 ]; then
        # Open MPI 5 and 4 each have a name for it.
        export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
        export OMPI_MCA_rmaps_base_oversubscribe=1
    fi

    if [ -z "${CUDA_NC_QUIET:-}" ]; then
        cat <<END
ucx-cuda-nc is set up in this shell: mpicxx, mpirun, nc_info; CUDA_NC_HOME=$CUDA_NC_HOME
An existing job over UCX 1.22 or later needs
    export UCX_PLUGIN_PATH=$CUDA_NC_HOME/lib/ucx-cuda-nc
and over UCX 1.13 to 1.21
    export LD_PRELOAD=$CUDA_NC_HOME/lib/libcuda_nc_preload.so
END
    fi
fi
unset _nc_file _nc_fd _nc_link _nc_root _nc_local _nc_mpi _nc_ucx _nc_site _nc_old
unset -f _nc_prepend _nc_append
