"""Trials as jobs of a real spoolctl: how many at once, what reaches them, what they leave, and what a death costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened
from tests.plugins.conftest import command_line, descendants, holding, identities, mentioning

from evalwright.cli import main
from evalwright.interfaces import BoundedOutput, Command, Deadline, SandboxRequest, Session
from evalwright.ledger import read_events
from evalwright.model import Completed
from evalwright.testing import FakeHost, soon
from evalwright_plugins.sandboxes.spoolctl import SpoolctlSandbox

if TYPE_CHECKING:
    from tests.conftest import Answer, Project

Shell = Callable[..., dict[str, Any]]
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
QUEUE = ("--queue", "spoolctl")
SECRET = "s3cret-5f0a9c77d1"
START_SECONDS = 20

pytestmark = pytest.mark.usefixtures("undertaker")


def run(project: Project, *words: str, run_id: str = "r", env: dict[str, str] | None = None) -> Answer:
    return project.call("run", "demo", "--run-id", run_id, "--json", *words, env=EPOCH | (env or {}), timeout=60)


def events(project: Project, type: str) -> list[dict[str, Any]]:
    path = project.run_dir("r") / "ledger.jsonl"
    return [event["data"] for event in read_events(path) if event["type"] == type] if path.exists() else []


def words_in(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def jobs(project: Project) -> list[dict[str, Any]]:
    """Return the rows of the run's database, as spoolctl itself lists them."""
    database = project.run_dir("r") / ".queue" / "queue.db"
    command = [sys.executable, "-I", "-m", "spoolctl", "list", "--db", str(database), "--limit", "0", "--json"]
    done = subprocess.run(command, capture_output=True, check=True)
    rows: list[dict[str, Any]] = json.loads(done.stdout)["data"]["jobs"]
    return rows


@pytest.mark.parametrize(("slots", "trials"), [(4, 8), pytest.param(1, 3, marks=pytest.mark.acceptance)])
def test_exactly_as_many_trials_run_at_once_as_there_are_slots(
    project: Project, shell_runner: Shell, slots: int, trials: int
) -> None:
    stamps = project.path / "stamps"
    line = (
        f"echo + >> {stamps}; i=0; "
        f"until [ $(grep -c + {stamps}) -ge {slots} ] || [ $i = 200 ]; do sleep 0.05; i=$((i+1)); done; "
        f"sleep 0.6; echo - >> {stamps}"
    )
    cases = [{"id": f"c{number}", "expect": {"exact": ""}} for number in range(trials)]
    project.suite(runner=shell_runner(line), cases=cases)

    answer = run(project, *QUEUE, "--slots", str(slots), "--jobs", "2")

    assert answer.data["run"]["status_counts"]["pass"] == trials
    running, most = 0, 0
    for stamp in words_in(stamps):
        running += 1 if stamp == "+" else -1
        most = max(most, running)
    assert (running, most) == (0, slots)


def under_spoolctl(manifest: bytes) -> bytes:
    """Return what the manifest of a local run is under spoolctl: the queue's name is all that differs."""
    assert manifest.count(b'"queue": "local"') == 1
    return manifest.replace(b'"queue": "local"', b'"queue": "spoolctl"')


def test_report_content_and_manifest_are_those_of_the_local_queue(project: Project, shell_runner: Shell) -> None:
    line = 'cat "$EVALWRIGHT_TASK_FILE"; echo x > new; rm a.txt'
    cases = [{"id": f"c{number}", "task": f"t{number}", "expect": {"exact": "t0"}} for number in range(2)]
    project.suite(runner=shell_runner(line), cases=cases)

    local = run(project).data
    manifest = (project.run_dir("r") / "manifest.json").read_bytes()
    project.run_dir("r").rename(project.path / "local")
    spooled = run(project, *QUEUE).data

    assert [spooled[key] for key in ("report_hash", "content_hash")] == [local[key] for key in ("report_hash", "content_hash")]
    assert (project.run_dir("r") / "manifest.json").read_bytes() == under_spoolctl(manifest)
    assert not (project.run_dir("r") / ".queue").exists()
    assert not (project.run_dir("r") / ".attempts").exists()


