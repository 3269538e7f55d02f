"""The sandbox ``vm`` on real machines: isolation, files, limits, tunnels, and every way in which a guest can be lost."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from tests.plugins.conftest import command_line, descendants
from tests.plugins.machines import alive, as_root, config, sh

from evalwright.errors import SandboxError, SandboxLost, TrialError
from evalwright.interfaces import BoundedOutput, Command, Deadline, Mount, SandboxRequest
from evalwright.model import Completed
from evalwright.testing import FakeHost
from evalwright.testing._waiting import in_threads, soon
from evalwright_plugins.sandboxes.vm.place import reap_places
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox
from evalwright_plugins.sandboxes.vm.session import VmSession
from evalwright_plugins.sandboxes.vm.snapshot import Memory, snapshots_of

if TYPE_CHECKING:
    from tests.conftest import Project

    from evalwright_plugins.sandboxes.vm.image import Image

MIB = 1 << 20
CRASH = """
import json, os, sys, threading
from pathlib import Path
from tests.plugins.machines import config
from evalwright.interfaces import Deadline, SandboxRequest
from evalwright.testing import FakeHost
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox
place = Path(sys.argv[1])
for name in ("w", "x"):
    (place / name).mkdir()
with FakeHost() as host:
    sandbox = VmSandbox(config(), host)
    sandbox.start(Deadline.after(300.0))
    session = sandbox.open(SandboxRequest(owner="crashed/trial/1", workspace=place / "w", exchange=place / "x"))
    print(json.dumps([session.machine.pid, str(session.machine.place)]), flush=True)
    threading.Event().wait()
"""
GREET = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection, connection.makefile("rwb", 0) as file:
    for word in ("one", "two", "three"):
        file.write(word.encode() + b"\\n")
        print(file.readline().decode().strip(), flush=True)
    connection.shutdown(socket.SHUT_WR)
    print(file.read().decode())
"""
BULK = """
import hashlib, socket, threading
payload = bytes(range(256)) * 4096
with socket.create_connection(("127.0.0.1", 8080)) as connection:
    def send():
        connection.sendall(payload)
        connection.shutdown(socket.SHUT_WR)
    sender = threading.Thread(target=send)
    sender.start()
    got = b"".join(iter(lambda: connection.recv(65536), b""))
    sender.join()
print(got == payload[::-1])
"""


class Guests:
    """Sessions of sandboxes that are made in one call; everything is ended after the test."""

    def __init__(self, place: Path, host: FakeHost, cleanup: contextlib.ExitStack) -> None:
        self.place, self.host, self.cleanup = place, host, cleanup
        self._sandboxes: dict[str, VmSandbox] = {}
        self._lock = threading.Lock()
        self._count = 0

    def sandbox(self, **options: Any) -> VmSandbox:
        """Return a started sandbox."""
        key = json.dumps(options, sort_keys=True)
        with self._lock:
            if key not in self._sandboxes:
                sandbox = self._sandboxes[key] = VmSandbox(config(**options), self.host)
                self.cleanup.callback(lambda: sandbox.close(Deadline.after(30.0)))
                sandbox.start(Deadline.after(300.0))
            return self._sandboxes[key]

    def request(self, **fields: Any) -> SandboxRequest:
        """Return a request with new directories."""
        with self._lock:
            self._count += 1
            root = self.place / str(self._count)
        for name in ("w", "x"):
            (root / name).mkdir(parents=True)
        return SandboxRequest(owner=f"run/{root.name}/1", workspace=root / "w", exchange=root / "x", **fields)

    def session(self, request: SandboxRequest | None = None, **options: Any) -> VmSession:
        """Return a new session."""
        session = self.sandbox(**options).open(request or self.request())
        assert isinstance(session, VmSession)
        return session


@pytest.fixture
def guests(vm_image: Image, tmp_path: Path) -> Iterator[Guests]:
    """Return the maker of sessions."""
    with FakeHost() as host, contextlib.ExitStack() as cleanup:
        yield Guests(tmp_path, host, cleanup)


def told(event: threading.Event) -> Callable[[str, bytes], None]:
    """Return what sets an event once a command has said something."""

    def take(_name: str, _data: bytes) -> None:
        event.set()

    return take


def finish(session: VmSession) -> None:
    session.kill(Deadline.after(30.0))
    session.collect(Deadline.after(60.0))
    session.destroy(Deadline.after(30.0))


