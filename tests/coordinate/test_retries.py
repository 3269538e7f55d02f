"""Retries: only what the infrastructure spoiled is made again, each attempt stays on record, and the result is the same."""

from __future__ import annotations

import errno
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from evalwright.coordinate import RunOutcome, RunRequest, Stop, resume_run, run_suite
from evalwright.errors import Interrupted, JudgeRefused, JudgeUnavailable, SandboxLost, TrialError
from evalwright.hooks import Observers
from evalwright.interfaces import Job, Outcome, Queue, Runner, RunnerContext, ScoreContext, Scorer
from evalwright.ledger import read_events
from evalwright.model import Completed, RunnerResult, Score, ScoredTrial, TrialView
from evalwright.rundir import RunDirectory
from evalwright.settings import Settings
from evalwright.suite import load_suite
from evalwright.testing import SmallProject, installed
from evalwright.worker import attempt

if TYPE_CHECKING:
    from tests.conftest import Project

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
SOON = {"infrastructure": 2, "backoff_seconds": 0.01}
LATER = {"infrastructure": 1, "backoff_seconds": 60}
KILLING = """
if [ ! -e {flag} ]; then
  touch {flag}
  grep -q _server.py /proc/$PPID/cmdline && kill -9 $PPID
  sleep 9
fi
printf right
"""
JUDGED = [{"use": "exact"}, {"use": "judging", "id": "judge"}]
Step = BaseException | RunnerResult | Score


def said(answer: str) -> RunnerResult:
    return RunnerResult(completed=Completed(exit_code=0), output=answer)


def ended(**how: Any) -> RunnerResult:
    return RunnerResult(completed=Completed(**how))


def busy(why: str = "the service is busy") -> TrialError:
    return TrialError("busy", why, transient=True)


class Scripted(Runner[None]):
    """Takes one step a call, first those of the trial's task; without steps it answers right."""

    api = "runner/1.0"
    steps: ClassVar[list[Step]] = []
    by_task: ClassVar[dict[str, Step]] = {}

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        step = self.by_task.pop(trial.task, None) or (self.steps.pop(0) if self.steps else said("right"))
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, RunnerResult)
        return step


class Judging(Scorer[None]):
    """Takes one step a call; without steps it passes everything."""

    api = "scorer/1.0"
    steps: ClassVar[list[Step]] = []

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        step = self.steps.pop(0) if self.steps else Score.passed()
        if isinstance(step, BaseException):
            raise step
        assert isinstance(step, Score)
        return step


class Losing(Queue[None]):
    """Loses the worker of each job whose outcome is listed in ``losses``; carries the others out."""

    api = "queue/1.0"
    losses: ClassVar[list[bool]] = []

    def __init__(self, config: None, host: Any) -> None:
        super().__init__(config, host)
        self.outcomes: list[Outcome] = []

    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if self.losses:
                lost = Outcome(key=job.key, ended="lost", worker="w", reason="it went away", transient=self.losses.pop(0))
                self.outcomes.append(lost)
            else:
                self.outcomes.append(attempt(job, worker="w", beat=lambda: "continue"))

    def poll(self, timeout: float) -> Sequence[Outcome]:
        found, self.outcomes = self.outcomes, []
        return found

    def cancel(self, keys: Collection[str]) -> None:
        return


class StopWhen(Stop):
    """Asks for a stop once the ledger holds an event of a type."""

    def __init__(self, run: RunDirectory, type: str) -> None:
        super().__init__()
        self._ledger = run.ledger
        self._type = type.encode()

    @property
    def requested(self) -> bool:
        return self._type in self._ledger.read_bytes()