LOOK = (
    "p=$$; n=10; while [ $p -gt 1 ]; do n=$((n+1)); cat /proc/$p/cmdline > {place}/$n.cmdline; "
    "cat /proc/$p/environ > {place}/$n.environ; "
    "case $(tr '\\0' ' ' < /proc/$p/cmdline) in *'spoolctl '[w]ork*) break;; esac; "
    "read _ _ _ p _ < /proc/$p/stat; done; "
    'echo "$API_TOKEN"; echo "$WELCOME"'
)


def test_variables_of_the_caller_reach_neither_the_agent_nor_any_process_above_it_unless_they_are_allowed(
    project: Project, shell_runner: Shell
) -> None:
    place = project.path / "chain"
    place.mkdir()
    runner = shell_runner(
        LOOK.format(place=place), env_allowlist=["PATH", "WELCOME", "API_TOKEN"], redact_env_values=["API_TOKEN"]
    )
    project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "[REDACTED]\nallowed\n"}}])
    given = {"NOT_ALLOWED": "must-not-arrive", "WELCOME": "allowed", "API_TOKEN": SECRET}

    answer = run(project, *QUEUE, env=given)

    assert answer.data["run"]["status_counts"]["pass"] == 1
    lines = [path.read_bytes() for path in sorted(place.glob("*.cmdline"))]
    assert sum(b"spoolctl\0work\0" in line for line in lines) == 1
    assert any(b"evalwright\0worker" in line for line in lines)
    environments = [path.read_bytes().split(b"\0") for path in sorted(place.glob("*.environ"))]
    assert b"WELCOME=allowed" in environments[0]
    assert len(environments) >= 4
    assert holding(place, "must-not-arrive") == holding(place, "NOT_ALLOWED") == []
    assert holding(project.run_dir("r"), SECRET) == holding(project.run_dir("r"), "must-not-arrive") == []


def test_no_raw_output_lies_in_the_run_directory_while_it_runs_after_a_kill_or_at_the_end(
    project: Project, shell_runner: Shell
) -> None:
    said, go, home = project.path / "said", project.path / "go", project.path / "home"
    home.mkdir()
    line = f'echo "$API_TOKEN"; echo "$API_TOKEN" >&2; echo x >> {said}; [ -e {go} ] || sleep 60'
    runner = shell_runner(line, env_allowlist=["PATH", "API_TOKEN"], redact_env_values=["API_TOKEN"])
    project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "[REDACTED]\n"}}])
    env = EPOCH | {"API_TOKEN": SECRET, "HOME": str(home), "TMPDIR": str(home)}
    process = project.start("run", "demo", "--run-id", "r", "--json", *QUEUE, env=env)
    try:
        assert soon(said.exists, START_SECONDS)
        assert (project.run_dir("r") / ".queue" / "queue.db").exists()
        assert holding(project.path, SECRET) == []
    finally:
        process.kill()
        process.communicate()
    assert holding(project.path, SECRET) == []
    go.touch()

    resumed = project.call("run", "--resume", "r", "--json", *QUEUE, env=env, timeout=60)

    assert resumed.data["run"]["status_counts"]["pass"] == 1
    assert holding(project.path, SECRET) == []


def test_exit_codes_signals_and_durations_arrive(project: Project, shell_runner: Shell) -> None:
    tasks = {"code": "exit 3", "signal": "kill -SEGV $$", "sleep": "sleep 0.3"}
    cases = [{"id": name, "task": task, "expect": {"exit_code": 0}} for name, task in tasks.items()]
    project.suite(runner=shell_runner('. "$EVALWRIGHT_TASK_FILE"'), cases=cases)

    run(project, *QUEUE)

    records = {name: project.record("r", name, "runner.json") for name in tasks}
    assert {name: record["exit_code"] for name, record in records.items()} == {"code": 3, "signal": -11, "sleep": 0}
    assert records["sleep"]["duration_ms"] >= 300
    assert all(record["duration_ms"] > 0 for record in records.values())


