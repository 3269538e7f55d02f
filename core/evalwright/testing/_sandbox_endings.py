"""Checks of a sandbox: nothing outlives its command, its session or its deadline."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

from evalwright.interfaces import Deadline, Session
from evalwright.testing._contract import since
from evalwright.testing._sandbox_place import SandboxPlace, end
from evalwright.testing._waiting import soon, within

__all__ = ["EndingChecks"]

FAMILY = "trap '' TERM HUP; (sleep 300 & wait) & setsid sh -c 'trap \"\" TERM HUP; sleep 300 & wait' & echo ready; wait"
"""A command with grandchildren and a daemon in a session of its own, all of which ignore polite signals."""
SLACK = 20.0


class EndingChecks(SandboxPlace):
    """Time limits, cancellation, left-over processes, kill and destroy."""

    @since("1.0")
    def test_timeout_kills_grandchildren_and_daemons(self, tmp_path: Path) -> None:
        """At the time limit the whole family dies, whatever session it moved to and whichever signals it ignores."""
        mark, seen = secrets.token_hex(8), list[int]()
        with self.session(tmp_path) as session:
            completed = within(
                SLACK,
                lambda: self.sh(session, FAMILY, mark=mark, timeout=1.5, grace=0.2, on_output=self._sees(mark, seen)),
                "a command with a time limit of 1.5 s",
            )
            self._assert_seen_and_gone(mark, seen)
        assert completed.timed_out
        assert completed.exit_code is None

    @since("1.0")
    def test_cancellation_ends_the_command(self, tmp_path: Path) -> None:
        """Once ``canceled`` says yes the family dies."""
        mark, seen, stop = secrets.token_hex(8), list[int](), threading.Event()

        def shown(name: str, data: bytes) -> None:
            self._sees(mark, seen)(name, data)
            stop.set()

        with self.session(tmp_path) as session:
            completed = within(
                SLACK,
                lambda: self.sh(session, FAMILY, mark=mark, timeout=60.0, grace=0.2, on_output=shown, canceled=stop.is_set),
                "a canceled command",
            )
            self._assert_seen_and_gone(mark, seen)
        assert completed.canceled
        assert completed.exit_code is None

    @since("1.0")
    def test_background_child_that_holds_stdout_delays_nothing(self, tmp_path: Path) -> None:
        """The result is there when the command has ended; what it left running is killed and counted."""
        mark = secrets.token_hex(8)
        with self.session(tmp_path) as session:
            completed = within(
                SLACK, lambda: self.sh(session, "sleep 300 & echo done; exit 4", mark=mark, timeout=60.0), "a command"
            )
            assert soon(lambda: not self.processes(mark)), "a background child outlived its command"
        assert (completed.exit_code, completed.stdout.head) == (4, b"done\n")
        assert completed.leaked_processes >= 1, "leaked_processes does not count the child that was left running"

    @since("1.0")
    def test_kill_ends_a_running_command(self, tmp_path: Path) -> None:
        """``kill`` from another thread ends the family; the call that runs it returns; the session is not alive."""
        mark = secrets.token_hex(8)
        with self.session(tmp_path) as session:
            call = self._started(session, mark)
            within(SLACK, lambda: session.kill(Deadline.after(SLACK / 2)), "kill")
            assert soon(lambda: not self.processes(mark)), "processes of the session outlived kill"
            call.join(SLACK)
            assert not call.is_alive(), "execute did not return after kill"
            assert not session.alive()

    @since("1.0")
    def test_leaving_after_an_exception_leaves_nothing(self, tmp_path: Path) -> None:
        """When the runner raises while a command runs, kill, collect and destroy leave no process."""
        mark = secrets.token_hex(8)
        with self.made() as sandbox:
            session = self.begun(sandbox, self.request(tmp_path))
            call = self._started(session, mark)
            try:
                raise InterruptedError("the runner failed")
            except InterruptedError:
                within(SLACK, lambda: end(session), "kill, collect and destroy")
            assert soon(lambda: not self.processes(mark)), "a process outlived its session"
            call.join(SLACK)
            assert not call.is_alive()

    @since("1.0")
    def test_close_ends_what_still_runs(self, tmp_path: Path) -> None:
        """Closing the plugin ends the commands of sessions that nobody ended."""
        mark = secrets.token_hex(8)
        with self.made() as sandbox:
            session = self.begun(sandbox, self.request(tmp_path))
            call = self._started(session, mark)
            within(SLACK, lambda: sandbox.close(Deadline.after(SLACK / 2)), "close")
            assert soon(lambda: not self.processes(mark)), "a process outlived its sandbox"
            call.join(SLACK)
            within(SLACK, lambda: session.destroy(Deadline.after(1.0)), "destroy")

    @since("1.0")
    def test_ending_twice_and_ending_an_idle_session_do_no_harm(self, tmp_path: Path) -> None:
        """The core may end a session that ran nothing, and one that was ended before."""
        with self.made() as sandbox:
            session = self.begun(sandbox, self.request(tmp_path))
            assert session.alive()
            for what in ("ending an idle session", "ending a session twice"):
                try:
                    within(SLACK, lambda: end(session), what)
                except Exception as error:
                    raise AssertionError(f"{what} raised {error!r}") from error
            assert not session.alive()

    @since("1.0")
    def test_destroy_keeps_its_deadline(self, tmp_path: Path) -> None:
        """``destroy`` returns or raises about when its deadline passes, whatever there is to release."""
        with self.made() as sandbox:
            session = self.begun(sandbox, self.request(tmp_path))
            session.kill(Deadline.after(SLACK))
            within(SLACK / 4, lambda: _attempt(session, Deadline.after(1.0)), "destroy with a deadline of 1 s")

    def _started(self, session: Session, mark: str) -> threading.Thread:
        """Run the family in a thread; return when its processes are there."""
        ready = threading.Event()

        def shown(_name: str, _data: bytes) -> None:
            ready.set()

        def carry_out() -> None:
            with contextlib.suppress(Exception):  # it may raise when it is killed; what counts is that nothing is left
                self.sh(session, FAMILY, mark=mark, timeout=60.0, grace=0.2, on_output=shown)

        thread = threading.Thread(target=carry_out, daemon=True)
        thread.start()
        assert ready.wait(SLACK), "the command did not start"
        assert soon(lambda: len(self.processes(mark)) >= 3), "the command's processes cannot be seen; implement Sandbox.find"
        return thread

    def _sees(self, mark: str, seen: list[int]) -> Callable[[str, bytes], None]:
        def shown(_name: str, _data: bytes) -> None:
            seen.extend(self.processes(mark))

        return shown

    def _assert_seen_and_gone(self, mark: str, seen: list[int]) -> None:
        assert seen, "the command's processes cannot be seen; implement Sandbox.find"
        assert soon(lambda: not self.processes(mark)), f"still running: {self.processes(mark)}"


def _attempt(session: Session, deadline: Deadline) -> None:
    try:
        session.destroy(deadline)
    except Exception:
        return  # a failure is a warning, a hang is not
