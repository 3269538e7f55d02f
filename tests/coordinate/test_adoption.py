"""What a dead coordinator left: which outcome still counts after it, which does not, and what its run goes on with."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import pytest
from tests.coordinate import test_queues as queues
from tests.coordinate.test_queues import AGAIN, Crash, Inline, statuses

from evalwright.coordinate.delivery import Delivery
from evalwright.errors import DiskFull, EvalwrightError, TrialError, WorkerRefused
from evalwright.interfaces import Job, Outcome, QueueRun, Runner, RunnerContext, Store
from evalwright.model import Completed, RunnerResult, TrialView, Usage
from evalwright.rundir import changed_artifacts, sealed_digests
from evalwright.settings import Settings
from evalwright.store import DirectoryStore
from evalwright.suite.read import case_places
from evalwright.testing import FakeSandbox, installed, within
from evalwright.testing._detached_queue import PlainStore

LATER = {"infrastructure": 1, "backoff_seconds": 60}
AT_ONCE_SECONDS = 10.0


class Echo(Runner[None]):
    """Answers its task and notes it; the calls that ``spoiled`` holds errors for raise them."""

    api = "runner/1.0"
    tasks: ClassVar[list[str]] = []
    spoiled: ClassVar[list[Exception]] = []

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        self.tasks.append(trial.task)
        if self.spoiled:
            raise self.spoiled.pop(0)
        return RunnerResult(completed=Completed(exit_code=0), output=trial.task, usage=Usage(input=7, turns=1))


class Keeping(Inline):
    """Keeps jobs and outcomes beyond its coordinator's death, and tells every outcome again at every poll.

    The coordinator dies in a poll for which ``dies`` says so; it is empty again for the next one.
    """

    capabilities = frozenset({"durable"})
    dies: ClassVar[list[Callable[[], object]]] = []
    jobs: ClassVar[dict[str, Job]] = {}
    told: ClassVar[dict[str, Outcome]] = {}

    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.jobs.setdefault(job.key, job)

    def attach(self, run_id: str) -> Collection[str]:
        return {key for key in self.jobs if key.startswith(f"{run_id}/")}

    def poll(self, timeout: float) -> Sequence[Outcome]:
        if self.dies and self.dies[0]():
            self.dies.clear()
            raise Crash
        for key in self.jobs.keys() - self.told.keys():
            self.told[key] = self.outcome(self.jobs[key])
        return list(self.told.values())


class Cutting(PlainStore):
    """A store whose coordinator dies while it reads from it."""

    def open(self, digest: str) -> BinaryIO:
        if Far.cut:
            raise Crash
        return super().open(digest)


class Far(Keeping):
    """Reaches its workers and their evidence only through a store, which is ``cut`` off when the first outcome was told."""

    place: ClassVar[Path]
    cuts: ClassVar[bool] = False
    cut: ClassVar[bool] = False

    def store(self) -> Store | None:
        return Cutting(DirectoryStore(self.place))

    def poll(self, timeout: float) -> Sequence[Outcome]:
        found = super().poll(timeout)
        Far.cut = self.cuts
        return found


class Bench(queues.Bench):
    """A bench whose settings a test may choose anew before a resume."""

    choice: dict[str, Any]

    def settings(self) -> Settings:
        return Settings(evals=self.layout.evals, jobs=self.width, **getattr(self, "choice", {"queue": "under-test"}))

    def finished(self) -> list[tuple[str, int, str]]:
        return [(data["case"], data["attempt"], data["status"]) for data in self.data("TRIAL_FINISHED")]

    def rows(self, case: str) -> list[tuple[int, bool]]:
        return [(row["attempt"], row["counted"]) for row in self.record(case, "runner.json")["attempts"]]


@pytest.fixture(autouse=True, scope="module")
def runner() -> Iterator[None]:
    with installed("runner", "echo-task", Echo, distribution="test-echo"):
        yield


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    """Leave nothing of one test to the next."""
    with tempfile.TemporaryDirectory(prefix="evalwright-far-") as place:
        Far.place = Path(place)
        Far.cuts = Far.cut = False
        for shared in (Inline.calls, Keeping.dies, Keeping.jobs, Keeping.told, Echo.tasks, Echo.spoiled):
            shared.clear()
        yield


@pytest.fixture(params=[Keeping, Far])
def queue(request: pytest.FixtureRequest) -> type[Keeping]:
    """Return a durable queue: one whose workers share the disk, one with a store of its own."""
    chosen: type[Keeping] = request.param
    return chosen


def test_attempt_that_was_over_before_a_kill_in_its_backoff_is_not_adopted_but_made_again(
    tmp_path: Path, queue: type[Keeping]
) -> None:
    bench = Bench(tmp_path, ["a"], retry=LATER)
    Echo.spoiled.append(TrialError("busy", "the service is busy", transient=True))

    queue.dies.append(lambda: bench.events("TRIAL_RETRIED"))

    with pytest.raises(Crash):
        bench.run(queue)
    outcome = bench.resume(queue)

    assert statuses(outcome) == {"a": "pass"}
    assert bench.attempts() == [("a", 1), ("a", 2)]
    assert [data["adopted"] for data in bench.data("RUN_RESUMED")] == [[]]
    assert [data["attempt"] for data in bench.data("TRIAL_RETRIED")] == [1]
    assert bench.rows("a") == [(1, False), (2, True)]


def test_bundle_that_was_moved_but_not_counted_is_taken_back_and_its_trial_does_not_run_again(
    tmp_path: Path, queue: type[Keeping], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, ["a"])
    settle = Delivery.settle

    def settle_and_die(*words: Any) -> None:
        settle(*words)
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Delivery, "settle", settle_and_die)
        with pytest.raises(Crash):
            bench.run(queue)
    assert (bench.run_directory.case("a") / "bundle.json").is_file()
    assert bench.finished() == []
    outcome = bench.resume(queue)

    assert statuses(outcome) == {"a": "pass"}
    assert Echo.tasks == ["task a"]
    assert bench.attempts() == [("a", 1)]
    assert bench.finished() == [("a", 1, "pass")]
    place = bench.run_directory.case("a")
    assert changed_artifacts(place, sealed_digests(place) or {}) == []


def test_resume_goes_on_with_the_runs_own_queue_and_as_many_slots_as_are_asked_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    widths: list[int] = []

    class Telling(Keeping):
        def open(self, run: QueueRun) -> None:
            widths.append(run.width)

    Keeping.dies.append(lambda: True)
    with pytest.raises(Crash):
        bench.run(Telling)
    bench.choice = {"slots": 5, "origins": {"slots": "command line"}}
    outcome = bench.resume(Telling)

    assert statuses(outcome) == {"a": "pass", "b": "pass"}
    assert widths == [2, 5]
    assert [data["adopted"] for data in bench.data("RUN_RESUMED")] == [["a", "b"]]


def test_finished_trial_whose_bundle_was_damaged_runs_again_though_its_queue_still_offers_the_outcome(
    tmp_path: Path, queue: type[Keeping]
) -> None:
    bench = Bench(tmp_path)
    bench.width = 1
    queue.dies.append(bench.finished)

    with pytest.raises(Crash):
        bench.run(queue)
    assert bench.finished() == [("a", 1, "pass")]
    (bench.run_directory.case("a") / "bundle.json").write_text("{}")
    outcome = bench.resume(queue)

    assert statuses(outcome) == {"a": "pass", "b": "pass"}
    assert sorted(bench.attempts()) == [("a", 1), ("a", 2), ("b", 1)]
    assert sorted(Echo.tasks) == ["task a", "task a", "task b"]
    assert bench.record("a", "bundle.json")["attempt"] == 2


class Walled(FakeSandbox):
    """A sandbox that gives what no shipped one gives."""

    capabilities = frozenset({"walled"})


@pytest.mark.parametrize("requires", [[], ["walled"]], ids=["any sandbox", "only this one"])
def test_run_in_a_sandbox_that_the_suite_does_not_name_is_resumed_in_it(tmp_path: Path, requires: list[str]) -> None:
    bench = Bench(tmp_path, requires=requires)
    dead: list[bool] = []

    class Dying(Inline):
        """Forgets its jobs with its first coordinator, and has workers that compare the lock."""

        def poll(self, timeout: float) -> Sequence[Outcome]:
            if not dead:
                dead.append(True)
                raise Crash
            return super().poll(timeout)

    bench.choice = {"queue": "under-test", "sandbox": "walled", "origins": {"sandbox": "command line"}}
    with installed("sandbox", "walled", Walled, distribution="test-walled"):
        with pytest.raises(Crash):
            bench.run(Dying)
        bench.choice = {"queue": "under-test"}
        outcome = bench.resume(Dying)

    assert statuses(outcome) == {"a": "pass", "b": "pass"}


def test_bundle_of_which_a_dead_coordinator_received_a_part_is_received_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["a"])
    Far.cuts = True
    with pytest.raises(Crash):
        bench.run(Far)
    assert bench.run_directory.attempt("a", 1).is_dir()
    (bench.run_directory.attempt("a", 1) / "half").touch()
    Far.cuts = Far.cut = False
    outcome = bench.resume(Far)

    assert statuses(outcome) == {"a": "pass"}
    assert Echo.tasks == ["task a"]
    assert not (bench.run_directory.case("a") / "half").exists()
    assert bench.finished() == [("a", 1, "pass")]


@pytest.mark.parametrize(
    ("ended", "reason", "error"),
    [("refused", "other versions", WorkerRefused), ("lost", "E_DISK_FULL: no room", DiskFull)],
    ids=["refused", "disk full"],
)
def test_outcome_that_ends_the_run_ends_it_at_once_whatever_else_was_told_with_it(
    tmp_path: Path, ended: Any, reason: str, error: type[EvalwrightError]
) -> None:
    bench = Bench(tmp_path)

    class Ending(Inline):
        def outcome(self, job: Job) -> Outcome:
            done = super().outcome(job)
            return Outcome(key=job.key, ended=ended, worker="w", reason=reason) if "/a/" in job.key else done

    with pytest.raises(error):
        within(AT_ONCE_SECONDS, lambda: bench.run(Ending), "the run")

    assert bench.finished() == []
    assert statuses(bench.resume(Inline)) == {"a": "pass", "b": "pass"}


def test_result_that_comes_after_its_attempt_was_made_again_is_logged_once_with_its_cost_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, ["a"], retry=AGAIN)
    bundle = bench.run_directory.attempt("a", 1)
    there: list[bool] = []

    class Returning(Inline):
        """Takes the first worker for dead, which ends its trial while the second attempt is under way."""

        first: ClassVar[Job]

        def submit(self, jobs: Sequence[Job]) -> None:
            (job,) = jobs
            if job.key.endswith("/1"):
                Returning.first = job
                self.news.append(Outcome(key=job.key, ended="lost", worker="w", reason="gone"))
            else:
                late = self.outcome(self.first)
                self.news += [late, late, self.outcome(job)]

        def poll(self, timeout: float) -> Sequence[Outcome]:
            there.append(bundle.exists())
            return [self.news.pop(0)]

    outcome = bench.run(Returning)

    assert statuses(outcome) == {"a": "pass"}
    assert there == [False, True, False, False]
    (late,) = bench.data("TRIAL_LATE")
    assert (late["case"], late["attempt"], late["usage"]["input"]) == ("a", 1, 7)
    assert bench.finished() == [("a", 2, "pass")]
    assert bench.rows("a") == [(1, False), (2, True)]


def test_two_hundred_lost_trials_parse_all_cases_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, [f"c{number:03}" for number in range(200)], meta={"place": str(tmp_path)})
    bench.width = 16
    parsed: list[str] = []

    def counted(source: BinaryIO) -> Any:
        parsed.append(source.name)
        return case_places(source)

    class LosingAll(Inline):
        def outcome(self, job: Job) -> Outcome:
            return Outcome(key=job.key, ended="lost", worker="w", reason="gone")

    monkeypatch.setattr("evalwright.worker.gold.case_places", counted)
    outcome = bench.run(LosingAll)

    assert set(statuses(outcome).values()) == {"error"}
    assert bench.record("c199", "input.json")["task"] == "task c199"
    assert len(parsed) == 1
