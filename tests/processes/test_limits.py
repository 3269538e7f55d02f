"""Limits bind, by a cgroup where one can be made, and the record says which of them a command ran into."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import Supervisor, hierarchy
from evalwright.testing import soon

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
HOG = [sys.executable, "-I", "-S", "-c", "x = bytearray(300 << 20)"]
TWO_HALVES = """
import os, signal
reader, writer = os.pipe()
child = os.fork()
x = bytearray(70 << 20) if child == 0 else b""
if child == 0:
    os.write(writer, b"x")
    signal.pause()
os.read(reader, 1)
x = bytearray(70 << 20)
os._exit(1)
"""
MANY = ["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2 & done; wait"]


@pytest.fixture(params=["cgroup", "process"])
def supervisor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    monkeypatch.setenv("EVALWRIGHT_SUPERVISION", request.param)
    with Supervisor() as made:
        yield made


def run(supervisor: Supervisor, argv: list[str], limits: Mapping[str, int], *, wrapped: bool = False) -> Completed:
    return supervisor.start(Command(argv=argv, env=ENV, timeout=20, limits=limits), wrapped=wrapped).wait()


def bound_by_cgroup(done: Completed) -> bool:
    if done.limit_source == "rlimit" and os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
        pytest.fail("no cgroup with the memory and pids controllers can be made here")
    return str(done.limit_source).startswith("cgroup")


def test_too_much_memory_ends_the_command_and_is_named(supervisor: Supervisor) -> None:
    done = run(supervisor, HOG, {"memory_bytes": 100 << 20})
    assert done.exit_code != 0
    if bound_by_cgroup(done):
        assert done.limit == "oom_killed"


def test_memory_counts_for_all_processes_of_a_command_together(supervisor: Supervisor) -> None:
    done = run(supervisor, [sys.executable, "-I", "-S", "-c", TWO_HALVES], {"memory_bytes": 100 << 20})
    if bound_by_cgroup(done):
        assert done.exit_code != 0
        assert done.limit == "oom_killed"


def test_too_many_processes_fail_to_start_and_are_named(supervisor: Supervisor) -> None:
    done = run(supervisor, MANY, {"processes": 5})
    if bound_by_cgroup(done):
        assert (done.exit_code, done.limit) == (2, "pids_limit")


def test_a_command_that_ends_well_ran_into_no_limit(supervisor: Supervisor) -> None:
    done = run(
        supervisor, ["/bin/sh", "-c", f"{' '.join(MANY[2:])} 2>/dev/null; true"], {"processes": 64, "memory_bytes": 64 << 20}
    )
    assert (done.exit_code, done.limit) == (0, None)


def test_a_limit_that_a_shell_reports_for_its_last_program_is_named(supervisor: Supervisor, tmp_path: Path) -> None:
    script = f"cat /dev/zero > {tmp_path}/big; exit $?"
    done = run(supervisor, ["/bin/sh", "-c", script], {"file_size_bytes": 4096})
    assert (done.exit_code, done.limit) == (153, "file_size_limit")
    assert run(supervisor, ["/bin/sh", "-c", "exit 153"], {}).limit is None


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_program_that_exits_with_the_number_of_a_cpu_limit_is_not_taken_for_one_that_computed(
    supervisor: Supervisor, wrapped: bool
) -> None:
    done = run(supervisor, ["/bin/sh", "-c", "exit 152"], {"cpu_seconds": 60}, wrapped=wrapped)
    assert (done.signal, done.limit) == (24 if wrapped else None, None)


def test_without_limits_nothing_is_said_to_bind(supervisor: Supervisor) -> None:
    assert run(supervisor, ["/bin/true"], {}).limit_source is None


def test_nothing_is_left_of_the_cgroups(supervisor: Supervisor) -> None:
    run(supervisor, ["/bin/true"], {"memory_bytes": 1 << 30, "processes": 10})
    supervisor.close()
    assert not own_directories(os.getpid())


def test_cgroups_of_a_killed_process_are_removed_by_the_next(supervisor: Supervisor) -> None:
    program = (
        "import json, os, sys\nfrom evalwright.interfaces import Command\nfrom evalwright.processes import Supervisor\n"
        "s = Supervisor()\ns.start(Command(argv=['/bin/sleep', '60'], limits={'memory_bytes': 1 << 30}))\n"
        "print(json.dumps(os.getpid()), flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as dead:
        assert dead.stdout
        pid = json.loads(dead.stdout.readline())
        dead.kill()
    left = own_directories(pid)
    assert soon(lambda: all(not (place / "cgroup.procs").read_text() for place in members(left)))
    run(supervisor, ["/bin/true"], {"memory_bytes": 1 << 30})
    assert not own_directories(pid)


def members(places: list[Path]) -> list[Path]:
    return [Path(directory) for place in places for directory, _, _ in os.walk(place)]


def own_directories(pid: int) -> list[Path]:
    own = [hierarchy.own_directory(controller) for controller in ("", "memory", "pids")]
    return [place for directory in own if directory for place in directory.glob(f"evalwright-{pid}-*")]


def test_a_wrapped_command_reports_a_signal_as_its_wrapper_has_it(supervisor: Supervisor) -> None:
    done = run(supervisor, ["/bin/sh", "-c", "exit 137"], {}, wrapped=True)
    assert (done.exit_code, done.signal) == (-9, 9)
    assert run(supervisor, ["/bin/sh", "-c", "exit 255"], {}, wrapped=True).exit_code == 255


def test_a_command_that_ignores_the_signal_of_its_cpu_limit_is_named_too(supervisor: Supervisor) -> None:
    deaf = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass\n"
    done = run(supervisor, [sys.executable, "-I", "-S", "-c", deaf], {"cpu_seconds": 1})
    assert (done.exit_code, done.limit) == (-9, "cpu_limit")
