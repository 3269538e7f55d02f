"""Queues, their workers and what is around them, where something is full, missing, stopped or changed by an agent."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.plugins.conftest import holding, identities

from evalwright.cli import main
from evalwright.coordinate import Lease
from evalwright.errors import DiskFull
from evalwright.interfaces import Command, Deadline, SandboxRequest, Session
from evalwright.ledger import Ledger
from evalwright.model import TrialSpec
from evalwright.processes import ProcessJournal
from evalwright.processes.cgroups import Cgroups
from evalwright.rundir import RunDirectory
from evalwright.testing import FakeHost, SmallProject, soon
from evalwright_plugins.sandboxes.spoolctl import SpoolctlSandbox

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
Call = Callable[..., tuple[int, dict[str, Any]]]
PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
SPOOLED = ("--sandbox", "spoolctl")
MINUTES_AGO = 600


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return what calls the command line in this process and gives exit status and envelope."""
    monkeypatch.chdir(project.path)

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main([*words, "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


@pytest.fixture
def simple(project: Project) -> Project:
    """Return a project with a suite of one case that passes."""
    project.suite(runner={"argv": ["true"]}, cases=[{"id": "a", "expect": {"exact": ""}}])
    return project


def cut_off(project: Project, run_id: str = "r") -> RunDirectory:
    """Make a run of the suite, and take from it what the end of a run writes."""
    assert project.call("run", "demo", "--run-id", run_id).exit_code == 0
    run = RunDirectory(project.run_dir(run_id))
    run.manifest.unlink()
    return run


@pytest.mark.parametrize("words", [("run", "demo"), ("plan", "demo"), ("run", "--resume", "r")], ids=["run", "plan", "resume"])
def test_slots_of_the_local_queue_are_a_usage_error(simple: Project, words: tuple[str, ...]) -> None:
    cut_off(simple)

    answer = simple.call(*words, "--slots", "2", "--json")

    assert answer.exit_code == 1
    (error,) = answer.envelope["errors"]
    assert error["key"] == "slots"
    assert "--jobs" in error["hint"]
    assert simple.call("run", "--resume", "r", "--jobs", "2").exit_code == 0


def torn(run: RunDirectory) -> Path:
    """Cut the ledger's last line, and make the file to which it would be moved one that takes nothing."""
    with run.ledger.open("ab") as file:
        file.write(b'{"v": 1, "se')
    aside = run.ledger.with_name(run.ledger.name + ".torn")
    aside.symlink_to("/dev/full")
    return aside


def test_torn_tail_that_cannot_be_set_aside_leaves_neither_descriptor_nor_lock(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    with Ledger(run.ledger, run="r") as ledger:
        ledger.append("RUN_STARTED", {})
        ledger.commit()
    aside = torn(run)
    before = os.listdir("/proc/self/fd")

    with pytest.raises(OSError, match="No space left") as caught:
        Ledger(run.ledger, run="r")

    assert caught.value.errno == errno.ENOSPC
    assert len(os.listdir("/proc/self/fd")) == len(before)
    aside.unlink()
    with Ledger(run.ledger, run="r") as ledger:
        assert ledger.repaired


def test_run_whose_torn_tail_cannot_be_set_aside_says_that_the_disk_is_full_and_goes_on_later(
    here: Call, simple: Project
) -> None:
    run = cut_off(simple)
    aside = torn(run)

    code, document = here("run", "--resume", "r")

    assert (code, document["errors"][0]["code"]) == (4, "E_DISK_FULL")
    assert not run.reservation.exists()
    aside.unlink()
    code, document = here("run", "--resume", "r")
    assert (code, document["data"]["run"]["status_counts"]["pass"]) == (0, 1)


@pytest.fixture
def job(project: Project) -> Path:
    """Return the spec of one trial, whose agent leaves the file ``started``."""
    small = SmallProject(project.path, {"one": (f"touch {project.path}/started; printf right", "right")})
    spec = replace(TrialSpec.from_bytes(small.jobs()[0].spec), workspaces=str(project.path / "scratch"))
    (project.path / "spec.json").write_bytes(spec.to_bytes())
    return project.path / "spec.json"


def test_outcome_that_has_no_place_is_a_usage_error_before_anything_runs(project: Project, job: Path) -> None:
    answer = project.call("worker", str(job), "--out", str(project.path / "nowhere" / "outcome.json"), "--json")

    assert answer.exit_code == 1
    (error,) = answer.envelope["errors"]
    assert error["key"] == "out"
    assert not (project.path / "started").exists()
    assert not (project.path / "nowhere").exists()


def test_spec_of_another_form_is_refused(project: Project, job: Path) -> None:
    job.write_text(json.dumps(json.loads(job.read_bytes()) | {"schema_version": 2}))

    answer = project.call("worker", str(job), "--json")

    assert answer.exit_code == 1
    (error,) = answer.envelope["errors"]
    assert str(job) in error["message"]
    assert not (project.path / "started").exists()


@pytest.mark.parametrize(
    ("mounts", "memory"),
    [
        ("dev / ext4 rw 0 0\ndev {place} ext4 rw 0 0\ntmpfs {place} tmpfs rw 0 0\n", True),
        ("dev / ext4 rw 0 0\ntmpfs {place} tmpfs rw 0 0\ndev {place} ext4 rw 0 0\n", False),
        ("tmpfs / tmpfs rw 0 0\ndev / ext4 rw 0 0\n", False),
    ],
    ids=["memory over disk", "disk over memory", "over the root"],
)
def test_of_two_mounts_at_one_place_the_last_is_the_one_that_is_seen(
    here: Call, project: Project, monkeypatch: pytest.MonkeyPatch, mounts: str, memory: bool
) -> None:
    assert is_memory(here, monkeypatch, project.path / "two words", mounts) is memory


def test_place_with_a_space_in_its_name_is_found_among_the_mounts(
    here: Call, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_memory(here, monkeypatch, project.path / "two words", "dev / ext4 rw 0 0\ntmpfs {place} tmpfs rw 0 0\n")


def is_memory(here: Call, monkeypatch: pytest.MonkeyPatch, place: Path, mounts: str) -> bool:
    """Return whether doctor takes a place for a memory disk when these are the mounts, as the kernel writes them."""
    place.mkdir()
    table = mounts.format(place=str(place.resolve()).replace(" ", "\\040"))
    read_text = Path.read_text

    def fake_mounts(path: Path, *words: Any, **more: Any) -> str:
        return table if str(path) == "/proc/self/mounts" else read_text(path, *words, **more)

    monkeypatch.setattr(Path, "read_text", fake_mounts)
    monkeypatch.setenv("EVALWRIGHT_WORKSPACES", str(place))
    code, document = here("doctor", "--component", "workspaces")
    assert code == 0
    return "(memory disk)" in document["data"]["components"]["workspaces"]["details"]


def test_run_that_is_being_made_for_minutes_is_no_finding_while_its_maker_lives(here: Call, project: Project) -> None:
    place = RunDirectory(project.path / "evals" / "runs" / ".new-4x8k")
    place.path.mkdir(parents=True)
    then = place.path.stat().st_mtime - MINUTES_AGO

    lease = Lease.take(place, 60)
    try:
        os.utime(place.path, (then, then))
        _, held = here("doctor", "--component", "runs")
    finally:
        lease.release()
    os.utime(place.path, (then, then))
    _, left = here("doctor", "--component", "runs")

    assert "never begun" not in held["data"]["components"]["runs"]["details"]
    assert "never begun: .new-4x8k" in left["data"]["components"]["runs"]["details"]


def test_journal_that_cannot_be_written_for_want_of_room_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SmallProject(tmp_path, {"one": ("printf right", "right")})

    def full(*words: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ProcessJournal, "note", full)
    with pytest.raises(DiskFull):
        small.run(run_id="r")

    run = small.layout.run("r")
    assert b"TRIAL_FINISHED" not in run.ledger.read_bytes()
    assert not run.manifest.exists()


HARNESS = """
import sys
from evalwright.interfaces import Command
from evalwright.processes import Supervisor
Supervisor().run(Command(argv=["/bin/sh", "-c", sys.argv[1]], env={"PATH": "/usr/bin:/bin"}))
"""
STOPPING = """
exec >/dev/null 2>&1
setsid sleep 60 & other=$!
read _ _ _ server _ < /proc/$$/stat
kill -STOP $server
echo $$ $other $server > {pids}.new
mv {pids}.new {pids}
sleep 60
"""


def test_agent_that_stopped_the_fork_server_dies_with_a_killed_harness(tmp_path: Path) -> None:
    cgroups = Cgroups.make()
    if cgroups is None:
        pytest.skip("no cgroup v2 directory can be written here")
    cgroups.close()
    pids = tmp_path / "pids"
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, STOPPING.format(pids=pids)])
    try:
        assert soon(pids.exists, 10)
        everyone = identities([int(word) for word in pids.read_text().split()])
    finally:
        harness.kill()
        harness.wait(5)

    assert len(everyone) == 3
    assert soon(lambda: not any(identity.alive for identity in everyone), 2)


ON_SMALL_DISK = """
set -e
mount -t tmpfs -o size=2m tmpfs disk
dd if=/dev/zero of=disk/ballast bs=4096 2> /dev/null || true
truncate -s -160K disk/ballast
{tool} run demo --run-id r --queue spoolctl --slots 1 --json > full.json 2> full.err && exit 9 || echo $? > full.code
rm disk/ballast
mount -o remount,size=20m disk
{tool} run --resume r --json > resumed.json 2> resumed.err
"""


def test_full_disk_under_the_spoolctl_queue_is_told_as_such_and_the_run_goes_on_after_space_was_freed(
    project: Project, shell_runner: Shell, require: Callable[[str], None]
) -> None:
    require("unshare")
    require("python:spoolctl")
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk")
    (project.path / "disk").mkdir()
    cases = [{"id": f"c{number}", "expect": {"exit_code": 0}} for number in range(2)]
    runner = shell_runner("head -c 60000 /dev/zero | tr '\\0' x")
    project.suite(runner=runner, scorers=[{"use": "exit-code"}], cases=cases, retry={"infrastructure": 1})
    script = ON_SMALL_DISK.format(tool=f"{sys.executable} -m evalwright")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVAL", "SOURCE_DATE"))}

    done = subprocess.run(
        ["unshare", "-m", "--propagation", "private", "/bin/sh", "-c", script],
        cwd=project.path,
        env=environment | {"EVALWRIGHT_RUNS": str(project.path / "disk/runs")},
        capture_output=True,
        timeout=50,
    )

    assert done.returncode == 0, done.stderr
    assert (project.path / "full.code").read_text().strip() == "4", (project.path / "full.json").read_text()
    full, resumed = (json.loads((project.path / name).read_bytes()) for name in ("full.json", "resumed.json"))
    assert [error["code"] for error in full["errors"]] == ["E_DISK_FULL"]
    assert resumed["data"]["run"]["status_counts"] == {"pass": 2, "fail": 0, "error": 0}


FORGING = """
import glob, os, sqlite3, sys
place = os.path.dirname(os.path.dirname(os.environ["EVALWRIGHT_TASK_FILE"]))
(database,) = glob.glob(f"{place}/q*/queue.db")
with sqlite3.connect(database, timeout=10) as connection:
    connection.execute(
        "CREATE TRIGGER forge AFTER UPDATE ON attempts WHEN NEW.finished_at IS NOT NULL "
        "BEGIN UPDATE attempts SET %s WHERE id = NEW.id; END"
    )
sys.exit(3)
"""


@pytest.mark.parametrize("change", ["exit_code = 0, state = 'succeeded'", "exit_code = 0", "state = 'succeeded'"])
def test_agent_that_changes_how_the_database_says_it_ended_is_an_error_and_no_pass(
    project: Project, require: Callable[[str], None], change: str
) -> None:
    require("python:spoolctl")
    runner = {"argv": [sys.executable, "-c", FORGING % change], "timeout_seconds": 20}
    project.suite(runner=runner, scorers=[{"use": "exit-code"}], cases=[{"id": "a", "expect": {"exit_code": 0}}])

    answer = project.call("run", "demo", "--run-id", "r", "--json", *SPOOLED)

    assert answer.data["run"]["status_counts"] == {"pass": 0, "fail": 0, "error": 1}
    assert "spoolctl" in project.record("r", "a", "runner.json")["error"]["message"]


def test_time_limit_in_the_spoolctl_sandbox_is_the_commands_own_and_the_lack_of_isolation_is_told(
    project: Project, require: Callable[[str], None]
) -> None:
    require("python:spoolctl")
    cases = [{"id": f"c{number}", "expect": {"exact": ""}} for number in range(4)]
    project.suite(runner={"argv": ["true"], "timeout_seconds": 0.3}, cases=cases)

    answer = project.call("run", "demo", "--run-id", "r", "--jobs", "4", "--json", *SPOOLED)

    assert answer.data["run"]["status_counts"]["pass"] == 4
    assert "W_UNSANDBOXED_RUNNER" in answer.warning_codes


@pytest.fixture
def session(tmp_path: Path, require: Callable[[str], None]) -> Iterator[Session]:
    """Return a session of the spoolctl sandbox."""
    require("python:spoolctl")
    for name in ("w", "x"):
        (tmp_path / "place" / name).mkdir(parents=True)
    sandbox = SpoolctlSandbox(None, FakeHost())
    request = SandboxRequest(owner="run/case/1", workspace=tmp_path / "place" / "w", exchange=tmp_path / "place" / "x")
    opened = sandbox.open(request)
    yield opened
    opened.kill(Deadline.after(10))
    opened.destroy(Deadline.after(10))
    sandbox.close(Deadline.after(10))


@pytest.mark.parametrize("case", ["nul", "surrogate", "too long", "bad shebang"])
def test_command_that_no_system_could_start_is_a_result_in_the_spoolctl_sandbox(
    session: Session, tmp_path: Path, case: str
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    argv = {"nul": ["tr\0ue"], "surrogate": ["true", "\ud800"], "too long": ["true", "x" * 3_000_000]}.get(case, [str(program)])

    done = session.execute(Command(argv=argv, env=PATH, timeout=20))

    assert done.spawn_error
    assert (done.exit_code, done.signal, done.timed_out) == (None, None, False)


def test_words_of_a_command_are_in_no_file_of_the_database(session: Session, tmp_path: Path) -> None:
    word = "s3cret-word-5f0a9c"

    done = session.execute(Command(argv=["/bin/sh", "-c", "cat ../q*/queue.db* | grep -c $0", word], env=PATH, timeout=20))

    assert (done.exit_code, done.stdout.text) == (1, "0\n")
    assert list(tmp_path.rglob("queue.db"))
    assert holding(tmp_path, word) == []


def test_relative_python_path_reaches_the_workers_as_absolute(
    project: Project, shell_runner: Shell, require: Callable[[str], None]
) -> None:
    require("python:spoolctl")
    (project.path / "lib").mkdir()
    runner = shell_runner('printf %s "$PYTHONPATH"', env_allowlist=["PATH", "PYTHONPATH"])
    inherited = os.environ.get("PYTHONPATH", str(project.path / "more"))
    wanted = f"{project.path / 'lib'}{os.pathsep}{inherited}"
    project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": wanted}}])

    env = {"PYTHONPATH": f"./lib{os.pathsep}{inherited}"}
    answer = project.call("run", "demo", "--queue", "spoolctl", "--json", env=env)

    assert answer.data["run"]["status_counts"]["pass"] == 1


QUEUE_FILE = """
from evalwright.interfaces import Queue
from evalwright.worker import attempt

class Inline(Queue):
    api = "queue/1.0"

    def open(self, run):
        self.news = []
        print(f"width {run.width}", file=open("widths", "a"))

    def submit(self, jobs):
        self.news += [attempt(job, worker="w", beat=lambda: "continue") for job in jobs]

    def poll(self, timeout):
        found, self.news = self.news, []
        return found

    def cancel(self, keys):
        pass
"""


def test_queue_of_a_file_is_taken_from_the_working_directory_and_slots_stay_with_the_run(
    project: Project, shell_runner: Callable[..., dict[str, Any]]
) -> None:
    (project.path / "q.py").write_text(QUEUE_FILE)
    project.suite(runner=shell_runner("printf x"), cases=[{"id": "a", "expect": {"exact": "x"}}])

    done = project.call("run", "demo", "--run-id", "r", "--queue", "q.py:Inline", "--slots", "3", "--json")
    assert done.exit_code == 0, done.stderr
    (project.run_dir("r") / "manifest.json").unlink()
    again = project.call("run", "--resume", "r", "--json")

    assert again.exit_code == 0, again.stderr
    assert (project.path / "widths").read_text() == "width 3\nwidth 3\n"


def test_queue_file_that_is_not_there_leaves_no_run_behind(
    project: Project, shell_runner: Callable[..., dict[str, Any]]
) -> None:
    project.suite(runner=shell_runner("printf x"), cases=[{"id": "a", "expect": {"exact": "x"}}])

    assert project.call("run", "demo", "--run-id", "r", "--queue", "q.py:Inline", "--json").error_codes == [
        "E_PLUGIN_NOT_FOUND"
    ]
    assert project.call("run", "demo", "--run-id", "r", "--json").exit_code == 0
