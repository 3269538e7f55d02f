"""The engine and its queue: what is written before what, which outcome counts, and what a dead coordinator's jobs become."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from evalwright.coordinate import RunOutcome, RunRequest, Stop, resume_run, run_suite
from evalwright.errors import WorkerRefused
from evalwright.hooks import Observers
from evalwright.hookspecs import hookimpl
from evalwright.interfaces import Job, Outcome, Queue, QueueRun, Runner, RunnerContext, Store
from evalwright.ledger import read_events
from evalwright.model import Completed, RunnerResult, TrialView, Usage
from evalwright.rundir import BundleWriter
from evalwright.settings import Settings
from evalwright.store import DirectoryStore
from evalwright.suite import load_suite
from evalwright.testing import SmallProject, installed, within
from evalwright.testing._detached_queue import PlainStore
from evalwright.worker import attempt

PATIENCE_SECONDS = 60.0
AGAIN = {"infrastructure": 1, "backoff_seconds": 0}


class Echo(Runner[None]):
    """Starts no process and answers its task."""

    api = "runner/1.0"

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        return RunnerResult(completed=Completed(exit_code=0), output=trial.task, usage=Usage(input=7, turns=1))


class Crash(BaseException):
    """The end of a coordinator that writes nothing more."""


class Inline(Queue[None]):
    """Carries a job out when it is submitted and tells of it when it is polled. Subclasses change what happens."""

    api = "queue/1.0"
    calls: ClassVar[list[str]] = []

    def __init__(self, config: None, host: Any) -> None:
        super().__init__(config, host)
        self.news: list[Outcome] = []

    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.calls.append(f"submit {job.key}")
            self.news.append(self.outcome(job))

    def outcome(self, job: Job) -> Outcome:
        return attempt(job, worker="inline", beat=lambda: "continue", store=self.store())

    def poll(self, timeout: float) -> Sequence[Outcome]:
        found, self.news = self.news, []
        return found

    def cancel(self, keys: Collection[str]) -> None:
        self.calls.extend(f"cancel {key}" for key in sorted(keys))


class Heard:
    """An observer that notes which trials it was told of."""

    def __init__(self) -> None:
        self.finished: list[str] = []

    @hookimpl
    def trial_finished(self, case: str, status: str) -> None:
        self.finished.append(f"{case} {status}")


class Bench:
    """A suite whose cases answer their own names; runs and resumes it in this process with a given queue class."""

    def __init__(self, place: Path, cases: Sequence[str] = ("a", "b"), **document: Any) -> None:
        scripts = {case: (f"task {case}", f"task {case}") for case in cases}
        self.layout = SmallProject(place, scripts, runner={"use": "echo-task"}, **document).layout
        self.run_directory = self.layout.run("r")
        self.heard = Heard()
        self.width = 2

    def run(self, queue: type[Queue[Any]]) -> RunOutcome:
        with installed("queue", "under-test", queue, distribution="test-queue"):
            request = RunRequest(
                checked=load_suite(self.layout.suites / "demo"), layout=self.layout, settings=self.settings(), run_id="r"
            )
            go = partial(run_suite, request, stop=Stop(), observers=self.observers, warn=ignored)
            return within(PATIENCE_SECONDS, go, "the run")

    def resume(self, queue: type[Queue[Any]]) -> RunOutcome:
        with installed("queue", "under-test", queue, distribution="test-queue"):
            go = partial(resume_run, self.run_directory, self.layout, self.settings(), stop=Stop(), environment={})
            return within(PATIENCE_SECONDS, lambda: go(observers=self.observers, warn=ignored), "the resumed run")

    def settings(self) -> Settings:
        return Settings(evals=self.layout.evals, jobs=self.width, queue="under-test")

    def observers(self, complain: Any) -> Observers:
        return Observers([("heard", self.heard)], complain)

    def events(self, *types: str) -> list[dict[str, Any]]:
        return [event for event in read_events(self.run_directory.ledger) if event["type"] in types]

    def data(self, type: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.events(type)]

    def attempts(self) -> list[tuple[str, int]]:
        return [(data["case"], data["attempt"]) for data in self.data("TRIAL_ATTEMPT")]

    def record(self, case: str, name: str) -> Any:
        return json.loads((self.run_directory.case(case) / name).read_bytes())


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


def statuses(outcome: RunOutcome) -> dict[str, str]:
    return {case.id: case.status for case in outcome.report.cases}


@pytest.fixture(autouse=True, scope="module")
def runner() -> Iterator[None]:
    with installed("runner", "echo-task", Echo, distribution="test-echo"):
        yield


@pytest.fixture(autouse=True)
def calls() -> Iterator[list[str]]:
    """Return what was asked of the queues of a test."""
    Inline.calls.clear()
    yield Inline.calls
    Inline.calls.clear()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_attempt_is_in_the_ledger_before_its_job_is_submitted(bench: Bench) -> None:
    known: dict[str, list[tuple[str, int]]] = {}

    class Looking(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            for job in jobs:
                known[job.key] = bench.attempts()
            super().submit(jobs)

    bench.run(Looking)

    assert known.keys() == {"r/a/1", "r/b/1"}
    assert all((key.split("/")[1], 1) in attempts for key, attempts in known.items())


def test_coordinator_that_dies_in_submit_has_counted_the_attempt(bench: Bench) -> None:
    class Dying(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            raise Crash

    with pytest.raises(Crash):
        bench.run(Dying)
    assert statuses(bench.resume(Inline)) == {"a": "pass", "b": "pass"}

    assert sorted(bench.attempts()) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def test_repeated_outcome_changes_nothing_and_adds_no_event(bench: Bench) -> None:
    class Repeating(Inline):
        told: ClassVar[list[Outcome]] = []

        def poll(self, timeout: float) -> Sequence[Outcome]:
            fresh = super().poll(timeout)
            self.told.extend(fresh)
            return [*self.told, *fresh, *self.told]

    bench.width = 1
    outcome = bench.run(Repeating)

    assert statuses(outcome) == {"a": "pass", "b": "pass"}
    types = [event["type"] for event in read_events(bench.run_directory.ledger)]
    pair = ["TRIAL_ATTEMPT", "TRIAL_FINISHED"]
    assert types == ["RUN_STARTED", *pair, *pair, "RUN_FINISHED"]
    assert bench.heard.finished == ["a pass", "b pass"]


@pytest.mark.parametrize("later", ["lost", "canceled", "refused"])
def test_first_outcome_of_an_attempt_wins_over_every_later_one(bench: Bench, later: Any) -> None:
    class Contradicting(Inline):
        def poll(self, timeout: float) -> Sequence[Outcome]:
            first = super().poll(timeout)
            return [*first, *(Outcome(key=outcome.key, ended=later, worker="w", reason="no") for outcome in first)]

    assert statuses(bench.run(Contradicting)) == {"a": "pass", "b": "pass"}
    assert len(bench.events("TRIAL_FINISHED")) == 2


def test_result_that_comes_after_the_loss_of_its_worker_was_told_does_not_count(bench: Bench) -> None:
    class Returning(Inline):
        def poll(self, timeout: float) -> Sequence[Outcome]:
            done = super().poll(timeout)
            return [*(Outcome(key=o.key, ended="lost", worker="w", reason="gone", transient=False) for o in done), *done]

    assert statuses(bench.run(Returning)) == {"a": "error", "b": "error"}
    assert len(bench.events("TRIAL_FINISHED")) == 2


def test_outcome_of_a_job_that_nobody_submitted_changes_nothing(bench: Bench) -> None:
    class Inventing(Inline):
        def poll(self, timeout: float) -> Sequence[Outcome]:
            return [Outcome(key="r/a/9", ended="lost", worker="w", reason="?"), *super().poll(timeout)]

    assert statuses(bench.run(Inventing)) == {"a": "pass", "b": "pass"}
    assert len(bench.events("TRIAL_FINISHED")) == 2


class Dropping(Inline):
    """Loses sight of its jobs with its coordinator, which dies; ``late`` keeps what they gave."""

    late: ClassVar[list[Outcome]] = []

    def poll(self, timeout: float) -> Sequence[Outcome]:
        Dropping.late = list(super().poll(timeout))
        raise Crash


def test_late_result_of_an_older_attempt_is_logged_with_what_it_cost_and_its_score_never_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["a"])
    bundle = bench.run_directory.attempt("a", 1)
    there: list[bool] = []

    class Late(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            bundle.mkdir(parents=True)
            (bundle / "late").touch()
            super().submit(jobs)

        def poll(self, timeout: float) -> Sequence[Outcome]:
            there.append(bundle.exists())
            return [*Dropping.late, *Dropping.late] if len(there) == 1 else super().poll(timeout)

    with pytest.raises(Crash):
        bench.run(Dropping)
    outcome = bench.resume(Late)

    assert statuses(outcome) == {"a": "pass"}
    assert there == [True, False]
    (late,) = bench.data("TRIAL_LATE")
    assert (late["case"], late["attempt"], late["worker"]) == ("a", 1, "inline")
    assert late["usage"]["input"] == 7
    assert [data["attempt"] for data in bench.data("TRIAL_FINISHED")] == [2]
    assert bench.record("a", "bundle.json")["attempt"] == 2
    assert bench.heard.finished == ["a pass"]


def test_refusal_stops_the_run_marks_nothing_and_the_run_is_finished_later(bench: Bench) -> None:
    class Refusing(Inline):
        def outcome(self, job: Job) -> Outcome:
            if "/b/" in job.key:
                return Outcome(key=job.key, ended="refused", worker="old-host", reason="other versions")
            return super().outcome(job)

    with pytest.raises(WorkerRefused, match="old-host refused r/b/1: other versions") as caught:
        bench.run(Refusing)

    assert (caught.value.code, caught.value.exit_code) == ("E_WORKER_REFUSED", 3)
    assert "resume" in caught.value.hint
    assert [data["status"] for data in bench.data("TRIAL_FINISHED")] in (["pass"], [])
    assert not bench.run_directory.manifest.exists()
    assert not bench.run_directory.reservation.exists()
    assert statuses(bench.resume(Inline)) == {"a": "pass", "b": "pass"}


def test_refusal_is_no_error_that_a_retry_could_mend(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["a"], retry=AGAIN)

    class Refusing(Inline):
        def outcome(self, job: Job) -> Outcome:
            return Outcome(key=job.key, ended="refused", worker="w", reason="other versions")

    with pytest.raises(WorkerRefused):
        bench.run(Refusing)
    assert bench.events("TRIAL_RETRIED", "TRIAL_FINISHED") == []


def test_job_with_another_lock_is_refused_by_the_worker_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ["a"])

    class Older(Inline):
        def outcome(self, job: Job) -> Outcome:
            return attempt(Job(key=job.key, spec=job.spec, lock="sha256:other", bundle=job.bundle), worker="w", beat=go_on)

    with pytest.raises(WorkerRefused):
        bench.run(Older)
    assert not list(bench.run_directory.attempts.iterdir())


def go_on() -> Any:
    return "continue"


class Losing(Inline):
    """Loses each job's worker the first time; the attempts after that are carried out."""

    def outcome(self, job: Job) -> Outcome:
        if job.key.endswith("/1"):
            assert job.bundle is not None
            job.bundle.mkdir(parents=True)
            (job.bundle / "half").touch()
            return Outcome(key=job.key, ended="lost", worker="w", reason="killed by signal 9")
        return super().outcome(job)