def text(session: VmSession, script: str, **fields: Any) -> str:
    return session.execute(sh(script, **fields)).stdout.text.strip()


def test_commands_run_as_a_user_without_rights_over_the_guest(guests: Guests) -> None:
    session = guests.session()
    assert text(session, "id -u; id -G; pwd; hostname") == "1000\n1000\n/workspace\nsandbox"
    for forbidden in (
        "echo x > /etc/passwd",
        "cat /dev/transfer",
        "cat /dev/vport*",
        "kill -9 1",
        "mount -t tmpfs tmpfs /mnt",
        "echo 0 > /proc/1/oom_score_adj",
        "echo 1 > /sys/fs/cgroup/system/cgroup.kill",
        "date -s 2000-01-01; [ $(date +%Y) = 2000 ]",
    ):
        assert session.execute(sh(forbidden)).exit_code != 0, forbidden
    assert text(session, "ls /sys/class/net") == "lo"
    assert text(session, 'echo made > "$HOME/f" && cat "$HOME/f"', env={"HOME": "/dev/shm/of-the-host/h"}) == "made"


def test_machine_itself_has_no_rights_on_the_host(guests: Guests) -> None:
    status = Path(f"/proc/{guests.session().machine.pid}/status").read_text()
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert facts["Seccomp"] == "2"
    if os.geteuid() == 0:
        assert set(facts["Uid"].split()) == {"65534"}
        assert facts["NoNewPrivs"] == "1"
        assert (int(facts["CapEff"], 16), int(facts["CapBnd"], 16)) == (0, 0)


def test_memory_of_the_snapshot_can_be_changed_by_nobody(guests: Guests, vm_image: Image) -> None:
    guests.sandbox()
    snapshot = snapshots_of(vm_image)[0]
    assert stat.S_IMODE(snapshot.memory.stat().st_mode) == 0o400
    memory = Memory(snapshot)
    with open(memory.path, "r+b", buffering=0) as file:
        assert fcntl.fcntl(file, fcntl.F_GET_SEALS) & fcntl.F_SEAL_WRITE
        with pytest.raises(PermissionError):
            file.write(b"x")
    memory.close()


def test_guests_of_one_snapshot_share_neither_files_nor_randomness(guests: Guests) -> None:
    def trial(number: int) -> tuple[str, str]:
        session = guests.session()
        said = text(session, f"echo {number} > own; sleep 1; cat own; head -c 16 /dev/urandom | md5sum")
        finish(session)
        return said.split()[0], said.split()[1]

    found = in_threads(trial, threads=4, seconds=120.0)
    assert [own for own, _ in found] == ["0", "1", "2", "3"]
    assert len({drawn for _, drawn in found}) == 4


@pytest.mark.acceptance
def test_guest_that_boots_cold_on_the_fallback_machine_works_and_its_disk_bounds_what_comes_back(guests: Guests) -> None:
    session = guests.session(machine="q35", snapshot=False, disk_bytes=16 * MIB)
    session.put(b"in", PurePosixPath("/workspace/f"))
    assert text(session, "cat f; echo out > g") == "in"
    assert session.execute(sh("dd if=/dev/zero of=big bs=1M count=20")).exit_code == 0
    session.kill(Deadline.after(30.0))
    with pytest.raises(TrialError, match="cannot be carried"):
        session.collect(Deadline.after(60.0))
    assert (session.machine.place / "disk").stat().st_size == 16 * MIB
    session.destroy(Deadline.after(30.0))
    assert list(session.request.workspace.iterdir()) == []