class Bench:
    """One suite of one case; runs and resumes it in this process."""

    def __init__(self, place: Path, retry: Mapping[str, Any] = SOON, **more: Any) -> None:
        table: dict[str, Any] = {"runner": {"use": "scripted-steps"}, "retry": dict(retry)} | more
        scripts: dict[str, tuple[str, str]] = table.pop("scripts", {"one": ("t", "right")})
        self.cases = scripts.keys()
        self.project = SmallProject(place, scripts, **table)
        self.layout = self.project.layout
        self.run_directory = self.layout.run("r")

    def run(self, *, stop: Stop | None = None, queue: str | None = None) -> RunOutcome:
        settings = Settings(evals=self.layout.evals, jobs=1, queue=queue)
        request = RunRequest(
            checked=load_suite(self.project.suite), layout=self.layout, settings=settings, run_id="r", environment=EPOCH
        )
        return run_suite(request, stop=stop or Stop(), observers=lambda complain: Observers((), complain), warn=ignored)

    def resume(self, *, queue: str | None = None) -> RunOutcome:
        return resume_run(
            self.run_directory,
            self.layout,
            Settings(evals=self.layout.evals, jobs=1, queue=queue),
            stop=Stop(),
            observers=lambda complain: Observers((), complain),
            warn=ignored,
            environment=EPOCH,
        )

    def interrupt_in_backoff(self) -> None:
        with pytest.raises(Interrupted):
            self.run(stop=StopWhen(self.run_directory, "TRIAL_RETRIED"))

    def events(self, type: str) -> list[dict[str, Any]]:
        return [event["data"] for event in read_events(self.run_directory.ledger) if event["type"] == type]

    def numbers(self, type: str = "TRIAL_ATTEMPT") -> list[int]:
        return [data["attempt"] for data in self.events(type)]

    def record(self, name: str, case: str = "one") -> Any:
        return json.loads((self.run_directory.case(case) / name).read_bytes())

    def rows(self, case: str = "one") -> list[tuple[int, str, bool]]:
        return [(row["attempt"], row["status"], row["counted"]) for row in self.record("runner.json", case)["attempts"]]


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


def status(outcome: RunOutcome) -> str:
    (case,) = outcome.report.cases
    return case.status


@pytest.fixture(autouse=True)
def steps() -> Iterator[None]:
    """Leave no step of one test to the next."""
    yield
    Scripted.steps, Judging.steps, Losing.losses = [], [], []


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    """Make the plugins of this file discoverable."""
    with (
        installed("runner", "scripted-steps", Scripted, distribution="test-steps"),
        installed("scorer", "judging", Judging, distribution="test-judging"),
        installed("queue", "losing", Losing, distribution="test-losing"),
    ):
        yield


TRANSIENT: dict[str, Step] = {
    "no process left": ended(spawn_error="cannot fork", spawn_errno=errno.EAGAIN),
    "no memory": ended(spawn_error="cannot fork", spawn_errno=errno.ENOMEM),
    "no descriptor": ended(spawn_error="cannot open", spawn_errno=errno.EMFILE),
    "no descriptor in the system": ended(spawn_error="cannot open", spawn_errno=errno.ENFILE),
    "plugin says so": busy(),
    "sandbox lost": SandboxLost("the machine is gone"),
    "shortage in a plugin": OSError(errno.EMFILE, "Too many open files"),
}
LASTING: dict[str, Step] = {
    "timeout": ended(timed_out=True),
    "limit": ended(limit="cpu_limit", exit_code=-24, signal=24),
    "missing program": ended(spawn_error="no such program", spawn_errno=errno.ENOENT),
    "failure without a number": ended(spawn_error="no such program"),
    "plugin defect": ValueError("a mistake"),
    "plugin says so": TrialError("refused", "never"),
    "error of the system": PermissionError(errno.EACCES, "not allowed"),
    "wrong answer": said("wrong"),
    "failed agent": RunnerResult(completed=Completed(exit_code=3), output="right"),
}


def of_tasks(place: Path, steps: Mapping[str, Step]) -> Bench:
    """Return a suite with one case per step, which its first attempt takes."""
    Scripted.by_task = dict(steps)
    return Bench(place, scripts={name.replace(" ", "-"): (name, "right") for name in steps})


