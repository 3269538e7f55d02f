"""Every check of the sandbox contract fails on a sandbox that is broken in that way, and passes on an honest one."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from evalwright.interfaces import BoundedOutput, Command, Deadline, Host, SandboxRequest, Session
from evalwright.model import Completed
from evalwright.testing import FakeSandbox, FakeSession, LeakySandbox, SandboxContract

Execute = Callable[[FakeSession, Command], Completed]


class TestFakeSandbox(SandboxContract):
    def make(self, host: Host) -> FakeSandbox:
        return FakeSandbox(None, host)


def honest(session: FakeSession, command: Command) -> Completed:
    return FakeSession.execute(session, command)


class SwappingSandbox(FakeSandbox):
    """Honest but for the methods of its sessions that ``swaps`` replaces."""

    def __init__(self, swaps: dict[str, Any], capabilities: frozenset[str]) -> None:
        super().__init__()
        self.capabilities = capabilities  # type: ignore[misc]  # one class serves every broken sandbox
        self.session_class = type("BrokenSession", (FakeSession,), swaps)

    def open(self, request: SandboxRequest) -> Session:
        session: FakeSession = self.session_class(request, self.supervisor)
        return session


def contract(*capabilities: str, **swaps: Any) -> type[SandboxContract]:
    class Broken(SandboxContract):
        def make(self, host: Host) -> SwappingSandbox:
            return SwappingSandbox(swaps, frozenset(capabilities))

        def make_allowing(self, host: Host, allowed: str) -> SwappingSandbox:
            return self.make(host)

    return Broken


def after(change: Callable[[Completed], Completed]) -> type[SandboxContract]:
    """Return the contract of a sandbox that reports something else than what happened."""

    def execute(session: FakeSession, command: Command) -> Completed:
        return change(honest(session, command))

    return contract(execute=execute)


def before(change: Callable[[FakeSession, Command], Command]) -> type[SandboxContract]:
    """Return the contract of a sandbox that runs something else than it was asked to."""

    def execute(session: FakeSession, command: Command) -> Completed:
        return honest(session, change(session, command))

    return contract(execute=execute)


def mixed(done: Completed) -> Completed:
    return replace(done, stdout=replace(done.stdout, head=done.stdout.head + done.stderr.head))


def as_text(done: Completed) -> Completed:
    return replace(done, stdout=replace(done.stdout, head=done.stdout.text.encode()))


def counting_what_was_kept(done: Completed) -> Completed:
    return replace(done, stdout=replace(done.stdout, total_bytes=len(done.stdout.head)))


def without_limits(session: FakeSession, command: Command) -> Command:
    return replace(FakeSession.placed(session, command), limits={})


def next_door(session: FakeSession, port: int) -> str:
    return "127.0.0.1:1"


def loopback(session: FakeSession, port: int) -> str:
    return f"127.0.0.1:{port}"


def anywhere(session: FakeSession, command: Command) -> Completed:
    return session.supervisor.run(replace(command, cwd=command.cwd or str(session.workspace)))


def at_the_root(session: FakeSession, command: Command) -> Command:
    return replace(command, cwd=None)


def refuse_nothing(session: FakeSession, path: PurePosixPath) -> Path:
    return Path(session.workspace / path)


def follow(session: FakeSession, path: PurePosixPath, *, max_bytes: int) -> bytes:
    return session.host_path(path).read_bytes()[:max_bytes]


def read_everything(session: FakeSession, path: PurePosixPath, *, max_bytes: int) -> bytes:
    return FakeSession.get(session, path, max_bytes=1 << 30)


def empty_when_missing(session: FakeSession, path: PurePosixPath, *, max_bytes: int) -> bytes:
    return FakeSession.get(session, path, max_bytes=max_bytes) if session.host_path(path).exists() else b""


def tidy_up(session: FakeSession, deadline: Deadline) -> None:
    shutil.rmtree(session.request.workspace)


def raise_when_idle(session: FakeSession, deadline: Deadline) -> None:
    if not session.commands:
        raise RuntimeError("nothing ran")


def hang(session: FakeSession, deadline: Deadline) -> None:
    threading.Event().wait(30)


def one_at_a_time() -> Execute:
    """Return an ``execute`` that remembers its command in a shared place."""
    last: list[Command] = []

    def execute(session: FakeSession, command: Command) -> Completed:
        last[:] = [command]
        threading.Event().wait(0.05)
        return honest(session, last[0])

    return execute


def elsewhere(session: FakeSession, source: Path) -> PurePosixPath:
    return PurePosixPath("/agent")


def text_only(session: FakeSession, source: Path | bytes, to: PurePosixPath) -> None:
    data = source.decode("utf-8", "replace").encode() if isinstance(source, bytes) else source
    FakeSession.put(session, data, to)


STATUS = "test_exit_status_is_kept"
BROKEN: list[tuple[str, type[SandboxContract]]] = [
    (STATUS, after(lambda done: replace(done, exit_code=done.exit_code and 1))),
    (STATUS, after(lambda done: replace(done, exit_code=done.exit_code if done.signal is None else 128 + done.signal))),
    ("test_program_that_does_not_exist_is_a_spawn_error", after(lambda d: replace(d, spawn_error=None, exit_code=127))),
    ("test_stdout_and_stderr_are_apart_and_bytes", after(mixed)),
    ("test_stdout_and_stderr_are_apart_and_bytes", after(as_text)),
    ("test_output_is_shown_while_it_comes", before(lambda _, command: replace(command, on_output=None))),
    ("test_stdin_is_delivered_then_closed", before(lambda _, command: replace(command, stdin=(command.stdin or b"")[:65536]))),
    ("test_flood_is_bounded_and_counted", before(lambda _, command: replace(command, capture=BoundedOutput))),
    (
        "test_flood_is_bounded_and_counted",
        after(lambda d: replace(d, stdout=replace(d.stdout, total_bytes=len(d.stdout.head)))),
    ),
    ("test_environment_is_what_the_command_says", before(lambda _, c: replace(c, env={**os.environ, **c.env}))),
    ("test_environment_is_what_the_command_says", contract(execute=anywhere)),
    ("test_commands_start_in_the_workspace_or_where_they_say", before(at_the_root)),
    ("test_cwd_outside_the_workspace_is_refused", contract(execute=anywhere)),
    ("test_eight_sessions_work_at_once", contract(execute=one_at_a_time())),
    ("test_eight_commands_of_one_session_work_at_once", contract(execute=one_at_a_time())),
    ("test_background_child_that_holds_stdout_delays_nothing", after(lambda done: replace(done, leaked_processes=0))),
    ("test_cancellation_ends_the_command", before(lambda _, c: replace(c, canceled=None, timeout=min(c.timeout or 3, 3)))),
    ("test_timeout_kills_grandchildren_and_daemons", after(lambda done: replace(done, timed_out=False, exit_code=-9))),
    ("test_ending_twice_and_ending_an_idle_session_do_no_harm", contract(kill=raise_when_idle)),
    ("test_destroy_keeps_its_deadline", contract(destroy=hang)),
    ("test_put_and_get_round_trip", contract(put=text_only)),
    ("test_get_reads_what_a_command_wrote_and_no_more_than_asked", contract(get=read_everything)),
    ("test_get_of_a_missing_file_says_so", contract(get=empty_when_missing)),
    ("test_get_refuses_links_and_directories", contract(get=follow)),
    ("test_get_refuses_a_fifo_and_never_hangs", contract(get=follow)),
    ("test_paths_outside_are_refused", contract(host_path=refuse_nothing)),
    ("test_collect_brings_the_changes_back", contract(collect=tidy_up)),
    ("test_mounts_are_readable_where_inside_says", contract(inside=elsewhere)),
    ("test_writable_mounts_are_written_and_refused_where_not_declared", contract("writable-mounts", writable_mounts=True)),
    (
        "test_writable_mounts_are_written_and_refused_where_not_declared",
        contract("writable-mounts", writable_mounts=True, inside=elsewhere),
    ),
    ("test_writable_mounts_are_written_and_refused_where_not_declared", contract(writable_mounts=True)),
    ("test_fs_isolated_sessions_see_neither_each_other_nor_the_host", contract("fs-isolated")),
    ("test_gold_isolated_agents_cannot_read_the_suite", contract("gold-isolated")),
    ("test_pid_isolated_commands_cannot_reach_the_host_s_processes", contract("pid-isolated")),
    ("test_network_off_reaches_no_listener_of_the_host", contract("network-off")),
    ("test_network_allowlist_reaches_what_it_lists_and_nothing_else", contract("network-allowlist")),
    (
        "test_resource_limits_bind",
        contract("resource-limits", placed=without_limits),
    ),
    ("test_ports_are_reachable_at_their_address", contract("ports", address=next_door)),
]
LEAKING = [
    "test_timeout_kills_grandchildren_and_daemons",
    "test_background_child_that_holds_stdout_delays_nothing",
    "test_kill_ends_a_running_command",
    "test_leaving_after_an_exception_leaves_nothing",
    "test_close_ends_what_still_runs",
]


@pytest.mark.parametrize(("check", "broken"), BROKEN, ids=[f"{number}-{check}" for number, (check, _) in enumerate(BROKEN)])
def test_check_fails_on_its_broken_sandbox(check: str, broken: type[SandboxContract], prove: Any) -> None:
    prove(broken, check)


@pytest.fixture
def leaky() -> Iterator[LeakySandbox]:
    sandbox = LeakySandbox()
    yield sandbox
    sandbox.end_everything()


@pytest.mark.parametrize("check", LEAKING)
def test_check_fails_on_the_leaky_sandbox(check: str, leaky: LeakySandbox, prove: Any) -> None:
    class Leaky(SandboxContract):
        def make(self, host: Host) -> LeakySandbox:
            return leaky

    prove(Leaky, check)
    assert leaky.left_running()


def test_every_check_has_a_broken_sandbox(checks: Any) -> None:
    assert checks(SandboxContract) == {check for check, _ in BROKEN} | set(LEAKING)


def test_checks_of_capabilities_pass_where_nothing_is_declared(tmp_path: Path) -> None:
    modest = contract()()
    modest.test_network_off_reaches_no_listener_of_the_host(tmp_path)
    modest.test_fs_isolated_sessions_see_neither_each_other_nor_the_host(tmp_path)


@pytest.mark.parametrize(
    "check", ["test_network_off_reaches_no_listener_of_the_host", "test_ports_are_reachable_at_their_address"]
)
def test_check_of_a_capability_passes_on_a_sandbox_that_has_it(check: str, tmp_path: Path, require: Any) -> None:
    require("unshare")

    def without_network(session: FakeSession, command: Command) -> Completed:
        return honest(session, replace(command, argv=["unshare", "-rn", *command.argv]))

    if check == "test_ports_are_reachable_at_their_address":
        having = contract("ports", address=loopback)
    else:
        having = contract("network-off", execute=without_network)
    getattr(having(), check)(tmp_path)