def test_files_of_every_kind_make_the_round_trip_and_changes_are_seen_by_content(guests: Guests) -> None:
    request = guests.request()
    odd = os.path.join(os.fsencode(request.workspace), b"n\xff\n -")
    with open(odd, "wb") as file:
        file.write(bytes(range(256)))
    (request.workspace / ("x" * 200)).write_text("long")
    for name in ("spoofed", "same"):
        (request.workspace / name).write_text("12345")
        os.utime(request.workspace / name, (1_000_000_000, 1_000_000_000))
    (request.workspace / "run").write_text("#!/bin/sh\necho ran")
    (request.workspace / "run").chmod(0o711)
    (request.workspace / "link").symlink_to("../../nowhere")
    (request.workspace / "empty").mkdir(mode=0o750)
    before = (request.workspace / "same").stat()
    session = guests.session(request)
    script = "./run; stat -c %a run empty; printf 54321 > spoofed; touch -d @1000000000 spoofed; mkfifo fifo; ln same hard"
    assert text(session, script) == "ran\n711\n750"
    session.execute(
        sh("mkdir -m 0 closed; ln -s / root; mkdir d; echo x > d/f; chmod 0 d/f; chmod 500 d; echo answer > ../exchange/a")
    )
    finish(session)
    workspace = request.workspace
    assert Path(os.fsdecode(odd)).read_bytes() == bytes(range(256))
    assert ((workspace / ("x" * 200)).read_text(), (workspace / "spoofed").read_text()) == ("long", "54321")
    assert (workspace / "same").stat()[:6] == before[:6]
    assert (workspace / "hard").stat().st_nlink == 1
    assert os.readlink(workspace / "link") == "../../nowhere"
    assert os.readlink(workspace / "root") == "/"
    assert stat.S_ISFIFO((workspace / "fifo").lstat().st_mode)
    modes = {name: stat.S_IMODE((workspace / name).lstat().st_mode) for name in ("run", "empty", "closed", "d", "d/f")}
    assert modes == {"run": 0o711, "empty": 0o750, "closed": 0, "d": 0o500, "d/f": 0}
    assert session.get(PurePosixPath("/exchange/a"), max_bytes=10) == b"answer\n"
    with pytest.raises(NotADirectoryError):
        session.get(PurePosixPath("/workspace/root/etc/passwd"), max_bytes=10)


def test_twenty_megabytes_go_in_and_come_back(guests: Guests) -> None:
    request = guests.request()
    content = os.urandom(MIB)
    for number in range(20):
        (request.workspace / str(number)).write_bytes(content)
    session = guests.session(request)
    session.execute(sh("rm 3; cat 0 1 > both"))
    finish(session)
    assert (request.workspace / "both").read_bytes() == content * 2
    assert sorted(os.listdir(request.workspace)) == sorted([*(str(n) for n in range(20) if n != 3), "both"])


def test_mounts_and_a_read_only_workspace_cannot_be_written(guests: Guests) -> None:
    tools = guests.place / "tools"
    tools.mkdir(mode=0o700)
    (tools / "tool").write_text("#!/bin/sh\necho tool")
    (tools / "tool").chmod(0o700)
    request = guests.request(mounts=[Mount(source=tools, target=PurePosixPath("/agent"))], readonly=True)
    (request.workspace / "f").write_text("f")
    session = guests.session(request)
    assert text(session, "/agent/tool; cat f") == "tool\nf"
    for forbidden in ("echo x > f", "echo x > g", "echo x > /agent/tool", "echo x > /agent/new"):
        assert session.execute(sh(forbidden)).exit_code != 0, forbidden
    assert text(session, "echo y > ../exchange/y && echo written") == "written"


@pytest.mark.parametrize("target", ["/workspace/a", "/", "/exchange", "relative"])
def test_mount_where_the_agent_writes_is_refused(guests: Guests, target: str) -> None:
    with pytest.raises(SandboxError, match="mounted"):
        guests.session(guests.request(mounts=[Mount(source=guests.place, target=PurePosixPath(target))]))


def test_network_of_the_host_is_refused(guests: Guests) -> None:
    with pytest.raises(SandboxError, match='network "host"'):
        guests.session(guests.request(network="host"))


def test_fifty_megabytes_are_bounded_and_a_reader_that_is_stuck_stalls_nobody(guests: Guests) -> None:
    session = guests.session()
    stuck, free = threading.Event(), threading.Event()
    results: list[Completed] = []

    def wait(_name: str, _data: bytes) -> None:
        stuck.set()
        free.wait(60.0)

    def flood() -> None:
        words = ["dd", "if=/dev/zero", "bs=1M", "count=50"]
        command = Command(argv=words, env={"PATH": "/usr/bin"}, capture=lambda: BoundedOutput(1000), on_output=wait)
        results.append(session.execute(command))

    thread = threading.Thread(target=flood, daemon=True)
    thread.start()
    assert stuck.wait(60.0)
    assert text(session, "echo others go on") == "others go on"
    free.set()
    thread.join(120.0)
    assert results[0].exit_code == 0
    assert (results[0].stdout.total_bytes, len(results[0].stdout.head), results[0].stdout.truncated) == (50 * MIB, 1000, True)


