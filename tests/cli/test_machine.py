"""``doctor`` on this machine: what earlier runs left, what is short, what is only not installed; and ``jobs prune``."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from evalwright.cli import machine
from evalwright.coordinate import Lease
from evalwright.interfaces import Deadline, Job, Outcome, Problem, Queue
from evalwright.processes import ProcessJournal, current_process
from evalwright.rundir import RunDirectory
from evalwright.testing import installed

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

Record = dict[str, Any]
MINUTES_AGO = 600
LIMITED = """
import resource, sys
from evalwright.cli import main
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
sys.exit(main(sys.argv[2:]))
"""
BUILDING = ".new-4x8k"


def component(here: Call, name: str) -> Record:
    """Return what doctor says of one component."""
    code, document = here("doctor", "--component", name)
    assert code == 0
    found: Record = document["data"]["components"][name]
    return found


def unfinished(project: Project, name: str = "cut") -> RunDirectory:
    """Leave a run of ours without a manifest."""
    finished = project.run_dir("r")
    run = RunDirectory(project.run_dir(name))
    run.path.mkdir()
    run.run_json.write_bytes((finished / "run.json").read_bytes())
    run.ledger.write_bytes((finished / "ledger.jsonl").read_bytes())
    return run


def reserved_by(run: RunDirectory, **changes: Any) -> None:
    owner: Record = current_process().as_json() | changes
    now = "2026-01-01T00:00:00+00:00"
    times: Record = {"started_ts": now, "heartbeat_ts": now, "ttl_seconds": 60}
    run.reservation.write_text(json.dumps({"run_id": run.path.name, **owner, **times}))


def building(project: Project, name: str = BUILDING, age: float = MINUTES_AGO) -> Path:
    """Leave a directory in which a run was being made, or was being replaced."""
    place = project.path / "evals" / "runs" / name
    (place / "suite-snapshot").mkdir(parents=True)
    (place / "suite-snapshot" / "suite.json").write_text("{}")
    then = time.time() - age
    os.utime(place, (then, then))
    return place


def test_project_without_runs_has_nothing_to_complain_about(here: Call) -> None:
    assert component(here, "runs")["state"] == "not_configured"
    assert component(here, "processes")["state"] == "healthy"


def test_finished_runs_are_counted_and_healthy(here: Call, ran: Project) -> None:
    entry = component(here, "runs")

    assert (entry["state"], entry["details"]) == ("healthy", "1 completed")
    assert "recommended_action" not in entry


def test_unfinished_run_is_named_with_the_command_that_finishes_it(here: Call, ran: Project) -> None:
    unfinished(ran)

    entry = component(here, "runs")

    assert entry["state"] == "degraded"
    assert entry["recommended_action"]["command"] == "evalwright run --resume cut"
    assert "stale leases" not in entry["details"]


@pytest.mark.parametrize("owner", [{"start_time": 1}, {"host": "another-host"}], ids=["dead here", "silent elsewhere"])
def test_lease_of_a_dead_owner_is_named(here: Call, ran: Project, owner: Record) -> None:
    reserved_by(unfinished(ran), **owner)

    entry = component(here, "runs")

    assert entry["state"] == "degraded"
    assert "stale leases: cut" in entry["details"]


def test_stale_lease_of_a_finished_run_is_named_and_goes_with_prune(here: Call, ran: Project) -> None:
    run = RunDirectory(ran.run_dir("r"))
    reserved_by(run, start_time=1)

    entry = component(here, "runs")

    assert "stale leases: r" in entry["details"]
    assert entry["recommended_action"]["command"] == "evalwright jobs prune"


def test_lease_of_a_living_owner_is_no_finding(here: Call, ran: Project) -> None:
    run = unfinished(ran)
    lease = Lease.take(run, 60)
    try:
        entry = component(here, "runs")
    finally:
        lease.release()

    assert entry["state"] == "healthy"
    assert "1 running" in entry["details"]


@pytest.mark.parametrize("name", [BUILDING, ".old-4x8k"])
def test_directory_of_a_run_that_was_never_put_in_place_is_named_and_removed_by_prune(
    here: Call, ran: Project, name: str
) -> None:
    place = building(ran, name)

    entry = component(here, "runs")
    assert entry["state"] == "degraded"
    assert f"never begun: {name}" in entry["details"]
    assert entry["recommended_action"]["command"] == "evalwright jobs prune"
    _, dry = here("jobs", "prune")
    assert dry["data"]["candidates"]["orphaned_runs"] == [name]
    assert place.is_dir()
    _, done = here("jobs", "prune", "--yes")

    assert done["data"]["removed"]["runs"] == [name]
    assert not place.exists()
    assert component(here, "runs")["state"] == "healthy"
    assert ran.run_dir("r").is_dir()


def test_directory_that_is_being_filled_right_now_is_no_finding(here: Call, ran: Project) -> None:
    place = building(ran, age=0)

    assert component(here, "runs")["state"] == "healthy"
    assert here("jobs", "prune", "--yes")[1]["data"]["removed"]["runs"] == []
    assert place.is_dir()


def test_directory_whose_lock_is_held_is_never_removed_however_old_it_is(here: Call, ran: Project) -> None:
    place = building(ran)

    with Lease.locked(RunDirectory(place)):
        _, document = here("jobs", "prune", "--yes")

    assert document["data"]["removed"]["runs"] == []
    assert (place / "suite-snapshot" / "suite.json").is_file()


def test_link_that_looks_like_an_abandoned_run_is_never_followed(here: Call, ran: Project, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.mkdir()
    (outside / "file").touch()
    link = ran.path / "evals" / "runs" / BUILDING
    link.symlink_to(outside)
    then = time.time() - MINUTES_AGO
    os.utime(link, (then, then), follow_symlinks=False)
    os.utime(outside, (then, then))

    here("jobs", "prune", "--yes")

    assert (outside / "file").is_file()


def test_reservation_that_a_living_process_holds_is_never_removed(here: Call, ran: Project) -> None:
    run = unfinished(ran)
    lease = Lease.take(run, 60)
    try:
        _, document = here("jobs", "prune", "--yes")
        assert document["data"]["removed"] == {"reservations": [], "runs": [], "experiments": []}
        assert json.loads(run.reservation.read_bytes())["pid"] == os.getpid()
    finally:
        lease.release()


@pytest.fixture
def stray(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that belongs to no run until a journal names it."""
    process = subprocess.Popen(["sleep", "60"], cwd="/", start_new_session=True)
    yield process
    process.kill()
    process.wait()


