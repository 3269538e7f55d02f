"""Outcomes that no careful queue would send: they change nothing, end no run, and cost nobody his evidence."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.coordinate.test_queues import Bench, Crash, Inline, runner, statuses

from evalwright.errors import DiskFull, PluginFailed
from evalwright.interfaces import Job, Outcome

__all__ = ["runner"]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, ["a", "b"])


@pytest.mark.parametrize(
    ("key", "result"),
    [
        ("other/a/1", {"status": "pass"}),
        ("r/nobody/1", {"status": "pass"}),
        ("r/a/99", {"status": "pass"}),
        ("r/a/x", {"status": "pass"}),
        ("nothing at all", {"status": "pass"}),
        ("r/a/1", ["no", "object"]),
        ("r/a/1", "no object"),
    ],
    ids=["other run", "other case", "future attempt", "no number", "no key", "list", "text"],
)
def test_outcome_of_something_else_is_passed_over(bench: Bench, key: str, result: object) -> None:
    class Confused(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            super().submit(jobs)
            odd = Outcome(key=key, ended="done", worker="w", result=json.dumps(result).encode())
            self.news = [*self.news, odd] if key.startswith("r/a/1") else [odd, *self.news]

    assert statuses(bench.run(Confused)) == {"a": "pass", "b": "pass"}
    assert not bench.events("TRIAL_LATE")


@pytest.mark.parametrize("result", [b"", b"{", b"[]", b'{"status": 1}', None], ids=repr)
def test_result_that_cannot_be_read_is_an_error_of_that_trial_alone(bench: Bench, result: bytes | None) -> None:
    class Mumbling(Inline):
        def outcome(self, job: Job) -> Outcome:
            whole = super().outcome(job)
            return replace(whole, result=result) if "/a/" in job.key else whole

    assert statuses(bench.run(Mumbling)) == {"a": "error", "b": "pass"}


def test_cost_of_a_result_that_a_resume_drops_is_on_record(bench: Bench) -> None:
    """The queue of a dead coordinator still has the result of an attempt that was lost and made again."""
    kept: list[Outcome] = []

    class Losing(Inline):
        def outcome(self, job: Job) -> Outcome:
            whole = super().outcome(job)
            if job.key != "r/a/1":
                return whole
            kept.append(whole)
            return Outcome(key=job.key, ended="lost", worker="w", reason="gone")

        def submit(self, jobs: Sequence[Job]) -> None:
            if any(job.key == "r/a/2" for job in jobs):
                raise Crash
            super().submit(jobs)

    class Keeping(Inline):
        def attach(self, run_id: str) -> set[str]:
            self.news += kept
            return {outcome.key for outcome in kept}

    bench = Bench(bench.run_directory.path.parents[2] / "again", ["a"], retry={"infrastructure": 1, "backoff_seconds": 0})
    with pytest.raises(Crash):
        bench.run(Losing)
    assert statuses(bench.resume(Keeping)) == {"a": "pass"}
    (late,) = bench.data("TRIAL_LATE")
    assert (late["case"], late["attempt"], late["usage"]["input"]) == ("a", 1, 7)


@pytest.mark.parametrize("method", ["open", "store", "submit", "poll"])
def test_defect_of_a_queue_is_told_as_its_own_and_the_run_goes_on_with_another(bench: Bench, method: str) -> None:
    def broken(self: Inline, *_: object) -> None:
        raise RuntimeError("boom")

    defective: type[Inline] = type("Defective", (Inline,), {method: broken})
    with pytest.raises(PluginFailed, match=f"{method} failed: RuntimeError: boom") as raised:
        bench.run(defective)
    assert "--queue local" in raised.value.hint
    assert statuses(bench.resume(Inline)) == {"a": "pass", "b": "pass"}


@pytest.mark.parametrize("junk", [None, ["junk"], 7], ids=repr)
def test_queue_that_returns_no_outcomes_is_told_so(bench: Bench, junk: object) -> None:
    def poll(self: Inline, timeout: float) -> object:
        return junk

    defective: type[Inline] = type("Junky", (Inline,), {"poll": poll})
    with pytest.raises(PluginFailed, match="poll failed"):
        bench.run(defective)


def test_disk_that_is_full_for_the_queue_is_full_for_the_run(bench: Bench) -> None:
    class Full(Inline):
        def submit(self, jobs: Sequence[Job]) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DiskFull):
        bench.run(Full)
    assert statuses(bench.resume(Inline)) == {"a": "pass", "b": "pass"}