@pytest.mark.parametrize(
    ("limits", "words", "limit"),
    [
        ({"memory_bytes": 48 * MIB}, ["python3", "-c", "x = 'a' * 200_000_000"], "oom_killed"),
        ({"processes": 10}, ["sh", "-c", "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 9 & done; wait"], "pids_limit"),
        ({"file_size_bytes": 4096}, ["dd", "if=/dev/zero", "of=big", "bs=1k", "count=9"], "file_size_limit"),
        ({"file_size_bytes": 4096}, ["sh", "-c", "dd if=/dev/zero of=big bs=1k count=9; exit $?"], "file_size_limit"),
        ({"file_size_bytes": 4096}, ["sh", "-c", "exit 152"], None),
        ({"cpu_seconds": 60}, ["sh", "-c", "exit 152"], None),
        ({"cpu_seconds": 60}, ["sh", "-c", "exit 153"], None),
        ({"cpu_seconds": 1}, ["sh", "-c", "for n in 1 2 3; do (while :; do :; done) & done; wait"], "cpu_limit"),
    ],
    ids=["memory", "processes", "file", "file behind a shell", "another number", "no time to compute", "no such limit", "cpu"],
)
def test_limit_that_ends_a_command_is_named_and_no_other(
    guests: Guests, limits: dict[str, int], words: list[str], limit: str | None
) -> None:
    session = guests.session()
    done = session.execute(Command(argv=words, env={"PATH": "/usr/bin"}, limits=limits, timeout=90.0))
    assert (done.limit, done.timed_out) == (limit, False)
    assert text(session, "echo goes on") == "goes on"


@pytest.mark.acceptance
def test_fork_storm_and_full_memory_of_a_command_do_not_take_the_guest(guests: Guests) -> None:
    session = guests.session()
    storm = session.execute(sh("b() { b | b & }; b; sleep 1; exit 3", timeout=90.0))
    assert storm.exit_code is not None or storm.signal
    full = session.execute(sh("exec fallocate -l 460000000 big"))
    assert full.exit_code != 0
    assert text(session, "rm -f big; echo goes on") == "goes on"


def served(listener: socket.socket, serve: Callable[[socket.socket], None]) -> threading.Thread:
    def accept() -> None:
        connection, _ = listener.accept()
        with connection:
            serve(connection)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    return thread


def test_tunnel_streams_both_ways_and_closes_each_way_on_its_own(guests: Guests) -> None:
    def serve(connection: socket.socket) -> None:
        with connection.makefile("rwb", 0) as file:
            for line in file:
                file.write(line.upper())
            file.write(b"all of it")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        session = guests.session(guests.request(endpoints={"api": f"127.0.0.1:{port}"}))
        thread = served(listener, serve)
        done = session.execute(Command(argv=["python3", "-c", GREET, str(port)], env={"PATH": "/usr/bin"}, timeout=90.0))
        thread.join(30.0)
    assert done.stdout.text == "ONE\nTWO\nTHREE\nall of it\n", done.stderr.text


def test_tunnel_to_a_socket_carries_megabytes_while_other_connections_are_refused(guests: Guests) -> None:
    def serve(connection: socket.socket) -> None:
        got = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        connection.sendall(got[::-1])

    path = guests.place / "s"
    with socket.socket(socket.AF_UNIX) as listener, socket.create_server(("127.0.0.1", 0)) as dead:
        listener.bind(str(path))
        listener.listen()
        port = dead.getsockname()[1]
        dead.close()
        session = guests.session(guests.request(endpoints={"model": f"unix:{path}", "dead": f"127.0.0.1:{port}"}))
        thread = served(listener, serve)
        done = session.execute(Command(argv=["python3", "-c", BULK], env={"PATH": "/usr/bin"}, timeout=90.0))
        thread.join(30.0)
        closed = text(session, f"echo hello | nc 127.0.0.1 {port}; echo closed")
        other = session.execute(sh("nc 127.0.0.1 9"))
    assert done.stdout.text == "True\n", done.stderr.text
    assert closed == "closed"
    assert other.exit_code != 0


