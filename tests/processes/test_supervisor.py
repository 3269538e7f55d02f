"""Commands under supervision: what they return, what dies with them, and what they can do to their supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import SandboxLost
from evalwright.interfaces import BoundedOutput, Command
from evalwright.model import Completed
from evalwright.processes import ProcessIdentity, Supervisor, boot_id, current_process
from evalwright.processes.cgroups import Cgroups
from evalwright.testing import soon, within

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
LIBC_SIGNALS = 0b11 << 31  # 32 and 33 are the C library's own: no program can set them, a parent may have ignored them


def living(pid_file: Path) -> list[int]:
    """Return those processes named in a file, one a line, that still run; zombies do not."""
    pids = [int(word) for word in pid_file.read_text().split()] if pid_file.exists() else []
    return [pid for pid in pids if state_of(pid) not in {"Z", "X", ""}]


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def end(pid_file: Path) -> None:
    """Kill what a test left behind, by pid."""
    for pid in living(pid_file):
        os.kill(pid, signal.SIGKILL)


def shell(line: str, **more: Any) -> Command:
    return replace(Command(argv=["/bin/sh", "-c", line], env=PATH, timeout=20), **more)


@pytest.fixture(params=["cgroup", "process"], autouse=True)
def means(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs once with each means of supervision that the kernel gives."""
    if request.param == "process":
        monkeypatch.setenv("EVALWRIGHT_SUPERVISION", "process")
    elif cgroups := Cgroups.make():
        cgroups.close()
    else:
        pytest.skip("no cgroup v2 directory can be written here")
    return str(request.param)


@pytest.fixture
def supervisor(means: str) -> Iterator[Supervisor]:
    with Supervisor() as started:
        yield started


@pytest.fixture
def find(means: str, pids: Path) -> str:
    """Return shell that finds what is above a command: ``$sup`` its supervisor, ``$server`` the fork server."""
    above = "read _ _ _ sup _ < /proc/$$/stat; read _ _ _ server _ < /proc/$sup/stat"
    return f"{above if means == 'process' else above + '; server=$sup'}; echo $sup $server >> {pids}.above"


@pytest.fixture
def pids(tmp_path: Path) -> Iterator[Path]:
    """Return a file in which commands note their pids; what still lives at the end of the test is killed."""
    file = tmp_path / "pids"
    yield file
    end(file)
    end(file.with_name("pids.above"))


def test_background_child_neither_delays_nor_survives_the_command(supervisor: Supervisor, pids: Path) -> None:
    started = time.monotonic()

    done = supervisor.run(shell(f"sleep 30 & echo $! > {pids}; echo done; exit 0"))

    assert (done.exit_code, done.stdout.text, done.timed_out, done.leaked_processes) == (0, "done\n", False, 1)
    assert time.monotonic() - started < 3
    assert living(pids) == []


@pytest.mark.parametrize(
    "detached",
    [
        "sleep 30 & echo $! >> {pids}",
        "setsid sh -c 'echo $$ >> {pids}; exec sleep 30' & until [ -s {pids} ]; do :; done",
        "setsid sh -c '(setsid sh -c \"echo \\$\\$ >> {pids}; exec sleep 30\" &) &' ; until [ -s {pids} ]; do :; done",
        "sh -c 'trap \"\" TERM HUP INT; echo $$ >> {pids}; while :; do sleep 1; done' & until [ -s {pids} ]; do :; done",
        "env -i /bin/sh -c 'echo $$ >> {pids}; exec /bin/sleep 30' & until [ -s {pids} ]; do :; done",
        "sh -c 'echo $$ >> {pids}; kill -STOP $$; exec sleep 30' & until [ -s {pids} ]; do :; done",
    ],
    ids=["background", "setsid", "double fork", "TERM trapped", "cleared environment", "stopped"],
)
@pytest.mark.parametrize("ending", ["exit 3", "kill -9 $$"])
def test_no_descendant_outlives_the_command_however_it_detached(
    supervisor: Supervisor, pids: Path, detached: str, ending: str
) -> None:
    done = supervisor.run(shell(f"{detached.format(pids=pids)}; {ending}"))

    assert done.exit_code == (3 if ending == "exit 3" else -9)
    assert pids.read_text().strip()
    assert living(pids) == []
    assert done.leaked_processes >= 1
    assert done.survivors == 0