def test_lost_worker_is_an_error_of_the_harness_with_its_reason_and_whole_evidence(bench: Bench) -> None:
    outcome = bench.run(Losing)

    assert statuses(outcome) == {"a": "error", "b": "error"}
    runner = bench.record("a", "runner.json")
    assert (runner["error"]["kind"], runner["error"]["message"]) == ("worker_lost", "killed by signal 9")
    assert bench.record("a", "score.json")["fault"] == "harness"
    assert (bench.run_directory.case("a") / "runner.stderr.txt").read_text() == "killed by signal 9"
    assert not (bench.run_directory.case("a") / "half").exists()
    assert {data["fault"] for data in bench.data("TRIAL_FINISHED")} == {"harness"}


def test_lost_worker_is_replaced_where_the_suite_allows_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path, retry=AGAIN)

    assert statuses(bench.run(Losing)) == {"a": "pass", "b": "pass"}
    assert sorted(bench.attempts()) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


def damaged(bundle: Path, how: str) -> None:
    seal = bundle / "bundle.json"
    if how == "other seal":
        seal.write_text(seal.read_text().replace('"a"', '"A"'))
    elif how == "no seal":
        seal.unlink()
    else:
        bundle.rename(bundle.with_name("elsewhere"))


@pytest.mark.parametrize("how", ["other seal", "no seal", "no bundle"])
def test_bundle_that_is_not_the_one_that_was_sealed_is_an_error_and_no_pass(bench: Bench, how: str) -> None:
    class Damaging(Inline):
        def outcome(self, job: Job) -> Outcome:
            outcome = super().outcome(job)
            assert job.bundle is not None
            if "/a/" in job.key:
                damaged(job.bundle, how)
            return outcome

    assert statuses(bench.run(Damaging)) == {"a": "error", "b": "pass"}
    assert bench.record("a", "runner.json")["error"]["kind"] == "bundle_lost"
    assert bench.heard.finished == ["a error", "b pass"]