def lost(session: VmSession, cause: Callable[[], object]) -> str:
    """Return what is said of a guest that goes while a command runs in it."""
    said: list[str] = []
    running = threading.Event()

    def run() -> None:
        try:
            session.execute(sh("echo started; sleep 300", timeout=200.0, on_output=told(running)))
        except SandboxLost as error:
            said.append(error.message)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert running.wait(60.0)
    cause()
    thread.join(90.0)
    assert not thread.is_alive()
    assert soon(lambda: not alive(session.machine.pid or 0), 10.0), "QEMU still runs"
    assert not session.alive()
    with pytest.raises(SandboxLost):
        session.collect(Deadline.after(10.0))
    session.destroy(Deadline.after(10.0))
    assert not session.machine.place.exists()
    return said[0]


def test_guest_that_hangs_is_given_up_and_its_machine_killed(guests: Guests) -> None:
    session = guests.session(silence_seconds=8)

    def hang() -> None:
        deadline = Deadline.after(30.0)
        with session.machine.monitor(deadline) as monitor:
            monitor.execute("stop", deadline=deadline)

    assert "has not answered" in lost(session, hang)


def test_guest_that_panics_is_lost_and_says_why(guests: Guests) -> None:
    session = guests.session()
    assert "Kernel panic" in lost(session, lambda: session.machine.channel.send(99, 0))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_machine_killed_from_outside_is_lost(guests: Guests, number: int) -> None:
    session = guests.session()
    assert "ended" in lost(session, lambda: os.kill(session.machine.pid or 0, number))


@pytest.mark.parametrize("means", ["cgroup", "process"])
def test_crash_of_the_harness_leaves_no_machine_and_its_directory_is_reaped(
    vm_image: Image, tmp_path: Path, means: str
) -> None:
    env = dict(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2]), "EVALWRIGHT_SUPERVISION": means}
    harness = subprocess.Popen([sys.executable, "-c", CRASH, str(tmp_path)], stdout=subprocess.PIPE, env=env, text=True)
    with harness:
        assert harness.stdout
        pid, place = json.loads(harness.stdout.readline())
        assert alive(pid)
        harness.send_signal(signal.SIGKILL)
    assert soon(lambda: not alive(pid), 15.0), "QEMU outlived its harness"
    assert Path(place).exists()
    assert "crashed/trial/1" in reap_places()
    assert not Path(place).exists()


def test_killing_a_session_ends_its_commands_and_keeps_what_they_wrote(guests: Guests) -> None:
    session = guests.session()
    wrote = threading.Event()
    results: list[Completed] = []

    def run() -> None:
        results.append(session.execute(sh("echo x > f; echo y; sleep 300", timeout=None, on_output=told(wrote))))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert wrote.wait(60.0)
    finish(session)
    thread.join(30.0)
    assert results[0].canceled
    assert (session.request.workspace / "f").read_text() == "x\n"
    with pytest.raises(SandboxError):
        session.execute(sh("true"))


def test_processes_of_the_guest_are_gone_after_each_command(guests: Guests) -> None:
    session = guests.session()
    done = session.execute(sh("setsid sleep 301 & (setsid sh -c 'trap \"\" TERM; sleep 301' &) ; exit 0"))
    assert done.leaked_processes >= 2
    assert as_root(session.machine, "grep -ls 'sleep.30[1]' /proc/[0-9]*/cmdline || echo none").strip() == "none"


def test_suite_with_hidden_tests_passes_in_virtual_machines(project: Project, vm_image: Image) -> None:
    agent = "import pathlib; pathlib.Path('answer.py').write_text('def answer():\\n    return 42\\n'); print('done')\n"
    driver = (
        "import os, sys\nsys.path.insert(0, '.')\nfrom answer import answer\n"
        "word = 'ok' if answer() == 42 else 'not ok'\n"
        "open(os.environ['EVALWRIGHT_REPORT_FILE'], 'w').write(f'1..1\\n{word} 1 - answers\\n')\n"
    )
    tests = {"argv": ["python3", "driver.py"], "format": "tap", "pass_to_pass": ["answers"]}
    project.suite(
        runner={
            "argv": ["python3", "$EVALWRIGHT_AGENT/agent.py"],
            "files": ["agent.py"],
            "env_allowlist": [],
            "timeout_seconds": 90,
        },
        cases=[{"id": name, "hidden": "hidden", "expect": {"tests": tests}} for name in ("a", "b")],
        scorers=[{"use": "tests"}],
        files={"agent.py": agent, "hidden/driver.py": driver},
        sandbox={"use": "vm", "root": "busybox"},
        requires=["gold-isolated", "network-off"],
    )
    answer = project.call("run", "demo", "--run-id", "r", "--jobs", "2", timeout=300)
    assert answer.exit_code == 0, answer.stderr
    report = project.call("report", "r").data
    assert [case["status"] for case in report["cases"]] == ["pass", "pass"], report
    assert project.record("r", "a", "runner.json")["isolation"] == "vm"
    assert "W_UNSANDBOXED_RUNNER" not in answer.warning_codes
    assert project.artifact("r", "a", "output.txt").read_text() == "done\n"


