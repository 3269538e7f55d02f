"""Experiments: the plan is on record before anything runs, passes go in turn, a stop loses nothing, and nothing mixes."""

from __future__ import annotations

import json
import os
import resource
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.coordinate.test_queues import Crash, Inline, ignored

from evalwright.coordinate import (
    ExperimentOutcome,
    Extension,
    RunRequest,
    Stop,
    check_arms,
    resume_experiment,
    resume_run,
    run_experiment,
    take_look,
)
from evalwright.errors import CostLimit, Interrupted, RunBusy, RunConflict, SuiteError, UsageError
from evalwright.hooks import Observers
from evalwright.interfaces import Job, Queue, Runner, RunnerContext
from evalwright.ledger import read_events
from evalwright.model import Completed, RunnerResult, TrialView, Usage
from evalwright.report import read_experiment
from evalwright.rundir import read_object
from evalwright.rundir.experiment import ExperimentRecord
from evalwright.settings import Settings
from evalwright.suite import load_suite
from evalwright.testing import SmallProject, installed

PRICE = 1.0


class Priced(Runner[Any]):
    """Answers its task, or nothing when it is a bad one, and says what that cost."""

    api = "runner/1.0"

    class Config(BaseModel):
        good: bool = True
        cost: float | None = PRICE

    def __init__(self, config: Config, host: Any) -> None:
        super().__init__(config, host)
        self.config = config

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        usage = None if self.config.cost is None else Usage(cost=self.config.cost)
        output = trial.task if self.config.good else "no idea"
        return RunnerResult(completed=Completed(exit_code=0), output=output, usage=usage)


class Lab:
    """A suite with the arms ``good`` and ``bad``, run and resumed in this process."""

    def __init__(self, place: Path, cases: Sequence[str] = ("a", "b", "c"), **document: Any) -> None:
        scripts = {case: (f"task {case}", f"task {case}") for case in cases}
        keys: dict[str, Any] = {"arms": {"good": {}, "bad": {"runner": {"good": False}}}} | document
        self.project = SmallProject(place, scripts, runner={"use": "priced"}, **keys)
        self.layout = self.project.layout
        self.warnings: list[str] = []
        self.stop = Stop()
        self.origins: dict[str, str] = {}

    @property
    def record(self) -> ExperimentRecord:
        return ExperimentRecord(self.layout.experiment("x"))

    def run(self, queue: type[Queue[Any]] = Inline, *, jobs: int = 2, **wanted: Any) -> ExperimentOutcome:
        with self.plugins(queue):
            checked = load_suite(self.project.suite)
            request = RunRequest(
                checked=checked,
                layout=self.layout,
                settings=self.settings(jobs),
                run_id="x",
                arms=list(checked.suite.arms),
                repeats=2,
            )
            request = replace(request, **wanted)
            return run_experiment(request, stop=self.stop, observers=silent, warn=self.warn)

    def resume(self, queue: type[Queue[Any]] = Inline, **wanted: Any) -> ExperimentOutcome:
        with self.plugins(queue):
            return resume_experiment(
                "x",
                self.layout,
                self.settings(2),
                extension=Extension(**wanted),
                stop=Stop(),
                observers=silent,
                warn=self.warn,
                environment={},
            )

    def plugins(self, queue: type[Queue[Any]]) -> Any:
        return installed("queue", "under-test", queue, distribution="test-queue")

    def settings(self, jobs: int) -> Settings:
        return Settings(evals=self.layout.evals, jobs=jobs, queue="under-test", origins=self.origins)

    def warn(self, code: str, message: str) -> None:
        self.warnings.append(code)

    def done(self) -> Counter[str]:
        """Return how many trials of each arm are on record as finished."""
        return Counter(trial.arm for trial in read_experiment(self.layout, "x").trials)


def silent(complain: Any) -> Observers:
    return Observers((), complain)