def test_timeout_ends_within_timeout_and_grace_though_every_process_ignores_term(supervisor: Supervisor, pids: Path) -> None:
    stubborn = f"trap '' TERM; echo $$ >> {pids}; (setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 30' &) ; sleep 30"
    started = time.monotonic()

    done = supervisor.run(shell(stubborn, timeout=0.5, grace=0.5))

    assert time.monotonic() - started < 2.5
    assert (done.timed_out, done.exit_code) == (True, None)
    assert len(pids.read_text().split()) == 2
    assert living(pids) == []


def test_timed_out_command_gets_term_and_its_grace_time_first(supervisor: Supervisor) -> None:
    done = supervisor.run(shell("trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done", timeout=0.5, grace=5))

    assert done.timed_out
    assert done.stdout.text == "up\nbye\n"
    assert done.duration < 4


def test_relay_of_short_lived_processes_cannot_outrun_the_kill(supervisor: Supervisor, pids: Path) -> None:
    hop = "import os, sys; n = int(sys.argv[1]); f = open(sys.argv[2], 'w')\nwhile n > 0:\n  n -= 1\n"
    hop += "  if os.fork(): os._exit(0)\n  f.seek(0); f.write(f'{os.getpid():10}'); f.flush()\n"

    done = supervisor.run(Command(argv=[sys.executable, "-c", hop, "2000", str(pids)], timeout=20))

    assert done.exit_code == 0
    assert done.survivors == 0
    assert living(pids) == []


def test_output_written_before_the_end_is_complete_and_none_is_awaited_after(supervisor: Supervisor) -> None:
    done = supervisor.run(shell("head -c 300000 /dev/zero | tr '\\0' x; printf err >&2"))

    assert done.stdout.total_bytes == 300000
    assert done.stderr.text == "err"


def test_full_stderr_pipe_does_not_block_the_command(supervisor: Supervisor) -> None:
    program = 'import sys; sys.stderr.write("x" * 2000000); print("ok")'

    done = supervisor.run(Command(argv=[sys.executable, "-c", program], timeout=20, capture=lambda: BoundedOutput(1000)))

    assert (done.exit_code, done.stdout.text) == (0, "ok\n")
    assert (len(done.stderr.head), done.stderr.total_bytes, done.stderr.truncated) == (1000, 2000000, True)


def test_stdin_is_empty_unless_given_and_holds_what_is_given(supervisor: Supervisor) -> None:
    assert supervisor.run(shell("cat")).stdout.text == ""
    assert supervisor.run(shell("cat", stdin=b"a\0b" * 100000)).stdout.total_bytes == 300000


def test_command_inherits_no_descriptor_and_no_variable(supervisor: Supervisor) -> None:
    with open("/etc/hostname", "rb") as held:
        os.set_inheritable(held.fileno(), True)
        listing = "import os; print([f for f in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{f}')])"
        shown = f"{listing}; print(dict(os.environ))"
        done = supervisor.run(Command(argv=[sys.executable, "-I", "-c", shown], env={"ONLY": "1"}, timeout=9))

    descriptors, variables = done.stdout.text.splitlines()
    assert descriptors == "['0', '1', '2']"
    assert variables in {"{'ONLY': '1'}", "{'ONLY': '1', 'LC_CTYPE': 'C.UTF-8'}"}


FORGERY = """
import json, os, sys
report = {"timed_out": False, "canceled": False, "leaked": 0, "survivors": 0, "status": 0, "duration": 0.0}
for descriptor in range(3, 40):
    try:
        os.write(descriptor, json.dumps(report).encode())
    except OSError:
        pass
sys.exit(7)
"""


def test_command_cannot_report_its_own_end(supervisor: Supervisor) -> None:
    done = supervisor.run(Command(argv=[sys.executable, "-c", FORGERY], timeout=9))

    assert done.exit_code == 7


def test_command_starts_with_default_signal_handling_and_none_blocked(supervisor: Supervisor) -> None:
    done = supervisor.run(shell("grep -E '^Sig(Blk|Ign)' /proc/self/status"))

    masks = [int(line.split()[1], 16) & ~LIBC_SIGNALS for line in done.stdout.text.splitlines()]
    assert masks == [0, 0]


