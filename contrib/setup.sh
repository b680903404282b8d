#!/usr/bin/env bash
# Installs what is missing, builds in .local/build and installs to .local/install.
#
# usage: contrib/setup.sh [--tests | --mpich]
#   --tests   what contrib/check.sh needs as well
#   --mpich   MPICH beside Open MPI: then `CUDA_NC_MPI=mpich . contrib/env.sh`
#
# CUDA_NC_CUDA=DIR|12|no use this CUDA toolkit, one of CUDA 12, or build without CUDA (default: 13,
#                       or 12 where the driver is older than 580)
# CUDA_NC_ARCH="80 90"  build for these GPU architectures (default: the GPUs here, or 90)
# CUDA_NC_LOCAL=DIR     instead of .local
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
case ${1:-} in
'') setup ;;
--tests) setup tests ;;
--mpich) setup && need_mpich ;;
*)
    sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 2
    ;;
esac
say "installed in $PREFIX; now: . $ROOT/contrib/env.sh"
