"""Runs a test's commands. All of a test's commands share its time limit. A command that is not over
by then is killed with everything that it started, after gdb, where it is there, has written the
stacks of its processes to the log. A command's output is what the log says of it."""
import os
import shlex
import shutil
import signal
import subprocess
import time

import pytest

from .processes import processes_of

# What mpirun of Open MPI 5 says now and then on a busy machine; no rank has begun then.
NOT_LAUNCHED = "PMIx server's listener thread failed to start"
CANNOT_RUN = 77  # exit status of a program that this machine does not let run: its test is skipped


class Result:
    def __init__(self, status, output):
        self.status = status
        self.output = output

    def lines(self):
        return self.output.splitlines()

    def count(self, text):
        """Lines that contain the text."""
        return sum(text in line for line in self.lines())


class Running:
    """A command that has been started in a session of its own."""

    def __init__(self, command, log, env, cwd, stdout):
        self.text = shlex.join(command)
        self.log = log
        with open(log, "ab") as output:
            output.write(f"$ {self.text}\n".encode())
            output.flush()
            self._start = output.tell()
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stdout or output, stderr=output, env=env,
                cwd=cwd, start_new_session=True)
        self.pid = self._process.pid

    def output(self):
        with open(self.log, "rb") as file:
            file.seek(self._start)
            return file.read().decode(errors="replace")

    def wait(self, seconds):
        """Its result, or None where it is not over within these seconds."""
        try:
            status = self._process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return None
        return Result(status, self.output())

    def write_stacks(self):
        if not shutil.which("gdb"):
            return
        with open(self.log, "ab") as output:
            for process in processes_of(self.pid)[:8]:
                output.write(f"--- stacks of process {process}\n".encode())
                output.flush()
                try:
                    subprocess.run(["gdb", "-p", str(process), "-batch", "-ex",
                                    "thread apply all backtrace"], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.DEVNULL, timeout=30)
                except subprocess.TimeoutExpired:
                    pass

    def end(self):
        """Asks mpirun to end its ranks, and kills what is left of the session 10 s later."""
        if self._process.poll() is None:
            os.killpg(self.pid, signal.SIGTERM)
            self.wait(10)
        for process in processes_of(self.pid):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.wait(10)


class Runner:
    def __init__(self, limit, log, env):
        self._limit = limit
        self._end = None  # the time begins with the first command: builds have limits of their own
        self._env = env
        self._started = []
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")

    def start(self, *command, env=None, cwd=None, log=None):
        """Starts a command that goes on beside the test; it is ended with the test."""
        return self._start(command, env, cwd, None, log)

    def __call__(self, *command, env=None, cwd=None, stdout=None, status=0, limit=None):
        """Runs a command to its end. `status` is what its exit status must be, None: any. `stdout`
        is a file in place of the log. Returns what it printed."""
        running = self._start(command, env, cwd, stdout, None)
        result = self._wait(running, limit)
        if result is not None and NOT_LAUNCHED in result.output:
            running.end()
            running = self._start(command, env, cwd, stdout, None)
        return self.finish(running, status, limit)

    def within(self, seconds, *command, env=None, cwd=None, log=None):
        """The result of a command, or None where it was not over within these seconds: then it was
        ended. Commands that run side by side need a log each."""
        running = self._start(command, env, cwd, None, log)
        result = running.wait(min(seconds, self._end - time.monotonic()))
        if result is None:
            running.write_stacks()
        running.end()
        return result

    def finish(self, running, status=0, limit=None):
        result = self._wait(running, limit)
        if result is None:
            running.write_stacks()
            running.end()
            self.fail(f"no end within {limit or self._limit} s: {running.text}")
        # What a crashed mpirun has left behind.
        running.end()
        if result.status == CANNOT_RUN and status not in (None, CANNOT_RUN):
            pytest.skip(result.output.strip().rpartition("\n")[2])
        if status is not None and result.status != status:
            self.fail(f"exit status {result.status} in place of {status}: {running.text}")
        return result

    def fail(self, why):
        text = self.log.read_text(errors="replace").splitlines()
        raise pytest.fail.Exception("\n".join([why, f"--- end of {self.log}", *text[-40:]]),
                                    pytrace=False)

    def end(self):
        for running in self._started:
            running.end()

    def _wait(self, running, limit):
        left = self._end - time.monotonic()
        return running.wait(left if limit is None else min(limit, left))

    def _start(self, command, env, cwd, stdout, log):
        if self._end is None:
            self._end = time.monotonic() + self._limit
        running = Running([str(word) for word in command], log or self.log,
                          self._env if env is None else env, cwd, stdout)
        self._started.append(running)
        return running