@pytest.mark.parametrize(
    ("argv", "cwd"),
    [
        (["no-such-program"], "/"),
        (["/etc/hostname"], "/"),
        (["true"], "/no/such/directory"),
        (["true"], "/etc/hostname"),
        ([], "/"),
        ([""], "/"),
        (["tr\0ue"], "/"),
        (["\ud800"], "/"),
        (["true", "x" * 3_000_000], "/"),
        (["x" * 100], "/"),
        (["x" * 70_000], "/"),
        (["x" * 1_000_000], "/"),
    ],
    ids=str.split("absent unexecutable no-cwd file-cwd none empty nul surrogate too-big long-name huge-name vast-name"),
)
def test_program_that_cannot_start_is_a_result_and_no_exception(supervisor: Supervisor, argv: list[str], cwd: str) -> None:
    done = supervisor.run(Command(argv=argv, cwd=cwd, env=PATH, timeout=5))

    assert done.spawn_error
    assert done.exit_code is None
    assert not done.timed_out


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1, 40])
def test_death_by_signal_is_told_by_number(supervisor: Supervisor, number: int) -> None:
    done = supervisor.run(Command(argv=[sys.executable, "-c", f"import os; os.kill(os.getpid(), {int(number)})"], timeout=9))

    assert (done.exit_code, done.signal) == (-number, number)


def test_exit_status_of_a_quick_command_is_never_lost(supervisor: Supervisor) -> None:
    assert [supervisor.run(shell(f"exit {code}")).exit_code for code in range(30)] == list(range(30))


@pytest.mark.parametrize(
    ("limits", "line", "name"),
    [
        ({"file_size_bytes": 1000}, "exec head -c 100000 /dev/zero > {directory}/big", "file_size_limit"),
        ({"cpu_seconds": 1}, "while :; do :; done", "cpu_limit"),
    ],
)
def test_exceeded_limit_is_named(supervisor: Supervisor, tmp_path: Path, limits: dict[str, int], line: str, name: str) -> None:
    done = supervisor.run(shell(line.format(directory=tmp_path), limits=limits))

    assert done.limit == name


def test_cancel_ends_the_tree_within_its_grace_time(supervisor: Supervisor, pids: Path) -> None:
    wish = threading.Event()
    command = shell(f"echo $$ >> {pids}; setsid sleep 30 & echo $! >> {pids}; sleep 30", canceled=wish.is_set, grace=0.3)
    process = supervisor.start(command)
    result: list[Completed] = []
    waiting = threading.Thread(target=lambda: result.append(process.wait()))
    waiting.start()
    assert soon(lambda: len(living(pids)) == 2, 10)

    wish.set()

    waiting.join(5)
    assert [(done.canceled, done.timed_out, done.exit_code) for done in result] == [(True, False, None)]
    assert living(pids) == []


def test_kill_from_another_thread_ends_the_command(supervisor: Supervisor, pids: Path) -> None:
    process = supervisor.start(shell(f"echo $$ > {pids}; sleep 30"))
    assert soon(lambda: living(pids), 10)

    threading.Thread(target=process.kill).start()

    assert process.wait().canceled
    assert living(pids) == []


def test_many_commands_at_once_keep_their_own_output_and_status(supervisor: Supervisor) -> None:
    results: dict[int, Completed] = {}

    def run(number: int) -> None:
        results[number] = supervisor.run(shell(f"echo {number}; sleep 0.05; exit {number}"))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert {n: (done.exit_code, done.stdout.text) for n, done in results.items()} == {n: (n, f"{n}\n") for n in range(40)}


def test_descriptors_and_children_do_not_pile_up_over_many_commands(supervisor: Supervisor) -> None:
    supervisor.run(shell("true"))
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(30):
        supervisor.run(shell("sleep 9 & exit 1"))
        supervisor.run(Command(argv=["no-such-program"], timeout=5))

    assert len(os.listdir("/proc/self/fd")) == before


def test_closing_the_supervisor_ends_running_commands(pids: Path) -> None:
    supervisor = Supervisor()
    process = supervisor.start(shell(f"echo $$ >> {pids}; setsid sleep 30 & echo $! >> {pids}; sleep 30"))
    assert soon(lambda: len(living(pids)) == 2, 10)

    supervisor.close()

    assert soon(lambda: not living(pids), 3), "close() left a command running"
    done = process.wait()
    assert done.exit_code != 0