def test_trials_that_the_infrastructure_spoiled_are_tried_again_and_their_first_attempts_stay_on_record(tmp_path: Path) -> None:
    bench = of_tasks(tmp_path, TRANSIENT)

    outcome = bench.run()

    assert {case.id: case.status for case in outcome.report.cases} == dict.fromkeys(bench.cases, "pass")
    retried = {data["case"]: data for data in bench.events("TRIAL_RETRIED")}
    finished = {data["case"]: data for data in bench.events("TRIAL_FINISHED")}
    assert retried.keys() == finished.keys() == bench.cases
    for case in bench.cases:
        assert bench.rows(case) == [(1, "error", False), (2, "pass", True)]
        assert (retried[case]["attempt"], retried[case]["status"]) == (1, "error")
        assert retried[case]["error"]["transient"] is True
        assert bench.record("runner.json", case)["attempts"][0]["error"] == retried[case]["error"]
        assert finished[case]["attempt"] == bench.record("bundle.json", case)["attempt"] == 2


def test_what_the_agent_did_or_another_attempt_would_meet_again_is_never_tried_again(tmp_path: Path) -> None:
    bench = of_tasks(tmp_path, LASTING)

    outcome = bench.run()

    statuses = {case.id: case.status for case in outcome.report.cases}
    assert {case for case, result in statuses.items() if result == "fail"} == {"wrong-answer", "failed-agent"}
    assert "pass" not in statuses.values()
    assert bench.events("TRIAL_RETRIED") == []
    for case in bench.cases:
        assert bench.rows(case) == [(1, statuses[case], True)]


def test_program_that_is_not_there_is_no_shortage_when_the_system_itself_says_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, runner={"argv": ["/nowhere/agent"]})

    assert status(bench.run()) == "error"

    assert bench.numbers() == [1]
    assert bench.record("runner.json")["error"]["kind"] == "spawn_failed"


def test_killed_supervisor_is_tried_again(tmp_path: Path) -> None:
    killing = KILLING.format(flag=tmp_path / "flag")
    bench = Bench(tmp_path, runner={"argv": ["/bin/sh", "$EVALWRIGHT_TASK_FILE"]}, scripts={"one": (killing, "right")})

    outcome = bench.run()

    assert status(outcome) == "pass"
    assert [data["error"]["code"] for data in bench.events("TRIAL_RETRIED")] == ["E_SANDBOX_LOST"]
    assert bench.rows() == [(1, "error", False), (2, "pass", True)]


def test_unavailable_judge_is_tried_again_with_a_new_answer_of_the_agent(tmp_path: Path) -> None:
    bench = Bench(tmp_path, scorers=JUDGED, scripts={"one": ("t", "second")})
    Scripted.steps = [said("first"), said("second")]
    Judging.steps = [JudgeUnavailable("overloaded")]

    outcome = bench.run()

    assert status(outcome) == "pass"
    assert (bench.run_directory.case("one") / "output.txt").read_text() == "second"
    assert bench.rows() == [(1, "error", False), (2, "pass", True)]


def test_scorer_that_cannot_judge_for_good_is_not_asked_again(tmp_path: Path) -> None:
    scripts = dict.fromkeys(("a", "b", "c", "d"), ("t", "right"))
    bench = Bench(tmp_path, scorers=JUDGED, scripts=scripts)
    Judging.steps = [JudgeRefused("no"), TrialError("unclear", "never"), ValueError("a mistake"), Score.broken("cannot judge")]

    outcome = bench.run()

    assert [case.status for case in outcome.report.cases] == ["error"] * 4
    assert bench.numbers() == [1] * 4


def test_one_lasting_error_beside_a_transient_one_keeps_the_trial_from_another_attempt(tmp_path: Path) -> None:
    bench = Bench(tmp_path, scorers=[*JUDGED, {"use": "judging", "id": "second"}])
    Judging.steps = [JudgeUnavailable("overloaded"), JudgeRefused("no")]

    assert status(bench.run()) == "error"
    assert bench.numbers() == [1]


