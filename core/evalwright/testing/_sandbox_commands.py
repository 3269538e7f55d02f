"""Checks of a sandbox: how a command ends, what it reads and what it writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.errors import SandboxError
from evalwright.interfaces import BoundedOutput, Command
from evalwright.testing._contract import since
from evalwright.testing._sandbox_place import SandboxPlace
from evalwright.testing._waiting import in_threads

__all__ = ["CommandChecks"]

FLOOD_BYTES = 8_000_000
KEPT_BYTES = 1000
STDIN = bytes(range(256)) * 2000


class CommandChecks(SandboxPlace):
    """Exit status, streams, stdin, environment and working directory."""

    @since("1.0")
    def test_exit_status_is_kept(self, tmp_path: Path) -> None:
        """The status arrives as it is: 0, 3 and 255; a death by signal is negative."""
        with self.session(tmp_path) as session:
            for status in (0, 3, 255):
                assert self.sh(session, f"exit {status}").exit_code == status
            died = self.sh(session, "kill -9 $$")
        assert (died.exit_code, died.signal) == (-9, 9), f"a death by signal 9 was reported as {died.exit_code}"

    @since("1.0")
    def test_program_that_does_not_exist_is_a_spawn_error(self, tmp_path: Path) -> None:
        """A program that cannot start is neither an exception nor an exit status."""
        with self.session(tmp_path) as session:
            completed = session.execute(Command(argv=["/nonexistent/program"], timeout=30.0))
        assert completed.spawn_error
        assert completed.exit_code is None

    @since("1.0")
    def test_stdout_and_stderr_are_apart_and_bytes(self, tmp_path: Path) -> None:
        """Both streams arrive, unmixed, with every byte that is no text."""
        with self.session(tmp_path) as session:
            completed = self.sh(session, r"printf '\377\000out'; printf '\376err' >&2")
        assert completed.stdout.head == b"\xff\x00out"
        assert completed.stderr.head == b"\xfeerr"

    @since("1.0")
    def test_output_is_shown_while_it_comes(self, tmp_path: Path) -> None:
        """``on_output`` gets every chunk with the name of its stream."""
        shown: list[tuple[str, bytes]] = []

        def show(name: str, data: bytes) -> None:
            shown.append((name, data))

        with self.session(tmp_path) as session:
            self.sh(session, "printf out; printf err >&2", on_output=show)
        assert b"".join(data for name, data in shown if name == "stdout") == b"out"
        assert b"".join(data for name, data in shown if name == "stderr") == b"err"

    @since("1.0")
    def test_stdin_is_delivered_then_closed(self, tmp_path: Path) -> None:
        """All of it, however long, then the end; without stdin a reader meets the end at once."""
        with self.session(tmp_path) as session:
            echoed = self.sh(session, "cat; printf end", stdin=STDIN)
            empty = self.sh(session, "cat; printf end")
        assert echoed.stdout.head == STDIN + b"end"
        assert empty.stdout.head == b"end"

    @since("1.0")
    def test_flood_is_bounded_and_counted(self, tmp_path: Path) -> None:
        """The sink that the command names keeps a part; every byte counts."""
        with self.session(tmp_path) as session:
            script = f"head -c {FLOOD_BYTES} /dev/zero"
            completed = self.sh(session, script, capture=lambda: BoundedOutput(KEPT_BYTES))
        assert completed.exit_code == 0
        assert len(completed.stdout.head) <= KEPT_BYTES, "more was kept than the sink of `capture` allows"
        assert completed.stdout.total_bytes == FLOOD_BYTES
        assert completed.stdout.truncated

    @since("1.0")
    def test_environment_is_what_the_command_says(self, tmp_path: Path) -> None:
        """The request's variables and the command's, which win; nothing of the harness's own environment."""
        with self.session(tmp_path, env={"SHARED": "request", "OWN": "request"}) as session:
            command = Command(argv=["/usr/bin/env"], env={"OWN": "command"}, timeout=30.0)
            lines = session.execute(command).stdout.text.splitlines()
        assert "SHARED=request" in lines
        assert "OWN=command" in lines
        ours = set(os.environ) - {"HOME", "HOSTNAME", "LANG", "PATH", "PWD", "SHLVL", "TERM", "_"}
        leaked = sorted(name for name in (line.partition("=")[0] for line in lines) if name in ours)
        assert not leaked, f"variables of the harness reached the command: {leaked}"

    @since("1.0")
    def test_commands_start_in_the_workspace_or_where_they_say(self, tmp_path: Path) -> None:
        """``cwd`` is a path as commands see it; ``None`` is the workspace."""
        with self.session(tmp_path) as session:
            assert self.sh(session, "mkdir inner && pwd -P").stdout.text.strip() == str(session.workspace)
            inner = session.workspace / "inner"
            assert self.sh(session, "pwd -P", cwd=str(inner)).stdout.text.strip() == str(inner)
            assert self.sh(session, "pwd -P", cwd=str(session.exchange)).stdout.text.strip() == str(session.exchange)

    @since("1.0")
    def test_cwd_outside_the_workspace_is_refused(self, tmp_path: Path) -> None:
        """``SandboxError`` for the root, for a way up, and for a link that leads out."""
        with self.session(tmp_path) as session:
            self.sh(session, "ln -s / out")
            for cwd in ("/", str(session.workspace / ".." / ".."), str(session.workspace / "out")):
                with pytest.raises(SandboxError):
                    self.sh(session, "true", cwd=cwd)

    @since("1.0")
    def test_eight_sessions_work_at_once(self, tmp_path: Path) -> None:
        """One sandbox serves eight threads; no session sees another's files or output."""
        with self.made() as sandbox:

            def trial(number: int) -> tuple[str, str]:
                with self.opened(sandbox, tmp_path) as session:
                    self.sh(session, f"echo {number} > own")
                    return self.sh(session, "cat own").stdout.text.strip(), self.sh(session, "ls").stdout.text.strip()

            assert in_threads(trial) == [(str(number), "own") for number in range(8)]

    @since("1.0")
    def test_eight_commands_of_one_session_work_at_once(self, tmp_path: Path) -> None:
        """A session that several threads use mixes nothing up."""
        with self.session(tmp_path) as session:
            texts = in_threads(lambda number: self.sh(session, f"echo {number}; echo e{number} >&2").stdout.text)
        assert texts == [f"{number}\n" for number in range(8)]