@pytest.fixture(autouse=True)
def runner() -> Iterator[None]:
    with installed("runner", "priced", Priced, distribution="test-priced"):
        yield


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def recording() -> type[Inline]:
    """Return a queue class with a list of its own."""
    return type("Recording", (Inline,), {"calls": []})


def test_an_experiment_is_one_run_per_arm_and_repeat_with_its_plan_on_record(lab: Lab) -> None:
    outcome = lab.run()

    assert [run.report.run_id for run in outcome.runs] == ["x.good.1", "x.bad.1", "x.good.2", "x.bad.2"]
    assert [run.report.counts["pass"] for run in outcome.runs] == [3, 0, 3, 0]
    assert outcome.data["totals"]["passed"] == 6
    assert outcome.data["report_hash"] is None
    assert [cell.run_id for cell in lab.record.cells()] == [run.report.run_id for run in outcome.runs]
    assert set(lab.record.document["arms"]) == {"good", "bad"}
    assert not lab.record.queue.exists()
    records = [read_object(run.run.run_json) for run in outcome.runs]
    assert [(r["experiment"]["arm"], r["experiment"]["repeat"]) for r in records] == [
        ("good", 1),
        ("bad", 1),
        ("good", 2),
        ("bad", 2),
    ]
    assert len({r["suite_identity"]["suite_hash"] for r in records}) == 1
    assert len({r["suite_identity"]["arm_digest"] for r in records}) == 2


def test_passes_go_one_after_the_other_and_arms_take_turns_within_them(lab: Lab) -> None:
    queue = recording()

    lab.run(queue, jobs=1)

    keys = [call.removeprefix("submit ").split("/")[:2] for call in queue.calls]
    passes = [run.rpartition(".")[2] for run, _ in keys]
    assert passes == sorted(passes)
    pairs = list(zip(keys[::2], keys[1::2], strict=True))
    assert all(first[1] == second[1] and first[0] != second[0] for first, second in pairs)
    assert len({first[0].split(".")[1] for first, _ in pairs}) == 2