def test_agents_fault_is_not_tried_again_because_its_scorer_had_no_judge(tmp_path: Path) -> None:
    bench = Bench(tmp_path, scorers=JUDGED)
    Scripted.steps = [ended(timed_out=True)]
    Judging.steps = [JudgeUnavailable("overloaded")]

    assert status(bench.run()) == "error"
    assert bench.numbers() == [1]
    assert bench.record("score.json")["fault"] == "agent"


@pytest.mark.parametrize(("transient", "attempts", "result"), [(True, [1, 2], "pass"), (False, [1], "error")])
def test_lost_worker_is_tried_again_unless_its_queue_says_that_this_is_no_use(
    tmp_path: Path, transient: bool, attempts: list[int], result: str
) -> None:
    bench = Bench(tmp_path)
    Losing.losses = [transient]

    assert status(bench.run(queue="losing")) == result

    assert bench.numbers() == attempts
    first = bench.record("runner.json")["attempts"][0]
    assert (first["error"]["kind"], first["error"]["message"]) == ("worker_lost", "it went away")


def test_wait_before_each_attempt_is_twice_the_one_before_and_the_last_error_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"infrastructure": 3, "backoff_seconds": 0.01})
    Scripted.steps = [busy(f"error {number}") for number in range(1, 5)]

    outcome = bench.run()

    assert status(outcome) == "error"
    assert [data["retry_in_seconds"] for data in bench.events("TRIAL_RETRIED")] == [0.01, 0.02, 0.04]
    assert bench.rows() == [(1, "error", False), (2, "error", False), (3, "error", False), (4, "error", True)]
    messages = [row["error"]["message"] for row in bench.record("runner.json")["attempts"]]
    assert messages == ["error 1", "error 2", "error 3", "error 4"]
    (finished,) = bench.events("TRIAL_FINISHED")
    assert (finished["attempt"], finished["error"]["message"]) == (4, "error 4")
    assert bench.record("bundle.json")["attempt"] == 4


def test_attempt_does_not_begin_before_its_wait_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    begun: list[float] = []
    monkeypatch.setattr("evalwright.coordinate.attempts.time.monotonic", lambda: now[0])

    class Ticking(Losing):
        def submit(self, jobs: Sequence[Job]) -> None:
            begun.append(now[0])
            super().submit(jobs)

        def poll(self, timeout: float) -> Sequence[Outcome]:
            now[0] += 1.0
            return super().poll(timeout)

    bench = Bench(tmp_path, {"infrastructure": 2, "backoff_seconds": 10})
    Losing.losses = [True, True]
    with installed("queue", "ticking", Ticking, distribution="test-ticking"):
        assert status(bench.run(queue="ticking")) == "pass"

    assert begun[1] - begun[0] >= 10
    assert begun[2] - begun[1] >= 20


@pytest.mark.parametrize("retry", [{}, {"backoff_seconds": 0}], ids=str)
def test_nothing_is_tried_again_unless_the_suite_says_so(tmp_path: Path, retry: dict[str, Any]) -> None:
    bench = Bench(tmp_path, retry)
    Scripted.steps = [busy()]

    assert status(bench.run()) == "error"
    assert bench.numbers() == [1]


def test_retries_of_one_case_are_not_those_of_another(tmp_path: Path) -> None:
    scripts = dict.fromkeys(("a", "b"), ("t", "right"))
    bench = Bench(tmp_path, {"infrastructure": 1, "backoff_seconds": 0}, scripts=scripts)
    Scripted.steps = [busy("first a"), busy("second"), busy("third")]

    outcome = bench.run()

    attempts = sorted((data["case"], data["attempt"]) for data in bench.events("TRIAL_ATTEMPT"))
    assert attempts == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert sorted(case.status for case in outcome.report.cases) == ["error", "pass"]