class Remote(Inline):
    """Has a store of its own, through which everything travels."""

    place: ClassVar[Path]

    def store(self) -> Store | None:
        return PlainStore(DirectoryStore(self.place))


@pytest.fixture
def remote() -> Iterator[type[Remote]]:
    with tempfile.TemporaryDirectory(prefix="evalwright-remote-") as place:
        Remote.place = Path(place)
        yield Remote


def test_evidence_that_came_through_a_store_is_that_of_a_run_beside_it(tmp_path: Path, remote: type[Remote]) -> None:
    near, far = Bench(tmp_path / "near"), Bench(tmp_path / "far")

    here, there = near.run(Inline), far.run(remote)

    assert there.report.report_hash == here.report.report_hash
    assert there.report.content_hash == here.report.content_hash
    assert not far.run_directory.attempts.exists()


@pytest.mark.parametrize("bundle", ["sha256:" + "0" * 64, "nonsense", None])
def test_bundle_that_the_store_lacks_is_an_error_and_no_pass(bench: Bench, remote: type[Remote], bundle: str | None) -> None:
    class Forgetting(Remote):
        def outcome(self, job: Job) -> Outcome:
            done = super().outcome(job)
            return Outcome(key=done.key, ended="done", worker="w", result=done.result, bundle=bundle)

    assert statuses(bench.run(Forgetting)) == {"a": "error", "b": "error"}
    assert bench.record("a", "runner.json")["error"]["kind"] == "bundle_lost"