def test_supervisor_can_be_used_again_after_its_fork_server_was_killed(supervisor: Supervisor, find: str) -> None:
    server = int(supervisor.run(shell(f"{find}; echo $server")).stdout.text)

    os.kill(server, signal.SIGKILL)
    assert soon(lambda: state_of(server) in {"", "Z"})

    assert supervisor.run(shell("echo again")).stdout.text == "again\n"


@pytest.mark.parametrize(
    "attack",
    [
        "kill -9 $sup",
        "kill -9 $server",
        "kill -9 $server $sup",
        "kill -STOP $sup",
        "kill -STOP $server $sup",
        "kill -STOP $server; kill -9 $sup",
        "kill -TERM $sup; kill -INT $sup; kill -HUP $sup",
    ],
    ids=["kill", "kill server", "kill both", "stop", "stop both", "stop server and kill", "ask to end"],
)
def test_command_that_attacks_its_supervisor_neither_hangs_the_harness_nor_stays_alive(
    pids: Path, find: str, attack: str
) -> None:
    note = f"echo $$ >> {pids}; setsid sleep 60 & echo $! >> {pids}"
    line = f"exec >/dev/null 2>&1; {note}; {find}; {attack}; exec sleep 60"
    supervisor = Supervisor()
    try:
        with contextlib.suppress(SandboxLost):
            assert within(10, lambda: supervisor.run(shell(line, timeout=1, grace=0.2)), "the command").timed_out
        assert len(pids.read_text().split()) == 2
        assert soon(lambda: not living(pids), 3), "the command outlived the attack on its supervisor"
    finally:
        end(pids.with_name("pids.above"))
        supervisor.close()


def test_tree_of_a_lost_supervisor_is_dead_before_the_loss_is_reported(supervisor: Supervisor, pids: Path, find: str) -> None:
    line = f"exec >/dev/null 2>&1; echo $$ >> {pids}; {find}; kill -9 $sup $server; exec sleep 60"

    with pytest.raises(SandboxLost):
        within(12, lambda: supervisor.run(shell(line, timeout=5, grace=0.1)), "the command")

    assert living(pids) == [], "scoring could start while the agent still runs"


HARNESS = """
import os, sys, threading
from evalwright.interfaces import Command
from evalwright.processes import Supervisor
supervisor = Supervisor()
process = supervisor.start(Command(argv=["/bin/sh", "-c", sys.argv[1]], env={"PATH": "/usr/bin:/bin"}))
process.wait()
"""


@pytest.mark.parametrize(
    "line",
    [
        "exec sleep 60",
        "trap '' TERM HUP INT; sleep 60; sleep 60",
        "{find}; kill -STOP $sup; exec sleep 60",
    ],
    ids=["plain", "TERM trapped", "stopped supervisor"],
)
def test_killed_harness_takes_every_process_with_it(pids: Path, find: str, line: str) -> None:
    whole = f"echo $$ >> {pids}; setsid sleep 60 & echo $! >> {pids}; {line.format(find=find)}"
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, whole])
    try:
        assert soon(lambda: pids.exists() and len(pids.read_text().split()) == 2, 10)
    finally:
        harness.kill()
        harness.wait(5)

    assert soon(lambda: not living(pids), 2)


def test_identity_of_a_process_is_lost_with_it() -> None:
    child = subprocess.Popen(["sleep", "60"])
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    mine = current_process()
    theirs = ProcessIdentity(pid=child.pid, start_time=int(stat[19]), boot_id=boot_id(), host=mine.host)
    try:
        assert mine.alive
        assert theirs.alive
        assert not ProcessIdentity(pid=child.pid, start_time=1, boot_id=boot_id(), host=mine.host).alive
        assert not ProcessIdentity(pid=child.pid, start_time=theirs.start_time, boot_id="other", host=mine.host).alive
        assert not ProcessIdentity(pid=child.pid, start_time=theirs.start_time, boot_id=boot_id(), host="other").alive
        assert ProcessIdentity.from_json(theirs.as_json()) == theirs
    finally:
        child.kill()
        assert soon(lambda: state_of(child.pid) == "Z")
        assert not theirs.alive
        child.wait(5)