def test_stopped_experiment_is_a_smaller_whole_one_and_goes_on(lab: Lab) -> None:
    class Stopping(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            super().submit(jobs)
            if any("/c/" in job.key for job in jobs):
                lab.stop.request()

    with pytest.raises(Interrupted, match="12 trials are kept"):
        lab.run(Stopping, jobs=1)
    done = lab.done()
    assert abs(done["good"] - done["bad"]) <= 1
    assert 0 < done.total() < 12

    outcome = lab.resume()

    assert [run.report.counts["pass"] for run in outcome.runs] == [3, 0, 3, 0]
    attempts = Counter(
        (run.report.run_id, event["data"]["case"])
        for run in outcome.runs
        for event in read_events(run.run.ledger)
        if event["type"] == "TRIAL_FINISHED"
    )
    assert set(attempts.values()) == {1}


@pytest.mark.parametrize("survivors", [0, 1, 3])
def test_crash_between_two_runs_loses_no_plan(lab: Lab, survivors: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import evalwright.coordinate.run as module

    made: list[str] = []
    real = module.create_run

    def dying(*arguments: Any) -> Any:
        if len(made) == survivors:
            raise Crash
        made.append(arguments[4])
        return real(*arguments)

    monkeypatch.setattr(module, "create_run", dying)
    with pytest.raises(Crash):
        lab.run()
    monkeypatch.undo()
    assert len(lab.record.cells()) == 4
    if not survivors:
        assert [run.report.counts["pass"] for run in lab.run().runs] == [3, 0, 3, 0]
        return

    outcome = lab.resume()

    assert [run.report.counts["pass"] for run in outcome.runs] == [3, 0, 3, 0]
    links = [event["data"]["run"] for event in lab.record.events() if event["type"] == "RUN_LINKED"]
    assert sorted(links) == sorted(run.report.run_id for run in outcome.runs)


@pytest.mark.parametrize(("origin", "jobs"), [("default", 1), ("evalwright.toml", 1), ("command line", 2)])
def test_resume_goes_on_with_as_many_jobs_as_the_run_unless_others_are_asked_for(lab: Lab, origin: str, jobs: int) -> None:
    lab.run(arms=["good"], repeats=1, jobs=1)
    lab.origins = {"jobs": origin}

    outcome = lab.resume(repeats=2)

    records = [read_object(run.run.run_json)["execution"]["jobs"] for run in outcome.runs]
    assert records == [1, jobs]


def test_look_at_no_trials_spends_nothing(lab: Lab) -> None:
    lab.run()
    whole = read_experiment(lab.layout, "x")
    begun = replace(whole, runs=[replace(run, trials=[]) for run in whole.runs])

    assert [take_look(lab.layout, view, "pass_rate") for view in (begun, whole)] == [1, 1]
    assert read_experiment(lab.layout, "x").looked == [("pass_rate", 12)]


def test_repeats_and_arms_can_be_added_later_from_the_suite_as_it_was(lab: Lab) -> None:
    lab.run(arms=["good"], repeats=1)
    document = json.loads((lab.project.suite / "suite.json").read_text())
    (lab.project.suite / "suite.json").write_text(json.dumps(document | {"repeats": 9}))
    (lab.project.suite / "fixtures" / "w" / "a.txt").write_text("changed since")

    outcome = lab.resume(repeats=2, arms=["bad"])

    assert [run.report.run_id for run in outcome.runs] == ["x", "x.bad.1", "x.good.2", "x.bad.2"]
    assert [run.report.counts["pass"] for run in outcome.runs] == [3, 0, 3, 0]
    assert [run.existing for run in outcome.runs] == [True, False, False, False]
    identities = [read_object(run.run.run_json)["suite_identity"] for run in outcome.runs]
    assert len({identity["fixtures_hash"] for identity in identities}) == 1
    assert set(lab.record.arms()) == {"good", "bad"}
    assert lab.resume().existing


def test_the_same_request_again_executes_nothing(lab: Lab) -> None:
    first = lab.run()
    queue = recording()

    again = lab.run(queue)

    assert again.existing
    assert again.data["totals"] == first.data["totals"]
    assert queue.calls == []


@pytest.mark.parametrize("wanted", [{"repeats": 3}, {"arms": ["good"]}, {"arms": ["good"], "repeats": 1}])
def test_other_arms_or_repeats_under_the_same_id_are_a_conflict(lab: Lab, wanted: Mapping[str, Any]) -> None:
    lab.run()

    with pytest.raises(RunConflict, match="other arms or repeats"):
        lab.run(**wanted)


def test_another_suite_under_the_same_id_is_a_conflict(lab: Lab) -> None:
    lab.run()
    (lab.project.suite / "fixtures" / "w" / "a.txt").write_text("another")

    with pytest.raises(RunConflict, match="fixtures_hash"):
        lab.run()


def test_unfinished_experiment_is_busy_and_names_what_resumes_it(lab: Lab) -> None:
    class Dying(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            raise Crash

    with pytest.raises(Crash):
        lab.run(Dying)

    with pytest.raises(RunBusy) as caught:
        lab.run()

    assert "run --resume x" in str(caught.value.hint)


@pytest.mark.parametrize("force", [False, True])
def test_runs_of_other_plugin_versions_are_not_mixed_unless_forced(lab: Lab, force: bool) -> None:
    lab.run(repeats=1)
    path = lab.record.directory / "experiment.json"
    document = json.loads(path.read_text())
    for arm in document["arms"].values():
        arm["plugin_lock"] = "sha256:another"
    path.write_text(json.dumps(document))

    if force:
        lab.resume(repeats=2, force=True)
        assert "W_PLUGIN_DRIFT" in lab.warnings
    else:
        with pytest.raises(RunConflict, match="other versions"):
            lab.resume(repeats=2)


@pytest.mark.parametrize("jobs", [1, 4])
def test_cost_limit_stops_within_one_trial_and_goes_on_after_it_is_raised(lab: Lab, jobs: int) -> None:
    with pytest.raises(CostLimit) as caught:
        lab.run(jobs=jobs, max_cost=4.5 * PRICE)
    assert caught.value.exit_code == 4
    assert 4.5 * PRICE <= lab.done().total() * PRICE <= 5.5 * PRICE
    assert "--max-cost" in str(caught.value.hint)
    with pytest.raises(CostLimit):
        lab.resume(max_cost=4.5 * PRICE)

    outcome = lab.resume(max_cost=100 * PRICE)

    assert [run.report.counts["pass"] for run in outcome.runs] == [3, 0, 3, 0]


def test_cost_limit_without_known_costs_stops_nothing(tmp_path: Path) -> None:
    lab = Lab(tmp_path, arms={"mute": {"runner": {"cost": None}}})

    assert lab.run(max_cost=0.1).runs[0].report.counts["pass"] == 3
    assert "W_USAGE_UNKNOWN" in lab.warnings


def test_cost_limit_holds_until_another_is_given(lab: Lab) -> None:
    with pytest.raises(CostLimit):
        lab.run(max_cost=4.5 * PRICE)
    with pytest.raises(CostLimit):
        lab.resume()
    with pytest.raises(CostLimit):
        lab.resume(max_cost=6.5 * PRICE)
    done = lab.done().total()

    with pytest.raises(CostLimit):
        lab.resume()

    assert lab.done().total() == done >= 7
    assert read_experiment(lab.layout, "x").max_cost == 6.5 * PRICE


def test_cost_limit_of_an_experiment_holds_for_one_of_its_runs(lab: Lab) -> None:
    with pytest.raises(CostLimit):
        lab.run(max_cost=4.5 * PRICE)
    done = lab.done()

    with pytest.raises(CostLimit), lab.plugins(Inline):
        resume_run(
            lab.layout.run("x.good.2"),
            lab.layout,
            lab.settings(1),
            stop=Stop(),
            observers=silent,
            warn=lab.warn,
            environment={},
        )

    assert lab.done() == done


def test_jobs_of_all_runs_share_one_width(lab: Lab) -> None:
    class Narrow(Inline):
        flying = 0
        most = 0

        def submit(self, jobs: Sequence[Job]) -> None:
            Narrow.flying += len(jobs)
            Narrow.most = max(Narrow.most, Narrow.flying)
            super().submit(jobs)

        def poll(self, timeout: float) -> Any:
            outcomes = super().poll(timeout)
            Narrow.flying -= len(outcomes)
            return outcomes

        def cancel(self, keys: Collection[str]) -> None:
            raise AssertionError(keys)

    lab.run(Narrow, jobs=3)

    assert Narrow.most == 3


def test_an_arm_that_the_suite_does_not_have_is_refused_with_the_nearest(lab: Lab) -> None:
    with lab.plugins(Inline), pytest.raises(UsageError, match="no arm") as caught:
        check_arms(load_suite(lab.project.suite).suite, ["goood"])

    assert "good" in str(caught.value.hint)


def test_arms_merge_key_by_key_and_replace_lists(tmp_path: Path) -> None:
    project = SmallProject(
        tmp_path,
        runner={"argv": ["a", "b"], "env": {"A": "1", "B": "2"}, "timeout_seconds": 7},
        arms={
            "env": {"runner": {"env": {"B": "3"}}},
            "argv": {"runner": {"argv": ["c"]}, "sandbox": "bubblewrap"},
            "other": {"runner": {"use": "priced"}},
        },
    )

    arms = load_suite(project.suite).suite.arms

    assert arms["env"].agent.env == {"A": "1", "B": "3"}
    assert arms["env"].runner.config["argv"] == ["a", "b"]
    assert arms["argv"].runner.config["argv"] == ["c"]
    assert (arms["argv"].sandbox.use, arms["env"].sandbox.use) == ("bubblewrap", "subprocess")
    assert (arms["other"].runner.use, dict(arms["other"].runner.config)) == ("priced", {})
    assert arms["other"].agent.timeout == 7


def test_every_problem_of_every_arm_is_told_with_its_place(tmp_path: Path) -> None:
    arms = {
        "bad name": {},
        "a": {"runner": {"timeout_second": 3}},
        "b": {"sandbox": {"use": "bubblewrap", "network": "of"}},
        "c": {"sandbox": {"use": "nowhere"}},
    }
    with pytest.raises(SuiteError) as caught:
        load_suite(SmallProject(tmp_path, arms=arms).suite)
    messages = "\n".join(record["message"] for record in caught.value.problems)
    assert "'bad name' cannot name an arm" in messages

    del arms["bad name"]
    with pytest.raises(SuiteError) as caught:
        load_suite(SmallProject(tmp_path / "again", arms=arms).suite)
    messages = "\n".join(record["message"] for record in caught.value.problems)
    assert all(place in messages for place in ("arms.a.runner.timeout_second", "arms.b.sandbox.network", "arms.c.sandbox"))


def test_problem_of_the_suites_own_runner_is_told_once(tmp_path: Path) -> None:
    project = SmallProject(tmp_path, runner={"argv": ["x"], "timeout_seconds": -1}, arms={"a": {}, "b": {}})

    with pytest.raises(SuiteError) as caught:
        load_suite(project.suite)

    assert len(caught.value.problems) == 1


def test_arms_of_a_pass_get_the_same_seed_and_passes_different_ones(lab: Lab) -> None:
    seen: dict[str, int] = {}

    class Looking(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            seen.update({job.key: json.loads(job.spec)["seed"] for job in jobs})
            super().submit(jobs)

    lab.run(Looking)

    assert seen["x.good.1/a/1"] == seen["x.bad.1/a/1"] != seen["x.good.2/a/1"]
    assert len(set(seen.values())) == 6


def test_moved_settings_do_not_change_what_a_resume_measures(lab: Lab) -> None:
    outcome = lab.run(arms=["good"], repeats=1)
    settings = lab.settings(1)._replace(timeout=3.0, origins={"timeout": "EVALWRIGHT_TIMEOUT"})

    with lab.plugins(Inline):
        resume_experiment(
            "x",
            lab.layout,
            settings,
            extension=Extension(repeats=2),
            stop=Stop(),
            observers=silent,
            warn=ignored,
            environment={},
        )

    digests = {read_object(lab.layout.run(name).run_json)["suite_identity"]["arm_digest"] for name in ("x", "x.good.2")}
    assert outcome.runs[0].report.ok
    assert len(digests) == 1


@pytest.fixture
def open_files() -> Iterator[Callable[[int, int], None]]:
    """Return what sets how many files this process may open, now and at most."""
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda soft, hard: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, former)


def test_more_runs_than_open_files_are_carried_out(lab: Lab, open_files: Callable[[int, int], None]) -> None:
    used = max(map(int, os.listdir("/proc/self/fd")))
    open_files(used + 30, resource.getrlimit(resource.RLIMIT_NOFILE)[1])

    outcome = lab.run(repeats=10)

    assert len(outcome.runs) == 20


def test_runs_that_the_machine_cannot_open_are_refused_before_anything_is_made(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.run(repeats=1)
    planned = lab.record.runs()

    def few(_: int) -> tuple[int, int]:
        return 1024, 4096

    monkeypatch.setattr(resource, "getrlimit", few)

    with pytest.raises(UsageError, match="open files"):
        lab.run(repeats=1000, run_id="y")
    with pytest.raises(UsageError, match="open files"):
        lab.resume(repeats=1000)

    assert lab.record.runs() == planned
    assert not ExperimentRecord(lab.layout.experiment("y")).exists()


def test_queue_that_a_crash_at_the_very_end_left_is_removed(lab: Lab) -> None:
    finished = lab.run()
    (lab.record.queue / "jobs").mkdir(parents=True)

    again = lab.resume()

    assert not lab.record.queue.exists()
    assert [run.report.content_hash for run in again.runs] == [run.report.content_hash for run in finished.runs]
