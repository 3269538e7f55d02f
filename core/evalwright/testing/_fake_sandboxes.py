"""Two sandboxes for tests: an honest one, and one that leaves processes behind."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from dataclasses import replace
from pathlib import PurePosixPath

from evalwright.errors import SandboxError
from evalwright.interfaces import BoundedOutput, Command, Deadline, Host, LocalSession, Sandbox, SandboxRequest, Session
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright.testing._processes import MARK, end_marked, marked

__all__ = ["FakeSandbox", "FakeSession", "LeakySandbox"]


class FakeSession(LocalSession):
    """Runs commands for real in the request's directories; ``commands`` and ``steps`` say what was asked of it."""

    isolation = "process-tree"

    def __init__(self, request: SandboxRequest, supervisor: Supervisor) -> None:
        super().__init__(request)
        self.supervisor = supervisor
        self.commands: list[Command] = []
        self.steps: list[str] = []

    def execute(self, command: Command) -> Completed:
        """Run a command to its end."""
        self.commands.append(command)
        process = self.supervisor.start(self.placed(command))
        with self.running(process):
            return process.wait()

    def placed(self, command: Command) -> Command:
        """Return the command with the host's working directory and the whole environment.

        Raises ``SandboxError`` for a working directory outside.
        """
        cwd = self.host_path(PurePosixPath(command.cwd or self.workspace))
        roots = (self.request.workspace.resolve(), self.request.exchange.resolve())
        if not any(cwd.resolve().is_relative_to(root) for root in roots):
            raise SandboxError(f"{command.cwd} leads out of the workspace", hint="use a directory inside it")
        limits = {**self.request.limits, **command.limits}
        return replace(command, cwd=str(cwd), env={**self.request.env, **command.env}, limits=limits)

    def kill(self, deadline: Deadline) -> None:
        """End every running command."""
        self.steps.append("kill")
        super().kill(deadline)

    def collect(self, deadline: Deadline) -> None:
        """Note the call."""
        self.steps.append("collect")

    def destroy(self, deadline: Deadline) -> None:
        """Note the call."""
        self.steps.append("destroy")


class FakeSandbox(Sandbox[None]):
    """An honest sandbox without isolation. ``sessions`` lists what was opened, oldest first."""

    api = "sandbox/1.0"
    capabilities = frozenset({"resource-limits"})

    def __init__(self, config: None = None, host: Host | None = None) -> None:
        super().__init__(config, host)  # type: ignore[arg-type]  # it never asks its host
        self.supervisor = Supervisor()
        self.sessions: list[FakeSession] = []

    def open(self, request: SandboxRequest) -> Session:
        """Return a session in the request's own directories."""
        session = FakeSession(request, self.supervisor)
        self.sessions.append(session)
        return session

    def close(self, deadline: Deadline) -> None:
        """End every command that still runs."""
        self.supervisor.close()


class LeakySandbox(FakeSandbox):
    """A dishonest sandbox: kill does nothing, and processes in the background live on.

    They end with :meth:`end_everything`, which a test calls when it has seen enough.
    """

    def __init__(self, config: None = None, host: Host | None = None) -> None:
        super().__init__(config, host)
        self.marks: set[str] = set()

    def open(self, request: SandboxRequest) -> Session:
        """Return a session that leaks."""
        session = _LeakySession(request, self.supervisor, self.marks)
        self.sessions.append(session)
        return session

    def close(self, deadline: Deadline) -> None:
        """Do nothing."""

    def left_running(self) -> list[int]:
        """Return the processes that live on."""
        return [pid for mark in self.marks for pid in marked(mark)]

    def end_everything(self) -> None:
        """Kill what lives on."""
        for mark in self.marks:
            end_marked(mark)


class _LeakySession(FakeSession):
    def __init__(self, request: SandboxRequest, supervisor: Supervisor, marks: set[str]) -> None:
        super().__init__(request, supervisor)
        self._marks = marks

    def execute(self, command: Command) -> Completed:
        placed = self.placed(command)
        mark = placed.env.get(MARK) or secrets.token_hex(8)
        self._marks.add(mark)
        child = subprocess.Popen(
            placed.argv,
            cwd=placed.cwd,
            env={**placed.env, MARK: mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        with child.stdout:
            with contextlib.suppress(BrokenPipeError), child.stdin:
                child.stdin.write(placed.stdin or b"")
            head = child.stdout.readline()
        if command.on_output and head:
            command.on_output("stdout", head)
        return _ended(child, head, command)

    def kill(self, deadline: Deadline) -> None:
        """Do nothing."""


def _ended(child: subprocess.Popen[bytes], head: bytes, command: Command) -> Completed:
    """Wait for the command itself; at its time limit end it alone."""
    sink = (command.capture or BoundedOutput)()
    sink.feed(head)
    try:
        status: int | None = child.wait(command.timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        return Completed(timed_out=True, stdout=sink.finish())
    return Completed(exit_code=status, stdout=sink.finish())