def test_processes_that_a_dead_run_left_are_counted_and_not_ended(
    here: Call, ran: Project, tmp_path: Path, stray: subprocess.Popen[bytes]
) -> None:
    run = unfinished(ran)
    journal = ProcessJournal(run.journal)
    journal.make()
    journal.note(tmp_path / "trial-of-nobody", [stray.pid])

    entry = component(here, "processes")

    assert entry["state"] == "degraded"
    assert "1 of run cut" in entry["details"]
    assert entry["recommended_action"]["command"] == "evalwright status cut"
    assert stray.poll() is None
    _, document = here("status", "cut")
    assert "W_STRAYS_ENDED" in [warning["code"] for warning in document["warnings"]]
    assert component(here, "processes")["state"] == "healthy"


def test_processes_of_a_live_run_are_no_strays(
    here: Call, ran: Project, tmp_path: Path, stray: subprocess.Popen[bytes]
) -> None:
    run = unfinished(ran)
    journal = ProcessJournal(run.journal)
    journal.make()
    journal.note(tmp_path / "trial-of-nobody", [stray.pid])
    lease = Lease.take(run, 60)
    try:
        assert component(here, "processes")["state"] == "healthy"
    finally:
        lease.release()


def limits_with(project: Project, files: int, *words: str) -> Record:
    """Return what doctor says of the limits in a process that may open so many files."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVALWRIGHT_", "EVALCTL_"))}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(files), "doctor", "--component", "limits", "--json", *words],
        cwd=project.path,
        env=environment | {"EVALWRIGHT_JOBS": "16"},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found: Record = json.loads(done.stdout)["data"]
    return found


def test_too_few_open_files_for_the_width_are_named_with_a_cure_that_is_enough(project: Project) -> None:
    data = limits_with(project, 64)

    entry = data["components"]["limits"]
    assert entry["state"] == "degraded"
    assert entry["details"].startswith("64 open files")
    assert "16 trials at once" in entry["details"]
    command, _, needed = entry["recommended_action"]["command"].rpartition(" ")
    assert command == "ulimit -n"
    assert data["recommended_action"] == entry["recommended_action"]
    assert limits_with(project, int(needed))["components"]["limits"]["state"] == "healthy"


def test_limit_that_is_none_is_enough(here: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_limit(_: int) -> tuple[int, int]:
        return resource.RLIM_INFINITY, resource.RLIM_INFINITY

    monkeypatch.setattr(machine.resource, "getrlimit", no_limit)

    assert component(here, "limits")["state"] == "healthy"


@pytest.mark.parametrize(
    ("mounts", "memory"),
    [
        ("dev / ext4 rw 0 0\ntmpfs {place} tmpfs rw 0 0\n", True),
        ("dev / ext4 rw 0 0\ntmpfs {above} ramfs rw 0 0\n", True),
        ("tmpfs / tmpfs rw 0 0\ndev {place} ext4 rw 0 0\n", False),
        ("dev / ext4 rw 0 0\ntmpfs {place}-beside tmpfs rw 0 0\n", False),
    ],
    ids=["here", "above", "disk on memory", "name only begins alike"],
)
def test_workspaces_say_whether_they_are_a_memory_disk(
    here: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str, memory: bool
) -> None:
    place = tmp_path / "scratch"
    place.mkdir()
    table = mounts.format(place=place.resolve(), above=tmp_path.resolve())
    read_text = Path.read_text

    def fake_mounts(path: Path, *words: Any, **more: Any) -> str:
        return table if str(path) == "/proc/self/mounts" else read_text(path, *words, **more)

    monkeypatch.setattr(Path, "read_text", fake_mounts)
    monkeypatch.setenv("EVALWRIGHT_WORKSPACES", str(place))

    entry = component(here, "workspaces")

    assert entry["state"] == "healthy"
    assert ("(memory disk)" in entry["details"]) is memory


def test_workspaces_that_a_dead_process_left_are_named_with_their_mounts_and_go_with_prune(
    here: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_WORKSPACES", str(tmp_path))
    code = "from evalwright.workspace import owned_name; print(owned_name())"
    owner = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    left = tmp_path / f"evalwright-{os.getuid()}" / owner
    (left / "trial" / "w").mkdir(parents=True)
    mounts = 0
    if os.geteuid() == 0:
        subprocess.run(["mount", "-t", "tmpfs", "none", str(left / "trial" / "w")], check=True)
        mounts = 1
    try:
        found = component(here, "workspaces")
        here("jobs", "prune", "--yes")
        gone = not left.exists()
    finally:
        if left.exists() and mounts:
            subprocess.run(["umount", str(left / "trial" / "w")], check=True)
    assert (found["state"], found["recommended_action"]["command"]) == ("degraded", "evalwright jobs prune --yes")
    assert f"{left}{' (1 mounted)' if mounts else ''}" in found["details"]
    assert gone
    assert component(here, "workspaces")["state"] == "healthy"


def test_workspaces_that_are_no_directory_are_unhealthy(here: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALWRIGHT_WORKSPACES", str(tmp_path / "nowhere"))

    assert component(here, "workspaces")["state"] == "unhealthy"


@pytest.mark.parametrize(("free", "state"), [(1 << 40, "healthy"), (1 << 20, "degraded"), (0, "unhealthy")])
def test_room_for_runs_decides_about_the_disk(here: Call, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    class Usage:
        def __init__(self, _: Path) -> None:
            self.free = free

    monkeypatch.setattr(machine.shutil, "disk_usage", Usage)

    assert component(here, "disk")["state"] == state


class Optional(Queue[None]):
    """A queue whose program may be missing or broken."""

    api = "queue/1.0"
    problems: Sequence[Problem] = ()

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        return self.problems

    def submit(self, jobs: Sequence[Job]) -> None:
        raise NotImplementedError

    def poll(self, timeout: float) -> Sequence[Outcome]:
        return ()

    def cancel(self, keys: Any) -> None:
        raise NotImplementedError

    def close(self, deadline: Deadline) -> None:
        return


MISSING = Problem(message="acmectl is not installed", hint="install it", details={"code": "E_ACME_UNAVAILABLE"})
BROKEN = Problem(message="acmectl is too old", hint="update it")


@pytest.mark.parametrize(
    ("problems", "plugin", "kind"),
    [
        ([], "healthy", "healthy"),
        ([MISSING], "not_configured", "healthy"),
        ([BROKEN], "degraded", "degraded"),
        ([MISSING, BROKEN], "degraded", "degraded"),
    ],
    ids=["ready", "not installed", "broken", "both"],
)
def test_program_that_is_not_installed_is_no_defect_and_a_broken_one_is(
    here: Call, monkeypatch: pytest.MonkeyPatch, problems: list[Problem], plugin: str, kind: str
) -> None:
    monkeypatch.setattr(Optional, "problems", problems)
    with installed("queue", "acme", Optional, distribution="test-acme"):
        entry = component(here, "queues")

    assert entry["plugins"]["acme"]["state"] == plugin
    assert entry["state"] == kind
    for problem in problems:
        assert problem.message in entry["plugins"]["acme"]["details"]


def test_shipped_plugins_without_their_programs_are_not_configured(
    here: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalwright_plugins.spool._program", lambda: None)

    entry = component(here, "queues")

    assert entry["plugins"]["spoolctl"]["state"] == "not_configured"
    assert entry["plugins"]["local"]["state"] == "healthy"
    assert entry["state"] == "healthy"
