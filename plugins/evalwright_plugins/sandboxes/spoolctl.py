"""The sandbox ``spoolctl``: each command is a spoolctl job, with its record in a database; otherwise like ``subprocess``."""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evalwright.errors import SandboxError
from evalwright.interfaces import (
    BoundedOutput,
    Command,
    Deadline,
    Host,
    LocalSession,
    OutputSink,
    Problem,
    Sandbox,
    SandboxRequest,
    Session,
)
from evalwright.model import Completed, Output
from evalwright.processes import Supervisor
from evalwright_plugins.spool import Spool, spoolctl_problems

__all__ = ["SpoolctlSandbox"]

REDIRECT = 'exec "$@" <"$0/stdin" >"$0/stdout" 2>"$0/stderr"'
CHUNK_BYTES = 1 << 16
POLL_MILLISECONDS = 200


class SpoolctlSandbox(Sandbox[None]):
    """Runs commands as durable jobs. The level of isolation is that of the command itself: a process tree."""

    api = "sandbox/1.0"

    def __init__(self, config: None, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say whether a spoolctl that can be used is installed."""
        return spoolctl_problems()

    def open(self, request: SandboxRequest) -> Session:
        """Return a session with a database of its own beside the workspace."""
        return _SpoolctlSession(request, self._supervisor)

    def close(self, deadline: Deadline) -> None:
        """End every job and its worker."""
        self._supervisor.close()


class _SpoolctlSession(LocalSession):
    isolation = "process-tree"

    def __init__(self, request: SandboxRequest, supervisor: Supervisor) -> None:
        super().__init__(request)
        if request.network not in (None, "host"):
            raise SandboxError(f'the spoolctl sandbox cannot give network "{request.network}"', hint="choose another sandbox")
        self._supervisor = supervisor
        self._numbers = itertools.count(1)
        self._place = Path(tempfile.mkdtemp(dir=request.exchange.parent, prefix="q"))
        self._spool = Spool(self._place, supervisor)

    def execute(self, command: Command) -> Completed:
        cwd = self.directory(command.cwd)
        command = replace(command, env={**self.request.env, **command.env}, limits={**self.request.limits, **command.limits})
        problem = _cannot_start(command, cwd)
        if problem:
            return Completed(spawn_error=problem)
        number = next(self._numbers)
        key = f"{self.request.owner}/{number}"
        with _pipes(self._place / f"io{number}", command) as pipes:
            job = self._spool.add(key, ["/bin/sh", "-c", REDIRECT, str(pipes.place), *command.argv], cwd=cwd)
            completed = self._run_worker(key, command, cwd)
            stdout, stderr = pipes.finish()
        completed = replace(completed, stdout=stdout, stderr=stderr)
        return completed if completed.timed_out or completed.canceled else self._as_recorded(completed, job)

    def destroy(self, deadline: Deadline) -> None:
        """Remove the database and all that belongs to it."""
        shutil.rmtree(self._place, ignore_errors=True)

    def _run_worker(self, key: str, command: Command, cwd: Path) -> Completed:
        """Run the worker that runs the job, within the command's own limits of time; its output is spoolctl's report."""
        process = self._supervisor.start(
            replace(command, argv=self._spool.worker(key), cwd=str(cwd), stdin=None, capture=None, on_output=None)
        )
        with self.running(process):
            return process.wait()

    def _as_recorded(self, completed: Completed, job: int) -> Completed:
        """Return how the job ended, as spoolctl has recorded it."""
        attempts = self._spool.show(job)["attempts"]
        if not attempts or attempts[-1]["state"] == "running":
            raise SandboxError(f"spoolctl job {job} was left without an end", hint="its worker was killed")
        last = attempts[-1]
        code = 0 if last["state"] == "succeeded" else last["exit_code"]
        if code is None:
            return replace(completed, spawn_error=str(last["error"]), exit_code=None, signal=None)
        duration = max(0.0, last["finished_at"] - last["started_at"])
        return replace(completed, exit_code=code, signal=-code if code < 0 else None, duration=duration)


class _Pipes:
    """The command's three streams as named files: its output goes straight into bounded sinks, never to disk."""

    def __init__(self, place: Path, command: Command) -> None:
        self.place = place
        place.mkdir(mode=0o700)
        (place / "stdin").write_bytes(command.stdin or b"")
        self._sinks: dict[str, OutputSink] = {}
        self._done = threading.Event()
        self._threads: list[threading.Thread] = []
        for name in ("stdout", "stderr"):
            os.mkfifo(place / name, 0o600)
            self._sinks[name] = (command.capture or BoundedOutput)()
            thread = threading.Thread(target=self._pump, args=(name, command.on_output), daemon=True)
            self._threads.append(thread)
        self._readers = {name: os.open(place / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for name in self._sinks}
        for thread in self._threads:
            thread.start()

    def finish(self) -> tuple[Output, Output]:
        """Return what stdout and stderr held; every writer is dead by now."""
        self.close()
        return self._sinks["stdout"].finish(), self._sinks["stderr"].finish()

    def close(self) -> None:
        """Read what is left and stop reading."""
        self._done.set()
        for thread in self._threads:
            thread.join()

    def _pump(self, name: Any, on_output: Callable[[Any, bytes], None] | None) -> None:
        reader = self._readers[name]
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        try:
            while True:
                ending = self._done.is_set()
                poll.poll(POLL_MILLISECONDS)
                data = _read(reader)
                if data:
                    self._sinks[name].feed(data)
                    if on_output:
                        on_output(name, data)
                elif ending:
                    return
                else:
                    self._done.wait(POLL_MILLISECONDS / 10_000)
        finally:
            os.close(reader)


@contextlib.contextmanager
def _pipes(place: Path, command: Command) -> Generator[_Pipes]:
    pipes = _Pipes(place, command)
    try:
        yield pipes
    finally:
        pipes.close()
        shutil.rmtree(place, ignore_errors=True)


def _read(reader: int) -> bytes:
    """Return the next bytes, none while nobody writes."""
    try:
        return os.read(reader, CHUNK_BYTES)
    except BlockingIOError:
        return b""


def _cannot_start(command: Command, cwd: Path) -> str | None:
    """Return why a program cannot be executed; the shell that opens its streams could only say so on stderr."""
    name = command.argv[0]
    found = shutil.which(name, path=command.env.get("PATH", os.defpath)) if "/" not in name else str(cwd / name)
    if found is None or not os.path.exists(found):
        return f"[Errno 2] No such file or directory: {name!r}"
    if not stat.S_ISREG(os.stat(found).st_mode) or not os.access(found, os.X_OK):
        return f"[Errno 13] Permission denied: {name!r}"
    return None if cwd.is_dir() else f"[Errno 2] No such file or directory: '{cwd}'"