class Scene:
    """Three cases in two slots: the first ends at once, the others hang until the file ``go`` exists."""

    def __init__(self, project: Project, shell_runner: Shell) -> None:
        self.project = project
        self.go, self.hanging, self.started = (project.path / name for name in ("go", "hanging", "started"))
        self.scratch = project.path / "scratch"
        self.scratch.mkdir()
        self.env = EPOCH | {"EVALWRIGHT_WORKSPACES": str(self.scratch)}
        line = (
            f'task=$(cat "$EVALWRIGHT_TASK_FILE"); echo $task >> {self.started}; '
            f"if [ $task != t0 ] && [ ! -e {self.go} ]; then "
            f"setsid sh -c 'trap \"\" TERM INT HUP; echo x >> {self.hanging}; sleep 60' & "
            "trap '' TERM INT; sleep 60; sleep 60; fi; printf $task"
        )
        cases = [{"id": f"c{number}", "task": f"t{number}", "expect": {"exact": f"t{number}"}} for number in range(3)]
        project.suite(runner=shell_runner(line, timeout_seconds=100), cases=cases)

    def start(self) -> subprocess.Popen[bytes]:
        """Start the run and return once one trial is done and the two others hang."""
        process = self.project.start("run", "demo", "--run-id", "r", "--json", *QUEUE, "--slots", "2", env=self.env)
        assert soon(lambda: self.finished() == ["c0"] and len(words_in(self.hanging)) == 2, START_SECONDS)
        return process

    def finished(self) -> list[str]:
        return [data["case"] for data in events(self.project, "TRIAL_FINISHED")]

    def resume(self) -> Answer:
        self.go.touch()
        words = ("run", "--resume", "r", "--json", *QUEUE, "--slots", "2")
        return self.project.call(*words, env=self.env, timeout=60)

    def manifest(self) -> bytes:
        return (self.project.run_dir("r") / "manifest.json").read_bytes()

    def whole_manifest(self) -> bytes:
        """Return the manifest of an uninterrupted run of the same id."""
        self.project.run_dir("r").rename(self.project.path / "aside")
        assert self.project.call("run", "demo", "--run-id", "r", "--json", env=self.env).exit_code == 0
        return under_spoolctl(self.manifest())


@pytest.fixture
def scene(project: Project, shell_runner: Shell) -> Scene:
    return Scene(project, shell_runner)


def test_killed_harness_leaves_no_worker_and_no_agent_and_its_run_goes_on_at_once(scene: Scene) -> None:
    process = scene.start()
    family = descendants(process.pid)
    everything = identities(family)
    lines = [command_line(pid) for pid in family]
    assert sum(b"spoolctl" in line and b"work" in line for line in lines) == 2
    assert sum(b"evalwright" in line and b"worker" in line for line in lines) == 2

    process.kill()
    process.communicate()

    assert soon(lambda: not any(identity.alive for identity in everything), 2)
    assert soon(lambda: not mentioning(scene.project.path), 2)
    resumed = scene.resume()
    assert resumed.data["run"]["status_counts"]["pass"] == 3
    assert sorted(words_in(scene.started)) == ["t0", "t1", "t1", "t2", "t2"]
    assert list(scene.scratch.glob("*/*")) == []
    assert scene.manifest() == scene.whole_manifest()


def test_interrupted_run_exits_130_leaves_nothing_and_goes_on(scene: Scene) -> None:
    process = scene.start()
    everything = identities(descendants(process.pid))

    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=120)

    assert process.returncode == 130
    assert "--resume r" in json.loads(stdout)["errors"][0]["hint"]
    assert b"Traceback" not in stderr
    assert not any(identity.alive for identity in everything)
    assert mentioning(scene.project.path) == []
    assert list(scene.scratch.glob("*/*")) == []
    assert scene.finished() == ["c0"]
    assert scene.resume().data["run"]["status_counts"]["pass"] == 3
    assert sorted(words_in(scene.started)) == ["t0", "t1", "t1", "t2", "t2"]


WORKERS = {"spoolctl": (b"spoolctl", b"work"), "evalwright": (b"evalwright", b"worker")}