def test_file_of_a_bundle_that_was_changed_after_its_seal_is_an_error_and_no_pass(bench: Bench, remote: type[Remote]) -> None:
    class Forging(Remote):
        def outcome(self, job: Job) -> Outcome:
            done = super().outcome(job)
            store = DirectoryStore(self.place)
            with tempfile.TemporaryDirectory() as place:
                store.restore(done.bundle or "", Path(place))
                (Path(place) / "output.txt").write_text("forged")
                tree = store.put_tree(Path(place))
            return Outcome(key=done.key, ended="done", worker="w", result=done.result, bundle=tree)

    assert statuses(bench.run(Forging)) == {"a": "error", "b": "error"}
    assert [data["error"]["kind"] for data in bench.data("TRIAL_FINISHED")] == ["bundle_lost"] * 2
    assert (bench.run_directory.case("a") / "output.txt").read_text() == ""


class Broker:
    """What survives a coordinator: jobs, who was canceled, and outcomes that were not delivered for good."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.canceled: set[str] = set()
        self.forgets = False


class Durable(Inline):
    """Keeps its jobs in a broker and carries them out only while ``working``; its coordinator dies in its first poll."""

    capabilities = frozenset({"durable"})
    broker: ClassVar[Broker] = Broker()
    working: ClassVar[bool] = False

    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.calls.append(f"submit {job.key}")
            self.broker.jobs.setdefault(job.key, job)

    def attach(self, run_id: str) -> Collection[str]:
        self.calls.append("attach")
        return {key for key in self.broker.jobs if key.startswith(f"{run_id}/")} if not self.broker.forgets else ()

    def cancel(self, keys: Collection[str]) -> None:
        super().cancel(keys)
        self.broker.canceled |= set(keys)

    def poll(self, timeout: float) -> Sequence[Outcome]:
        if not self.working:
            raise Crash
        found: list[Outcome] = []
        for key, job in list(self.broker.jobs.items()):
            del self.broker.jobs[key]
            if key in self.broker.canceled:
                self.calls.append(f"ended {key}")
                found.append(Outcome(key=key, ended="canceled", worker="w"))
            else:
                found.append(self.outcome(job))
        return found


@pytest.fixture
def durable() -> Iterator[type[Durable]]:
    Durable.broker, Durable.working = Broker(), False
    yield Durable
    Durable.broker = Broker()


def test_jobs_of_a_dead_coordinator_are_taken_over_and_not_submitted_again(
    bench: Bench, durable: type[Durable], calls: list[str]
) -> None:
    with pytest.raises(Crash):
        bench.run(durable)
    calls.clear()
    durable.working = True
    outcome = bench.resume(durable)

    assert statuses(outcome) == {"a": "pass", "b": "pass"}
    assert calls == ["attach"]
    assert bench.attempts() == [("a", 1), ("b", 1)]
    (resumed,) = bench.data("RUN_RESUMED")
    assert resumed["adopted"] == ["a", "b"]


def test_jobs_that_wait_for_room_are_submitted_beside_those_that_were_taken_over(
    tmp_path: Path, durable: type[Durable], calls: list[str]
) -> None:
    bench = Bench(tmp_path, ["a", "b", "c"])
    bench.width = 1
    with pytest.raises(Crash):
        bench.run(durable)
    calls.clear()
    durable.working = True

    assert set(statuses(bench.resume(durable)).values()) == {"pass"}
    assert calls == ["attach", "submit r/b/1", "submit r/c/1"]


def test_job_of_an_older_attempt_has_ended_before_anything_of_it_is_removed_or_submitted(
    tmp_path: Path, durable: type[Durable], calls: list[str]
) -> None:
    bench = Bench(tmp_path, ["a"])
    half = bench.run_directory.attempt("a", 1) / "half"

    class Watching(Durable):
        def poll(self, timeout: float) -> Sequence[Outcome]:
            found = super().poll(timeout)
            self.calls.extend(f"half is {'there' if half.exists() else 'gone'}" for outcome in found if outcome.key == "r/a/1")
            return found

        def outcome(self, job: Job) -> Outcome:
            self.calls.append(f"begin {job.key}, half is {'there' if half.exists() else 'gone'}")
            return super().outcome(job)

    with pytest.raises(Crash):
        bench.run(durable)
    durable.broker.forgets = True
    with pytest.raises(Crash):
        bench.resume(durable)
    del durable.broker.jobs["r/a/2"]
    durable.broker.forgets, durable.working = False, True
    half.parent.mkdir(parents=True)
    half.touch()
    calls.clear()
    outcome = bench.resume(Watching)

    assert statuses(outcome) == {"a": "pass"}
    begun = "begin r/a/3, half is gone"
    assert calls == ["attach", "cancel r/a/1", "ended r/a/1", "half is there", "submit r/a/3", begun]
    assert bench.attempts() == [("a", 1), ("a", 2), ("a", 3)]


def test_outcome_of_a_job_taken_over_that_comes_while_older_ones_end_is_not_lost(
    tmp_path: Path, durable: type[Durable], calls: list[str]
) -> None:
    bench = Bench(tmp_path, ["a"])
    with pytest.raises(Crash):
        bench.run(durable)
    durable.broker.forgets = True
    with pytest.raises(Crash):
        bench.resume(durable)
    durable.broker.forgets, durable.working = False, True
    calls.clear()
    outcome = bench.resume(durable)

    assert statuses(outcome) == {"a": "pass"}
    assert calls == ["attach", "cancel r/a/1", "ended r/a/1"]
    assert [data["attempt"] for data in bench.data("TRIAL_FINISHED")] == [2]


def test_job_taken_over_whose_worker_is_lost_is_tried_again_with_the_next_number(
    tmp_path: Path, durable: type[Durable]
) -> None:
    bench = Bench(tmp_path, ["a"], retry=AGAIN)

    class LosingFirst(Durable):
        def outcome(self, job: Job) -> Outcome:
            if job.key.endswith("/1"):
                return Outcome(key=job.key, ended="lost", worker="w", reason="gone")
            return super().outcome(job)

    with pytest.raises(Crash):
        bench.run(durable)
    durable.working = True
    outcome = bench.resume(LosingFirst)

    assert statuses(outcome) == {"a": "pass"}
    rows = bench.record("a", "runner.json")["attempts"]
    assert [(row["attempt"], row["counted"]) for row in rows] == [(1, False), (2, True)]


def test_spoiled_attempt_that_its_queue_still_knows_is_ended_and_made_again(
    tmp_path: Path, durable: type[Durable], calls: list[str]
) -> None:
    bench = Bench(tmp_path, ["a"], retry={"infrastructure": 1, "backoff_seconds": 60})

    class Telling(Durable):
        def poll(self, timeout: float) -> Sequence[Outcome]:
            if bench.events("TRIAL_RETRIED"):
                raise Crash
            return [Outcome(key=key, ended="lost", worker="w", reason="gone") for key in self.broker.jobs]

    with pytest.raises(Crash):
        bench.run(Telling)
    durable.working = True
    calls.clear()
    outcome = bench.resume(durable)

    assert statuses(outcome) == {"a": "pass"}
    assert calls == ["attach", "cancel r/a/1", "ended r/a/1", "submit r/a/2"]
    rows = bench.record("a", "runner.json")["attempts"]
    assert [(row["attempt"], row["counted"]) for row in rows] == [(1, False), (2, True)]


@pytest.mark.parametrize("width", [1, 3])
def test_no_more_jobs_are_in_flight_than_the_width_allows_and_the_queue_is_told_so(tmp_path: Path, width: int) -> None:
    bench = Bench(tmp_path, [f"c{number}" for number in range(8)], retry={"infrastructure": 2, "backoff_seconds": 0})
    bench.width = width
    told: list[int] = []
    most: list[int] = []

    class OneByOne(Inline):
        def open(self, run: QueueRun) -> None:
            told.append(run.width)

        def submit(self, jobs: Sequence[Job]) -> None:
            super().submit(jobs)
            most.append(len(self.news))

        def outcome(self, job: Job) -> Outcome:
            if job.key.endswith("/1"):
                return Outcome(key=job.key, ended="lost", worker="w", reason="gone")
            return super().outcome(job)

        def poll(self, timeout: float) -> Sequence[Outcome]:
            return [self.news.pop(0)] if self.news else []

    assert set(statuses(bench.run(OneByOne)).values()) == {"pass"}
    assert told == [width]
    assert max(most) == width


class Counted(Outcome):
    """An outcome whose life can be watched."""

    living: ClassVar[weakref.WeakSet[Outcome]] = weakref.WeakSet()


def cheap_bundle(spec: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """Write the smallest bundle that can be sealed, and return its result."""
    writer = BundleWriter(place)
    writer.write_document("input.json", {"id": spec["case_id"]})
    writer.write_document("score.json", {"status": "unscored", "scores": []})
    facts = {"case_id": spec["case_id"], "attempt": spec["attempt"], "status": "unscored", "fault": None}
    writer.seal(facts)
    return facts | {"seal": writer.digests["bundle.json"], "warnings": [], "usage": None, "duration_ms": 0, "error": None}


def test_run_of_two_thousand_trials_holds_no_more_results_than_its_width(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [f"c{number:04}" for number in range(2000)])
    bench.width = 16
    most: dict[str, int] = {"jobs": 0, "results": 0}

    class Instant(Inline):
        def outcome(self, job: Job) -> Outcome:
            assert job.bundle is not None
            result = cheap_bundle(json.loads(job.spec), job.bundle)
            outcome = Counted(key=job.key, ended="done", worker="w", result=json.dumps(result).encode())
            Counted.living.add(outcome)
            return outcome

        def poll(self, timeout: float) -> Sequence[Outcome]:
            most["jobs"] = max(most["jobs"], len(self.news))
            most["results"] = max(most["results"], len(Counted.living))
            return super().poll(timeout)

    outcome = bench.run(Instant)

    assert len(outcome.report.cases) == 2000
    assert len(Inline.calls) == 2000
    assert most["jobs"] == 16
    assert most["results"] <= 2 * 16
