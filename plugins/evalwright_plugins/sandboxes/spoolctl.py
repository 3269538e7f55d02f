"""The sandbox ``spoolctl``: each command is a spoolctl job, with its record in a database; otherwise like ``subprocess``."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from evalwright.errors import SandboxError, SandboxLost
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
from evalwright_plugins.spool import Spool, envelope_of, spoolctl_problems

__all__ = ["SpoolctlSandbox"]

LAUNCHER = str(Path(__file__).with_name("_spoolctl_job.py"))
CHUNK_BYTES = 1 << 16
POLL_MILLISECONDS = 200
PAUSE_SECONDS = 0.02
START_SECONDS = 60.0


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
        if command.limits or self.request.limits:
            raise SandboxError("the spoolctl sandbox sets no resource limits", hint="choose another sandbox")
        cwd = self.directory(command.cwd)
        command = replace(command, env={**self.request.env, **command.env})
        number = next(self._numbers)
        key = f"{self.request.owner}/{number}"
        with _job_pipes(self._place / f"io{number}", command) as pipes:
            job = self._spool.add(key, [sys.executable, "-I", "-S", LAUNCHER, str(pipes.place)], cwd=cwd)
            completed = self._run_worker(key, command, cwd, pipes)
            said: dict[str, Any] = envelope_of(completed.stdout.text).get("data") or {}
            stdout, stderr = pipes.finish()
        completed = replace(completed, stdout=stdout, stderr=stderr)
        if pipes.problem:
            errno, _, why = pipes.problem.partition(" ")
            return replace(completed, exit_code=None, signal=None, spawn_error=why, spawn_errno=int(errno))
        return completed if completed.timed_out or completed.canceled else self._as_recorded(completed, job, said)

    def destroy(self, deadline: Deadline) -> None:
        """Remove the database and all that belongs to it."""
        shutil.rmtree(self._place, ignore_errors=True)

    def _run_worker(self, key: str, command: Command, cwd: Path, pipes: _Pipes) -> Completed:
        """Run the worker that runs the job; the time limit counts from the command's own start, not from spoolctl's."""
        begun = time.monotonic()
        late: list[bool] = []

        def cut() -> bool:
            if command.timeout is not None:
                since = pipes.started or begun + START_SECONDS
                late[:] = [True] if time.monotonic() - since >= command.timeout else late
            return bool(late) or (command.canceled is not None and command.canceled())

        process = self._supervisor.start(
            Command(
                argv=self._spool.worker(key),
                cwd=str(cwd),
                env=command.env,
                grace=command.grace,
                canceled=cut,
                on_start=command.on_start,
            )
        )
        with self.running(process):
            completed = process.wait()
        timed_out = bool(late) and completed.canceled
        duration = time.monotonic() - (pipes.started or begun)
        return replace(completed, timed_out=timed_out, canceled=completed.canceled and not timed_out, duration=duration)

    def _as_recorded(self, completed: Completed, job: int, said: dict[str, Any]) -> Completed:
        """Return how the job ended, as spoolctl has recorded it.

        The worker says on its own pipe whether the job succeeded. A database that says otherwise was changed by somebody.
        """
        attempts = self._spool.show(job)["attempts"]
        if not said or not attempts or attempts[-1]["state"] == "running":
            raise SandboxLost(f"spoolctl job {job} was left without an end", hint="its worker was killed")
        last = attempts[-1]
        if last["state"] != said.get("result"):
            raise SandboxError(f"spoolctl's database and its worker disagree on job {job}", hint="look at what the agent did")
        code = 0 if last["state"] == "succeeded" else last["exit_code"]
        if not isinstance(code, int) or (code == 0) != (last["state"] == "succeeded"):
            raise SandboxError(f"spoolctl job {job} could not be run: {last['error']}", hint="check it: spoolctl doctor")
        return replace(completed, exit_code=code, signal=-code if code < 0 else None)


class _Pipes:
    """The command's streams as named files: its output goes straight into bounded sinks, never to disk.

    ``started`` is the monotonic time at which the command began, ``problem`` why it could not.
    """

    def __init__(self, place: Path, command: Command) -> None:
        self.place = place
        self.started: float | None = None
        self.problem = ""
        place.mkdir(mode=0o700)
        (place / "stdin").write_bytes(command.stdin or b"")
        drop = [] if "LC_CTYPE" in command.env else ["LC_CTYPE"]  # Python adds it to its own environment
        (place / "command.json").write_text(json.dumps({"argv": list(command.argv), "drop": drop}), encoding="utf-8")
        self._done = threading.Event()
        self._sinks: dict[str, OutputSink] = {name: (command.capture or BoundedOutput)() for name in ("stdout", "stderr")}
        readers = {name: self._make(name) for name in (*self._sinks, "start")}
        self._threads = [threading.Thread(target=self._watch, args=(readers.pop("start"),), daemon=True)]
        for name, reader in readers.items():
            pump = threading.Thread(target=self._pump, args=(name, reader, command.on_output), daemon=True)
            self._threads.append(pump)
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

    def _make(self, name: str) -> int:
        os.mkfifo(self.place / name, 0o600)
        return os.open(self.place / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def _watch(self, reader: int) -> None:
        """Wait for the pipe ``start`` to close; after that nobody can say anything on it."""
        said = bytearray()
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        with open(reader, "rb", buffering=0):
            while not self._done.is_set():
                for _, events in poll.poll(POLL_MILLISECONDS):
                    data = _read(reader)
                    said += data
                    if not data and events & select.POLLHUP:
                        os.unlink(self.place / "start")
                        self.started = time.monotonic()
                        self.problem = said.decode("utf-8", "replace")
                        return

    def _pump(self, name: Any, reader: int, on_output: Callable[[Any, bytes], None] | None) -> None:
        poll = select.poll()
        poll.register(reader, select.POLLIN)
        with open(reader, "rb", buffering=0):
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
                    self._done.wait(PAUSE_SECONDS)


@contextlib.contextmanager
def _job_pipes(place: Path, command: Command) -> Generator[_Pipes]:
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