@pytest.mark.parametrize("victim", WORKERS)
@pytest.mark.parametrize("retries", shortened([0, 2], [2]))
def test_trial_whose_worker_was_killed_is_lost_or_made_again_under_a_new_key(
    project: Project, shell_runner: Shell, victim: str, retries: int
) -> None:
    started, go = project.path / "started", project.path / "go"
    line = f"echo x >> {started}; if [ $(wc -l < {started}) = 1 ]; then sleep 60; fi; until [ -e {go} ]; do sleep 0.05; done"
    retry = {"infrastructure": retries, "backoff_seconds": 0}
    project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": ""}}], retry=retry)
    process = project.start("run", "demo", "--run-id", "r", "--json", *QUEUE, env=EPOCH)
    try:
        assert soon(lambda: words_in(started), START_SECONDS)
        (worker,) = (pid for pid in descendants(process.pid) if set(WORKERS[victim]) <= set(command_line(pid)))
        os.kill(worker, signal.SIGKILL)
        if retries:
            assert soon(lambda: len(words_in(started)) == 2, START_SECONDS)
            assert {row["idempotency_key"]: row["queue"] for row in jobs(project)}.keys() == {"r/a/1", "r/a/2"}
            assert len({row["queue"] for row in jobs(project)}) == 2
        go.touch()
        answer = json.loads(process.communicate(timeout=120)[0])
    finally:
        process.kill()
        process.communicate()

    assert answer["data"]["run"]["status_counts"] == {"pass": int(retries > 0), "fail": 0, "error": int(retries == 0)}
    (spoiled,) = events(project, "TRIAL_RETRIED" if retries else "TRIAL_FINISHED")
    assert (spoiled["attempt"], spoiled["error"]["kind"], spoiled["error"]["transient"]) == (1, "worker_lost", True)
    assert [data["attempt"] for data in events(project, "TRIAL_ATTEMPT")] == ([1, 2] if retries else [1])
    assert len(words_in(started)) == (2 if retries else 1)
    assert not (project.run_dir("r") / ".queue").exists()