def machines_below(pid: int) -> list[int]:
    """List the machines that a process runs; a program that is only asked for its version is none."""
    return [each for each in descendants(pid) if command_line(each)[:2] == [b"qemu-system-x86_64", b"-M"]]


def test_trial_whose_machine_is_killed_is_tried_again(guests: Guests, project: Project) -> None:
    guests.sandbox()
    project.suite(
        runner={"shell": True, "command": "sleep 2; echo done", "timeout_seconds": 90},
        cases=[{"id": "a", "expect": {"exact": "done\n"}}],
        scorers=[{"use": "exact"}],
        sandbox={"use": "vm", "root": "busybox"},
        retry={"infrastructure": 2, "backoff_seconds": 0.01},
    )
    with project.start("run", "demo", "--run-id", "r") as run:
        assert soon(lambda: machines_below(run.pid), 60.0)
        os.kill(machines_below(run.pid)[0], signal.SIGKILL)
        run.communicate(timeout=120)
    assert run.returncode == 0
    record = project.record("r", "a", "runner.json")
    kinds = [row["error"] and row["error"]["kind"] for row in record["attempts"]]
    assert kinds == ["sandbox_lost", None]
    assert project.record("r", "a", "score.json")["status"] == "pass"


@pytest.mark.acceptance
def test_machine_killed_while_its_snapshot_is_taken_is_lost_and_the_trial_tried_again(
    project: Project, vm_image: Image, tmp_path: Path
) -> None:
    former = {snapshot.directory for snapshot in snapshots_of(vm_image)}
    project.suite(
        runner={"argv": ["true"], "timeout_seconds": 90},
        cases=[{"id": "a", "expect": {"exit_code": 0}}],
        scorers=[{"use": "exit-code"}],
        sandbox={"use": "vm", "root": "busybox", "memory_bytes": 200 * MIB},
        retry={"infrastructure": 2, "backoff_seconds": 0.01},
    )
    try:
        with project.start("run", "demo", "--run-id", "r") as run:
            assert soon(lambda: machines_below(run.pid), 60.0)
            os.kill(machines_below(run.pid)[0], signal.SIGKILL)
            run.communicate(timeout=200)
    finally:
        for snapshot in snapshots_of(vm_image):
            if snapshot.directory not in former:
                shutil.rmtree(snapshot.directory)
    record = project.record("r", "a", "runner.json")
    assert [row["error"] and row["error"]["kind"] for row in record["attempts"]] == ["sandbox_lost", None]
    assert project.record("r", "a", "score.json")["status"] == "pass"


def test_a_scorer_s_own_command_reads_the_suite_in_a_guest(project: Project, vm_image: Image) -> None:
    verdict = json.dumps({"ok": True, "score": 1.0, "findings": []})
    grade = f"grep -q hidden-answer $EVALWRIGHT_SUITE/cases.jsonl && ! touch /suite/x && echo '{verdict}'"
    project.suite(
        runner={"shell": True, "command": "! ls /suite", "timeout_seconds": 90},
        cases=[{"id": "a", "expect": {"exit_code": 0}, "meta": {"k": "hidden-answer"}}],
        scorers=[{"use": "exit-code"}, {"use": "command", "id": "grade", "shell": True, "command": grade}],
        sandbox={"use": "vm", "root": "busybox"},
    )
    answer = project.call("run", "demo", "--run-id", "r", timeout=200)
    assert answer.data["run"]["status_counts"]["pass"] == 1, project.record("r", "a", "score.json")


def test_image_is_built_once_and_status_shows_it_with_its_snapshot(guests: Guests, project: Project, vm_image: Image) -> None:
    guests.sandbox()
    again = project.call("vm", "build", "--root", "busybox", timeout=300).data
    assert again["key"] == vm_image.key
    shown = next(image for image in project.call("vm", "status").data["images"] if image["root"] == "busybox")
    assert shown == again
    assert any(each["machine"] == "microvm" and each["size_bytes"] > MIB for each in shown["snapshots"])
