"""One schedule for all trials in flight, of one run or of many: bounded, in turn, stopped together."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from evalwright.coordinate.budget import Budget
from evalwright.coordinate.engine import Begun, Engine
from evalwright.coordinate.guard import GuardedQueue
from evalwright.errors import CostLimit, DiskFull, Interrupted, PluginFailed, WorkerRefused
from evalwright.interfaces import Outcome
from evalwright.ledger import Event
from evalwright.model import Case, TrialSpec
from evalwright.processes import Stop

__all__ = ["Dispatcher", "in_turn"]

POLL_SECONDS = 0.5
RETRY_POLL_SECONDS = 0.05
STOP_SECONDS = 30.0
SILENCE_SECONDS = 2 * 3600.0
Work = tuple[Engine, Case]


@dataclass(frozen=True, slots=True)
class Flight:
    """An attempt whose outcome is awaited; one that says nothing until ``give_up`` is lost."""

    engine: Engine
    case: Case
    spec: TrialSpec
    give_up: float


def in_turn(work: Sequence[tuple[Engine, Sequence[Case]]]) -> Iterator[Work]:
    """Yield the trials of all runs pass by pass, and within a pass case by case with the arms in turn.

    So a stopped experiment is a smaller whole one, and drift of whatever is measured hits all arms alike; no arm is always
    the first.
    """
    parts = [_of_one(engine, cases) for engine, cases in work]
    return heapq.merge(*parts, key=_turns(work)) if len(work) > 1 else itertools.chain(*parts)


def _of_one(engine: Engine, cases: Sequence[Case]) -> Iterator[Work]:
    return ((engine, case) for case in sorted(cases, key=lambda case: case.id))


def _turns(work: Sequence[tuple[Engine, Sequence[Case]]]) -> Callable[[Work], tuple[int, int, int]]:
    """Return what tells a trial's turn."""
    arms = {name: place for place, name in enumerate(dict.fromkeys(engine.plan.arm for engine, _ in work))}
    places = {case_id: place for place, case_id in enumerate(sorted({case.id for _, cases in work for case in cases}))}

    def turn(item: Work) -> tuple[int, int, int]:
        engine, case = item
        place = places[case.id]
        return engine.plan.repeat, place, (arms[engine.plan.arm] + place + engine.plan.repeat) % len(arms)

    return turn