def test_interrupt_while_a_retry_waits_leaves_a_run_that_goes_on_with_the_next_number(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LATER)
    Scripted.steps = [busy()]

    bench.interrupt_in_backoff()
    assert bench.events("RUN_INTERRUPTED") == [{"canceled": [], "waiting": 1}]
    assert not bench.run_directory.manifest.exists()
    outcome = bench.resume()

    assert status(outcome) == "pass"
    assert bench.numbers() == [1, 2]
    assert bench.rows() == [(1, "error", False), (2, "pass", True)]


def test_retries_that_were_used_before_an_interrupt_count_after_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LATER)
    Scripted.steps = [busy("first"), busy("second")]

    bench.interrupt_in_backoff()
    outcome = bench.resume()

    assert status(outcome) == "error"
    assert bench.numbers() == [1, 2]
    assert bench.record("runner.json")["error"]["message"] == "second"


class Crash(BaseException):
    """The end of a coordinator that writes nothing more."""


@pytest.mark.parametrize("after", ["TRIAL_ATTEMPT", "TRIAL_RETRIED"])
def test_crash_at_any_moment_of_a_retry_neither_reuses_a_number_nor_forgets_a_row(tmp_path: Path, after: str) -> None:
    bench = Bench(tmp_path, LATER)
    crashes = [True]

    class Crashing(Losing):
        def poll(self, timeout: float) -> Sequence[Outcome]:
            if crashes and after.encode() in bench.run_directory.ledger.read_bytes():
                raise Crash
            return super().poll(timeout)

    Losing.losses = [True]
    with installed("queue", "crashing", Crashing, distribution="test-crashing"):
        with pytest.raises(Crash):
            bench.run(queue="crashing")
        crashes.clear()
        outcome = bench.resume(queue="crashing")

    assert status(outcome) == "pass"
    assert bench.numbers() == [1, 2]
    known = [(1, "error", False)] if after == "TRIAL_RETRIED" else []
    assert bench.rows() == [*known, (2, "pass", True)]


def test_manifest_is_that_of_a_run_that_needed_no_retry(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    scripts = {"one": (KILLING.format(flag=flag), "right"), "two": ("printf right", "right")}
    bench = Bench(tmp_path, runner={"argv": ["/bin/sh", "$EVALWRIGHT_TASK_FILE"]}, scripts=scripts)
    bench.run()
    whole = bench.run_directory.manifest.read_bytes()
    bench.run_directory.path.rename(bench.layout.runs / "whole")
    flag.unlink()

    bench.run()

    assert bench.numbers("TRIAL_RETRIED") == [1]
    assert bench.run_directory.manifest.read_bytes() == whole


def test_nothing_of_a_spoiled_attempt_is_left_on_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LATER)
    Scripted.steps = [busy()]

    bench.interrupt_in_backoff()

    assert list(bench.run_directory.attempts.iterdir()) == []
    assert list(bench.run_directory.cases.iterdir()) == []


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({"infrastructure": -1}, "retry.infrastructure"),
        ({"infrastructure": "2"}, "retry.infrastructure"),
        ({"infrastructure": 1.5}, "retry.infrastructure"),
        ({"infrastructure": True}, "retry.infrastructure"),
        ({"infrastructure": 101}, "retry.infrastructure"),
        ({"backoff_seconds": -0.5}, "retry.backoff_seconds"),
        ({"backoff_seconds": "1"}, "retry.backoff_seconds"),
        ({"backoff_seconds": None}, "retry.backoff_seconds"),
        ([], "retry"),
        (3, "retry"),
        (None, "retry"),
    ],
    ids=str,
)
def test_wrong_retry_table_is_refused_with_its_place(project: Project, table: Any, key: str) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": "x"}}], retry=table)

    answer = project.call("validate", "demo", "--json")

    assert answer.exit_code == 1
    (error,) = answer.envelope["errors"]
    assert (error["code"], error["key"]) == ("E_SCHEMA_VIOLATION", key)
    assert error["file"].endswith("suite.json")
    assert error["line"] >= 1