def test_outcome_that_a_dead_harness_did_not_take_is_adopted_and_its_trial_is_not_run_again(
    project: Project, shell_runner: Shell
) -> None:
    started, go = project.path / "started", project.path / "go"
    line = f'cat "$EVALWRIGHT_TASK_FILE" >> {started}; until [ -e {go} ]; do sleep 0.05; done'
    cases = [{"id": f"c{number}", "task": f"t{number}\n", "expect": {"exact": ""}} for number in range(2)]
    project.suite(runner=shell_runner(line), cases=cases)
    process = project.start("run", "demo", "--run-id", "r", "--json", *QUEUE, "--slots", "1", env=EPOCH)
    try:
        assert soon(lambda: words_in(started) == ["t0"], START_SECONDS)
        process.send_signal(signal.SIGSTOP)
        go.touch()
        assert soon(lambda: list(project.run_dir("r").glob(".queue/jobs/*/outcome.json")), START_SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert events(project, "TRIAL_FINISHED") == []

    resumed = project.call("run", "--resume", "r", "--json", *QUEUE, env=EPOCH, timeout=60)

    assert resumed.data["run"]["status_counts"]["pass"] == 2
    assert words_in(started) == ["t0", "t1"]
    assert [data["adopted"] for data in events(project, "RUN_RESUMED")] == [["c0"]]
    assert [(data["case"], data["attempt"]) for data in events(project, "TRIAL_ATTEMPT")] == [("c0", 1), ("c1", 1)]


def test_long_names_with_dots_and_a_common_beginning_are_jobs_of_their_own(project: Project, shell_runner: Shell) -> None:
    names = [f"{'a.b-c_D' * 14}.{number}" for number in range(2)]
    cases = [{"id": name, "task": name, "expect": {"exact": name}} for name in names]
    project.suite(runner=shell_runner('cat "$EVALWRIGHT_TASK_FILE"'), cases=cases)

    answer = run(project, *QUEUE, "--slots", "2", run_id="2026.01.01-" + "x" * 100)

    assert len(names[0]) == 100
    assert answer.data["run"]["status_counts"]["pass"] == 2


ENVELOPE = '{{"ok": true, "tool_version": "{version}", "data": {{"contract_version": "{contract}"}}, "errors": []}}'


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Return what calls the command line in this process, where spoolctl can be exchanged: ``program`` is its command."""
    project.suite(runner={"argv": ["true"]}, cases=[{"id": "a", "expect": {"exact": ""}}])
    monkeypatch.chdir(project.path)

    def call(program: list[str] | None, *words: str) -> tuple[int, Any]:
        monkeypatch.setattr("evalwright_plugins.spool._program", lambda: program)
        capsys.readouterr()
        code = main(["run", "demo", "--run-id", "r", "--json", *words])
        return code, json.loads(capsys.readouterr().out)

    return call


@pytest.mark.parametrize("chosen", [QUEUE, ("--sandbox", "spoolctl")], ids=["queue", "sandbox"])
def test_absent_spoolctl_is_told_with_the_line_that_installs_it_before_anything_is_made(
    here: Callable[..., Any], project: Project, chosen: tuple[str, str]
) -> None:
    code, answer = here(None, *chosen)

    (error,) = answer["errors"]
    assert (code, error["code"], error["exit_code"]) == (3, "E_SPOOLCTL_UNAVAILABLE", 3)
    assert "pip install 'evalwright[spoolctl]'" in error["hint"]
    assert not project.run_dir("r").exists()


@pytest.mark.parametrize(
    ("prints", "expected"),
    [
        (ENVELOPE.format(version="0.4.10", contract="2"), "E_SPOOLCTL_INCOMPATIBLE"),
        (ENVELOPE.format(version="0.3.99", contract="2"), "E_SPOOLCTL_INCOMPATIBLE"),
        (ENVELOPE.format(version="0.4.11", contract="1"), "E_SPOOLCTL_INCOMPATIBLE"),
        ("no envelope", "E_SPOOLCTL_UNAVAILABLE"),
    ],
    ids=["patch too old", "minor too old", "contract too old", "no answer"],
)
def test_spoolctl_that_is_too_old_or_does_not_answer_is_refused(
    here: Callable[..., Any], project: Project, prints: str, expected: str
) -> None:
    code, answer = here(["/bin/sh", "-c", "printf '%s' \"$0\"", prints], *QUEUE)

    (error,) = answer["errors"]
    assert (code, error["code"]) == (3, expected)
    assert "pip install" in error["hint"]
    assert not project.run_dir("r").exists()


def test_local_queue_needs_no_spoolctl(here: Callable[..., Any]) -> None:
    code, answer = here(None)

    assert (code, answer["data"]["run"]["status_counts"]["pass"]) == (0, 1)


PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
ODD = ["two words", 'a"b', "it's", "line\nbreak", "", "$HOME", "`id`", "*", "--", "-x", "\\", "tab\t", "naïve", "%s"]
ECHO = "import json, sys; print(json.dumps([sys.argv[1:], len(sys.stdin.buffer.read())]))"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """Return a session of the spoolctl sandbox below the test's directory."""
    for name in ("w", "x"):
        (tmp_path / "place" / name).mkdir(parents=True)
    sandbox = SpoolctlSandbox(None, FakeHost())
    request = SandboxRequest(owner="run/case.a/1", workspace=tmp_path / "place" / "w", exchange=tmp_path / "place" / "x")
    opened = sandbox.open(request)
    yield opened
    opened.kill(Deadline.after(10))
    opened.destroy(Deadline.after(10))
    sandbox.close(Deadline.after(10))
    assert sorted(path.name for path in (tmp_path / "place").iterdir()) == ["w", "x"]


def execute(session: Session, line: str, **more: Any) -> Completed:
    return session.execute(replace(Command(argv=["/bin/sh", "-c", line], env=PATH, timeout=20), **more))


def test_sandbox_passes_words_and_input_on_verbatim(session: Session) -> None:
    done = session.execute(Command(argv=[sys.executable, "-c", ECHO, *ODD], env=PATH, timeout=20, stdin=b"a\0b\n" * 100_000))

    assert done.exit_code == 0
    assert json.loads(done.stdout.text) == [ODD, 400_000]


def test_sandbox_tells_codes_signals_and_missing_programs(session: Session) -> None:
    ends = [execute(session, line) for line in ("sleep 0.2", "exit 3", "kill -SEGV $$")]
    missing = session.execute(Command(argv=["no-such-program"], env=PATH, timeout=20))

    assert [(done.exit_code, done.signal) for done in ends] == [(0, None), (3, None), (-11, 11)]
    assert ends[0].duration >= 0.2
    assert "no-such-program" in (missing.spawn_error or "")
    assert missing.exit_code is None


def test_sandbox_ends_detached_children_when_the_time_is_up(session: Session, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stubborn = f"setsid sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 60; sleep 60' & trap '' TERM; echo $$ >> {pids}"
    result: list[Completed] = []
    waiting = threading.Thread(
        target=lambda: result.append(execute(session, f"{stubborn}; sleep 60; sleep 60", timeout=3, grace=0.3))
    )
    waiting.start()
    assert soon(lambda: len(words_in(pids)) == 2, START_SECONDS)
    everything = identities([int(word) for word in words_in(pids)])

    waiting.join(20)

    assert len(everything) == 2
    assert [(done.timed_out, done.exit_code) for done in result] == [(True, None)]
    assert not any(identity.alive for identity in everything)


def test_sandbox_keeps_a_flood_off_the_disk_bounds_it_and_counts_it(session: Session, tmp_path: Path) -> None:
    said, go = tmp_path / "said", tmp_path / "go"
    line = f"head -c 50000000 /dev/zero | tr '\\0' x; echo x > {said}; until [ -e {go} ]; do sleep 0.05; done; printf end"
    result: list[Completed] = []
    waiting = threading.Thread(target=lambda: result.append(execute(session, line, capture=lambda: BoundedOutput(1000))))
    waiting.start()
    assert soon(said.exists, START_SECONDS)

    on_disk = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    go.touch()
    waiting.join(20)

    assert on_disk < 1 << 20
    (done,) = result
    assert (done.exit_code, done.stdout.total_bytes, done.stdout.truncated) == (0, 50_000_003, True)
    assert (done.stdout.head, done.stdout.tail[-5:]) == (b"x" * 1000, b"xxend")


def test_trial_in_the_sandbox_is_scored_as_ever_and_no_file_holds_what_its_environment_holds(
    project: Project, shell_runner: Shell
) -> None:
    said, go, scratch = project.path / "said", project.path / "go", project.path / "scratch"
    scratch.mkdir()
    line = f'echo "$API_TOKEN"; echo x > {said}; until [ -e {go} ]; do sleep 0.05; done; exit 3'
    runner = shell_runner(line, env_allowlist=["PATH", "API_TOKEN"], redact_env_values=["API_TOKEN"])
    project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "[REDACTED]\n", "exit_code": 3}}])
    env = EPOCH | {"API_TOKEN": SECRET, "EVALWRIGHT_WORKSPACES": str(scratch)}
    process = project.start("run", "demo", "--run-id", "r", "--json", "--sandbox", "spoolctl", env=env)
    try:
        assert soon(said.exists, START_SECONDS)
        assert list(scratch.rglob("queue.db"))
        assert holding(project.path, SECRET) == []
        go.touch()
        answer = json.loads(process.communicate(timeout=120)[0])
    finally:
        process.kill()
        process.communicate()

    assert answer["data"]["run"]["status_counts"]["pass"] == 1
    assert holding(project.path, SECRET) == []
    assert list(scratch.rglob("queue.db")) == []


def test_runner_that_does_not_exist_is_told_as_such_from_the_sandbox(project: Project) -> None:
    project.suite(runner={"argv": ["no-such-program"]}, cases=[{"id": "a", "expect": {"exact": ""}}])

    run(project, "--sandbox", "spoolctl")

    assert project.record("r", "a", "runner.json")["error"]["kind"] == "spawn_failed"