class Dispatcher:
    """Keeps ``width`` trials in flight and hands each outcome to its run. One thread drives it.

    ``finish`` is called for a run as soon as its last trial is done. ``subject`` is what a user resumes.
    """

    def __init__(
        self,
        queue: GuardedQueue,
        engines: Sequence[Engine],
        *,
        width: int,
        stop: Stop,
        budget: Budget,
        subject: str,
        finish: Callable[[Engine], None],
    ) -> None:
        self._queue = queue
        self._engines = {engine.id: engine for engine in engines}
        self._width = width
        self._stop = stop
        self._budget = budget
        self._subject = subject
        self._finish = finish
        self._total = sum(len(engine.plan.cases) for engine in engines)
        self._waiting: Iterator[Work] = iter(())
        self._ahead: Work | None = None
        self._left: Counter[str] = Counter()
        self._flying: dict[str, Flight] = {}
        self._early: list[Outcome] = []

    def adopt(self, engine: Engine, cases: Sequence[Case]) -> set[str]:
        """Take over what a dead coordinator left of a run in the queue; return the ids of the cases that are in flight now.

        Jobs of older attempts are ended, and have ended when this returns.
        """
        current = {engine.key(case.id): case for case in cases if not engine.attempts.over(case.id)}
        held = self._queue.attach(engine.id)
        for key in held & current.keys():
            self._launch(key, engine, current[key], engine.adopt(current[key]))
        self._end(held - current.keys())
        return {flight.case.id for flight in self._flying.values() if flight.engine is engine}

    def carry_out(self, work: Sequence[tuple[Engine, Sequence[Case]]]) -> None:
        """Run every trial to its end, and finish every run.

        Raises ``Interrupted`` when the user stopped it, ``CostLimit`` when that much was spent, ``DiskFull`` when there is no
        room and ``WorkerRefused`` when workers have other plugins: what was done is kept, what was cut runs again on resume.
        """
        self._waiting = in_turn(work)
        self._left = Counter({engine.id: len(cases) for engine, cases in work})
        self._left.update(flight.engine.id for flight in self._flying.values())
        try:
            self._finish_done()
            while self._left.total():
                if self._stop.requested:
                    self._interrupt()
                self._fill()
                for engine in self._engines.values():
                    engine.lease.beat()
                self._settle(self._outcomes())
                self._give_up()
                self._finish_done()
        except (DiskFull, WorkerRefused, PluginFailed):
            with contextlib.suppress(PluginFailed):
                self._cut()
            raise

    def _finish_done(self) -> None:
        """Finish the runs of which no trial is left; the last of all may need the queue closed first."""
        for name in [name for name in self._engines if not self._left[name]]:
            engine = self._engines.pop(name)
            del self._left[name]
            self._finish(engine)

    @property
    def retrying(self) -> int:
        """Return how many trials wait for another attempt."""
        return sum(len(engine.attempts) for engine in self._engines.values())

    def _outcomes(self) -> Sequence[Outcome]:
        if self._early:
            early, self._early = self._early, []
            return early
        return self._queue.poll(RETRY_POLL_SECONDS if self.retrying else POLL_SECONDS)

    def _next(self) -> Work | None:
        """Return the trial that may start now; a retry that is due comes first."""
        for engine in self._engines.values():
            if self._budget.allows(engine.plan.arm) and (case := engine.attempts.due()):
                return engine, case
        if self._ahead is None:
            self._ahead = next(self._waiting, None)
        if self._ahead is None or not self._budget.allows(self._ahead[0].plan.arm):
            return None
        work, self._ahead = self._ahead, None
        return work

    def _fill(self) -> None:
        started: list[tuple[Engine, Begun]] = []
        while len(self._flying) < self._width and (work := self._next()):
            engine, case = work
            begun = engine.begin(case)
            self._launch(begun.job.key, engine, case, begun.spec)
            started.append((engine, begun))
        if started:
            self._submit([begun for _, begun in started])
        elif self._budget.exhausted and not self._flying:
            self._stop_spending()
        for engine, begun in started:
            engine.announce(begun)

    def _submit(self, begun: Sequence[Begun]) -> None:
        """Hand jobs over. Those of a submission that fails are not waited for: closing the queue ends what it took of them."""
        try:
            self._queue.submit([item.job for item in begun])
        except BaseException:
            for item in begun:
                self._land(item.job.key)
            raise

    def _launch(self, key: str, engine: Engine, case: Case, spec: TrialSpec) -> None:
        self._flying[key] = Flight(engine, case, spec, time.monotonic() + spec.timeout + SILENCE_SECONDS)
        self._budget.started(engine.plan.arm)

    def _settle(self, outcomes: Sequence[Outcome]) -> None:
        """Write down what ended, then make the results of each run durable.

        All of it is out of flight first: when one of them ends everything, nobody waits for what was told with it.
        """
        finished: dict[str, list[Event]] = {}
        for outcome, flight in [(outcome, self._land(outcome.key)) for outcome in outcomes]:
            if flight is None:
                self._log_late(outcome)
                continue
            event = flight.engine.take(outcome, flight.case, flight.spec)
            if event is not None:
                finished.setdefault(flight.engine.id, []).append(event)
        for name, events in finished.items():
            self._engines[name].settle(events)
            self._left[name] -= len(events)

    def _land(self, key: str) -> Flight | None:
        """Take an attempt out of flight; ``None`` when it is in none."""
        flight = self._flying.pop(key, None)
        if flight is not None:
            self._budget.ended(flight.engine.plan.arm)
        return flight

    def _log_late(self, outcome: Outcome) -> None:
        named = re.fullmatch(r"([^/]+)/([^/]+)/(\d+)", outcome.key)
        engine = self._engines.get(named[1]) if named else None
        if named and engine:
            engine.log_late(outcome, named[2], int(named[3]))

    def _give_up(self) -> None:
        """Count jobs as lost of which the queue has said nothing for hours after their time limit."""
        now = time.monotonic()
        for key in [key for key, flight in self._flying.items() if now > flight.give_up]:
            self._queue.cancel([key])
            self._settle([Outcome(key=key, ended="lost", worker="", reason="the queue never said how it ended")])

    def _interrupt(self) -> None:
        total, left, cut = self._stopped()
        raise Interrupted(
            f"Stopped. {total - left - cut} of {total} trials are kept, {cut} were cut and {left} had not begun.",
            hint=f"go on with: evalwright run --resume {self._subject}",
        )

    def _stop_spending(self) -> None:
        budget, (total, left, cut) = self._budget, self._stopped()
        raise CostLimit(
            f"${budget.spent:.2g} is spent, the limit is ${budget.limit:.2g}: {total - left - cut} of {total} trials are kept, "
            f"{left} had not begun.",
            hint=f"go on with a higher limit: evalwright run --resume {self._subject} --max-cost {2 * budget.spent:.2g}",
            spent_usd=budget.spent,
        )

    def _stopped(self) -> tuple[int, int, int]:
        """Cut what is in flight and tell every run; return how many trials there are, had not begun, and were cut."""
        canceled: dict[str, list[str]] = {}
        for flight in self._flying.values():
            canceled.setdefault(flight.engine.id, []).append(flight.case.id)
        self._cut()
        cut = sum(len(cases) for cases in canceled.values())
        left = self._left.total() - cut
        for name, engine in self._engines.items():
            own = canceled.get(name, [])
            engine.interrupted(own, self._left[name] - len(own))
        return self._total, left, cut

    def _cut(self) -> None:
        """End every trial in flight; outcomes that were already on their way are dropped, and their trials run again."""
        keys = set(self._flying)
        for key in keys:
            self._land(key)
        self._end(keys)

    def _end(self, keys: set[str]) -> None:
        """Cancel jobs and wait until each has ended; what is said of others meanwhile is kept."""
        if not keys:
            return
        self._queue.cancel(keys)
        give_up = time.monotonic() + STOP_SECONDS
        while keys and time.monotonic() < give_up:
            outcomes = self._queue.poll(POLL_SECONDS)
            for outcome in outcomes:
                if outcome.key in self._flying:
                    self._early.append(outcome)
                else:
                    with contextlib.suppress(DiskFull):
                        self._log_late(outcome)
            keys -= {outcome.key for outcome in outcomes}
