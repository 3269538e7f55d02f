"""The contract of queues."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evalwright.coordinate import RunOutcome
from evalwright.errors import WorkerRefused
from evalwright.interfaces import Deadline, Host, Job, Outcome, Queue, QueueRun, Store
from evalwright.ledger import read_events
from evalwright.rundir import RunDirectory
from evalwright.testing._contract import Contract, since
from evalwright.testing._fake_queue import ChaosConfig, ChaosQueue
from evalwright.testing._installed import installed
from evalwright.testing._project import SmallProject
from evalwright.testing._waiting import in_threads, within
from evalwright.worker import shut_down

__all__ = ["QueueContract"]

QUIET_SECONDS = 0.3
WIDTH = 8
NAME = "queue-under-contract"


class QueueContract(Contract[Queue[Any]]):
    """What every queue promises: each job gives exactly one outcome that counts. Override ``make``.

    Workers share this machine's file system.
    """

    kind = "queue"
    seconds: ClassVar[float] = 60.0
    """How long a few small trials may take."""

    def make(self, host: Host) -> Queue[Any]:
        """Return a new queue."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    @contextlib.contextmanager
    def queue(self, directory: Path | None = None) -> Generator[Queue[Any]]:
        """Give an open queue whose own directory is that one or a new one; what its workers share here is released after."""
        try:
            with tempfile.TemporaryDirectory(prefix="evalwright-queue-") as place, self.made() as queue:
                queue.open(QueueRun(run_id="direct", directory=directory or Path(place) / "queue", width=WIDTH))
                yield queue
        finally:
            shut_down()

    @since("1.0")
    def test_every_job_gives_one_outcome(self, tmp_path: Path) -> None:
        """Each key once, with the result of ``worker.execute`` and the worker's name; then nothing more."""
        with self.queue() as queue:
            jobs = SmallProject(tmp_path).jobs(remote=queue.store())
            queue.submit(jobs)
            outcomes = self._outcomes(queue, len(jobs))
        assert Counter(outcome.key for outcome in outcomes) == Counter(job.key for job in jobs)
        assert {outcome.ended for outcome in outcomes} == {"done"}, [outcome.reason for outcome in outcomes]
        assert all(outcome.result and outcome.worker for outcome in outcomes)

    @since("1.0")
    def test_same_key_twice_is_one_job(self, tmp_path: Path) -> None:
        """Submitting again, in the same call or later, neither runs the trial again nor gives another outcome."""
        traces = tmp_path / "traces"
        with self.queue() as queue:
            (job,) = SmallProject(tmp_path, {"once": (f"echo ran >> '{traces}'; printf x", "x")}).jobs(remote=queue.store())
            queue.submit([job, job])
            queue.submit([job])
            outcomes = self._outcomes(queue, 1)
            queue.submit([job])
            outcomes += queue.poll(QUIET_SECONDS)
        assert [outcome.key for outcome in outcomes] == [job.key]
        assert traces.read_text() == "ran\n", "the same job ran more than once"

    @since("1.0")
    def test_canceled_job_still_gives_an_outcome(self, tmp_path: Path) -> None:
        """``cancel`` stops a running trial; its outcome says so. Keys that nobody submitted do no harm."""
        started = tmp_path / "started"
        with self.queue() as queue:
            (job,) = SmallProject(tmp_path, {"long": (f"touch '{started}'; sleep 300", "")}).jobs(remote=queue.store())
            queue.submit([job])
            queue.cancel(["nobody/submitted/1"])
            queue.poll(QUIET_SECONDS)
            queue.cancel([job.key])
            outcomes = self._outcomes(queue, 1)
        assert [(outcome.key, outcome.ended) for outcome in outcomes] == [(job.key, "canceled")]

    @since("1.0")
    def test_job_that_cannot_be_done_gives_a_reason(self, tmp_path: Path) -> None:
        """A spec that no worker can read is lost or refused, never silent and never done."""
        job = Job(key="run/broken/1", spec=b"{}", bundle=tmp_path / "bundle")
        with self.queue() as queue:
            queue.submit([job])
            (outcome,) = self._outcomes(queue, 1)
        assert outcome.ended in {"lost", "refused"}
        assert outcome.reason, "the outcome gives no reason"

    @since("1.0")
    def test_poll_keeps_its_timeout(self) -> None:
        """With nothing to return, ``poll`` returns nothing when its time is up."""
        with self.queue() as queue:
            assert not within(self.seconds / 2, lambda: queue.poll(0.1), "poll(0.1)")

    @since("1.0")
    def test_eight_threads_submit_at_once(self, tmp_path: Path) -> None:
        """No job is lost or doubled when several threads use the queue."""
        scripts = {f"case{number}": ("printf x", "x") for number in range(8)}
        with self.queue() as queue:
            jobs = SmallProject(tmp_path, scripts).jobs(remote=queue.store())
            in_threads(lambda number: queue.submit([jobs[number]]))
            outcomes = self._outcomes(queue, len(jobs))
        assert Counter(outcome.key for outcome in outcomes) == Counter(job.key for job in jobs)

    @since("1.0")
    def test_run_has_the_same_report_as_with_the_local_queue(self, tmp_path: Path) -> None:
        """Where trials are carried out changes neither verdicts nor outputs: both hashes are equal."""
        local = SmallProject(tmp_path / "local").run()
        with self.queue() as queue, installed("queue", NAME, _given(queue)):
            own = SmallProject(tmp_path / "own").run(queue=NAME)
        assert own.report.report_hash == local.report.report_hash
        assert own.report.content_hash == local.report.content_hash

    @since("1.0")
    def test_one_outcome_counts_per_trial_in_chaos(self, tmp_path: Path) -> None:
        """Deliveries that are doubled, reordered, delayed and lost at first change no verdict and count no trial twice."""
        local = SmallProject(tmp_path / "local").run()
        for seed in range(3):
            with self.queue() as queue:
                chaos = ChaosQueue(ChaosConfig(seed=seed), inner=queue)
                with installed("queue", NAME, _given(chaos)):
                    outcome = _run_to_its_end(SmallProject(tmp_path / f"chaos{seed}"))
            counted = _finished(outcome.run)
            assert set(counted.values()) == {1}, f"trials counted more than once: {counted}"
            assert len(counted) == len(local.report.cases)
            assert outcome.report.report_hash == local.report.report_hash

    @since("1.0")
    def test_durable_jobs_are_found_again(self, tmp_path: Path) -> None:
        """With ``durable`` another coordinator finds what a dead one left running, and can cancel it."""
        with self.queue(tmp_path / "queue") as first:
            (job,) = SmallProject(tmp_path, {"long": ("sleep 300", "")}).jobs(run_id="durable", remote=first.store())
            if "durable" not in first.capabilities:
                return
            first.submit([job])
            first.poll(QUIET_SECONDS)
            with self.queue(tmp_path / "queue") as second:
                assert job.key in second.attach("durable"), "attach() does not name a job that is still running"
                second.cancel([job.key])
                outcomes = self._outcomes(second, 1)
        assert [outcome.key for outcome in outcomes] == [job.key]

    def _outcomes(self, queue: Queue[Any], count: int) -> list[Outcome]:
        """Return ``count`` outcomes and whatever else comes right after them."""
        found: list[Outcome] = []
        deadline = Deadline.after(self.seconds)
        while len(found) < count and not deadline.expired:
            found += queue.poll(0.5)
        assert len(found) >= count, f"{count} jobs gave {len(found)} outcomes within {self.seconds:g} s"
        return [*found, *queue.poll(QUIET_SECONDS)]


def _run_to_its_end(project: SmallProject) -> RunOutcome:
    try:
        return project.run(queue=NAME)
    except WorkerRefused as error:
        raise AssertionError(f"a job that every worker could do was refused: {error}") from error


def _finished(run: RunDirectory) -> Counter[str]:
    return Counter(event["data"]["case"] for event in read_events(run.ledger) if event["type"] == "TRIAL_FINISHED")


def _given(queue: Queue[Any]) -> type[Queue[Any]]:
    """Return a class whose instances pass everything on to ``queue``, which its owner closes."""

    class Given(Queue[None]):
        api = "queue/1.0"

        def store(self) -> Store | None:
            return queue.store()

        def submit(self, jobs: Sequence[Job]) -> None:
            queue.submit(jobs)

        def poll(self, timeout: float) -> Sequence[Outcome]:
            return queue.poll(timeout)

        def cancel(self, keys: Collection[str]) -> None:
            queue.cancel(keys)

        def attach(self, run_id: str) -> Collection[str]:
            return queue.attach(run_id)

    return Given
