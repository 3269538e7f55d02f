"""Every check of the queue contract fails on a queue that is broken in that way; chaos really is chaos."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.interfaces import Deadline, Host, Job, Outcome, Queue
from evalwright.testing import ChaosConfig, ChaosQueue, QueueContract, SmallProject, installed
from evalwright.worker import execute, shut_down


class ThreadQueue(Queue[None]):
    """An honest queue, one thread per job; subclasses break it."""

    api = "queue/1.0"

    def __init__(self, config: None = None, host: Host | None = None) -> None:
        super().__init__(config, host)  # type: ignore[arg-type]  # it never asks its host
        self.ended: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        self.known: set[str] = set()
        self.canceled: set[str] = set()
        self.lock = threading.Lock()

    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            with self.lock:
                fresh = job.key not in self.known
                self.known.add(job.key)
            if fresh:
                self.begin(job)

    def begin(self, job: Job) -> None:
        threading.Thread(target=self.carry_out, args=(job,), daemon=True).start()

    def carry_out(self, job: Job) -> None:
        beat: Callable[[], Any] = lambda: "cancel" if job.key in self.canceled else "continue"  # noqa: E731  # short
        try:
            result = execute(job.spec, store=None, bundle=job.bundle, beat=beat)
        except Exception as error:
            self.ended.put(Outcome(key=job.key, ended="lost", worker="w", reason=str(error)))
        else:
            ended: Any = "canceled" if job.key in self.canceled else "done"
            self.ended.put(Outcome(key=job.key, ended=ended, worker="w", result=result))

    def poll(self, timeout: float) -> Sequence[Outcome]:
        try:
            return [self.ended.get(timeout=timeout)]
        except queue.Empty:
            return []

    def cancel(self, keys: Collection[str]) -> None:
        self.canceled.update(keys)

    def close(self, deadline: Deadline) -> None:
        self.canceled.update(self.known)


class TestThreadQueue(QueueContract):
    def make(self, host: Host) -> ThreadQueue:
        return ThreadQueue(None, host)


class TellingTwice(ThreadQueue):
    def poll(self, timeout: float) -> Sequence[Outcome]:
        return [*super().poll(timeout)] * 2


class RunningTwice(ThreadQueue):
    def submit(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            self.begin(job)


class SilentWhenCanceled(ThreadQueue):
    def poll(self, timeout: float) -> Sequence[Outcome]:
        return [replace(outcome, ended="done") for outcome in super().poll(timeout)]


class SayingNoReason(ThreadQueue):
    def poll(self, timeout: float) -> Sequence[Outcome]:
        return [replace(outcome, reason=None) for outcome in super().poll(timeout)]


class PollingForEver(ThreadQueue):
    def poll(self, timeout: float) -> Sequence[Outcome]:
        return super().poll(timeout + 60)


class LosingTheFirstOfThreads(ThreadQueue):
    """Holds its jobs in a shared place while another thread may write there."""

    waiting: tuple[Job, ...] = ()

    def submit(self, jobs: Sequence[Job]) -> None:
        self.waiting = tuple(jobs)
        threading.Event().wait(0.05)
        super().submit(self.waiting)


class FailingEveryTrial(ThreadQueue):
    def begin(self, job: Job) -> None:
        self.ended.put(Outcome(key=job.key, ended="lost", worker="w", reason="no worker"))


class RefusingToRepeat(ThreadQueue):
    """Takes a job that comes again for a mistake, and answers for it a second time."""

    def submit(self, jobs: Sequence[Job]) -> None:
        fresh = dict.fromkeys(job.key for job in jobs if job.key not in self.known)
        for job in jobs:
            if fresh.pop(job.key, job) is job:
                self.ended.put(Outcome(key=job.key, ended="refused", worker="w", reason="submitted before"))
        super().submit(jobs)


class Forgetful(ThreadQueue):
    capabilities = frozenset({"durable"})


BROKEN: list[tuple[str, type[ThreadQueue]]] = [
    ("test_every_job_gives_one_outcome", TellingTwice),
    ("test_every_job_gives_one_outcome", FailingEveryTrial),
    ("test_same_key_twice_is_one_job", RunningTwice),
    ("test_canceled_job_still_gives_an_outcome", SilentWhenCanceled),
    ("test_job_that_cannot_be_done_gives_a_reason", SayingNoReason),
    ("test_poll_keeps_its_timeout", PollingForEver),
    ("test_eight_threads_submit_at_once", LosingTheFirstOfThreads),
    ("test_run_has_the_same_report_as_with_the_local_queue", FailingEveryTrial),
    ("test_one_outcome_counts_per_trial_in_chaos", RefusingToRepeat),
    ("test_durable_jobs_are_found_again", Forgetful),
]


@pytest.mark.parametrize(("check", "cls"), BROKEN, ids=[f"{check}-{cls.__name__}" for check, cls in BROKEN])
def test_check_fails_on_its_broken_queue(check: str, cls: type[ThreadQueue], prove: Any) -> None:
    class Broken(QueueContract):
        seconds = 3.0

        def make(self, host: Host) -> ThreadQueue:
            return cls(None, host)

    prove(Broken, check)


def test_every_check_has_a_broken_queue(checks: Any) -> None:
    assert checks(QueueContract) == {check for check, _ in BROKEN}


def test_chaos_queue_doubles_reorders_and_loses(tmp_path: Path) -> None:
    class Counting(ThreadQueue):
        def begin(self, job: Job) -> None:
            self.ended.put(Outcome(key=job.key, ended="done", worker="w"))

    inner = Counting()
    delivered: list[str] = []
    chaos = ChaosQueue(ChaosConfig(seed=1), inner=inner)
    keys = [f"run/{number}/1" for number in range(20)]
    chaos.submit([Job(key=key, spec=b"") for key in keys])
    assert len(inner.known) < len(keys)
    while len(delivered) < 2 * len(keys):
        delivered += [outcome.key for outcome in chaos.poll(1.0)]
    assert sorted(delivered) == sorted(keys * 2)
    assert delivered != sorted(delivered)


def test_chaos_queue_is_chosen_by_name(tmp_path: Path) -> None:
    with installed("queue", "chaos", ChaosQueue):
        outcome = SmallProject(tmp_path).run(queue="chaos")
    shut_down()
    assert outcome.report.counts["error"] == 0
