"""A queue that carries jobs out in threads: as many as are in flight, each used again."""

from __future__ import annotations

import threading
from collections.abc import Collection

from evalwright.interfaces import Deadline, Job, Outcome, ThreadedQueue
from evalwright.testing import FakeHost

WIDTH = 8
SECONDS = 60.0


class Meeting(ThreadedQueue[None]):
    """Ends a job once so many are in flight together, or all are canceled; knows which threads were at work."""

    api = "queue/1.0"

    def __init__(self, parties: int) -> None:
        super().__init__(None, FakeHost())
        self.barrier = threading.Barrier(parties, timeout=SECONDS)
        self.workers: set[threading.Thread] = set()
        self.names: list[str] = []

    def carry_out(self, job: Job) -> Outcome:
        self.workers.add(threading.current_thread())
        self.names.append(threading.current_thread().name)
        self.barrier.wait()
        return Outcome(key=job.key, ended="done", worker="here")

    def cancel(self, keys: Collection[str]) -> None:
        if keys:
            self.barrier.abort()

    def close(self, deadline: Deadline) -> None:
        self.join(deadline)

    def outcomes(self, count: int) -> dict[str, str]:
        found: dict[str, str] = {}
        while len(found) < count:
            found |= {outcome.key: outcome.ended for outcome in self.poll(SECONDS)}
        return found


def job(number: int) -> Job:
    return Job(key=f"r/c{number}/1", spec=b"")


def test_jobs_that_follow_each_other_share_one_thread_under_their_own_names() -> None:
    queue = Meeting(1)
    for number in range(5):
        queue.submit([job(number)])
        assert queue.outcomes(1) == {f"r/c{number}/1": "done"}
    assert len(queue.workers) == 1
    assert queue.names == [f"trial-r/c{number}/1" for number in range(5)]
    queue.close(Deadline.after(SECONDS))


def test_every_job_in_flight_has_a_thread_of_its_own_however_many_ended_before() -> None:
    queue = Meeting(WIDTH)
    for first in (0, WIDTH, 2 * WIDTH):
        jobs = [job(number) for number in range(first, first + WIDTH)]
        queue.submit(jobs[:3])
        queue.submit(jobs[3:])
        assert set(queue.outcomes(WIDTH).values()) == {"done"}
    assert len(queue.workers) == WIDTH
    queue.close(Deadline.after(SECONDS))


def test_closing_ends_the_threads_and_a_queue_that_was_closed_takes_jobs_again() -> None:
    queue = Meeting(2)
    queue.submit([job(1)])
    queue.close(Deadline.after(SECONDS))
    assert queue.outcomes(1) == {"r/c1/1": "lost"}
    assert not any(worker.is_alive() for worker in queue.workers)

    queue.barrier = threading.Barrier(2, timeout=SECONDS)
    queue.submit([job(1), job(2)])
    assert queue.outcomes(2) == {"r/c1/1": "done", "r/c2/1": "done"}
    queue.close(Deadline.after(SECONDS))
