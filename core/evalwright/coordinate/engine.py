"""Carry out the trials of one run: bounded in flight, each attempt in the ledger before it starts and after it ended."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.canonical import is_object
from evalwright.coordinate.attempts import LOST, Attempts
from evalwright.coordinate.create import created_timestamp
from evalwright.coordinate.delivery import Delivery
from evalwright.coordinate.guard import GuardedQueue
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan
from evalwright.errors import DiskFull, Interrupted, PluginFailed, SandboxLost, StoreError, WorkerRefused
from evalwright.hooks import Observers
from evalwright.interfaces import Job, Outcome
from evalwright.ledger import Event, Ledger
from evalwright.model import Case, TrialSpec
from evalwright.processes import Stop, current_process
from evalwright.rundir import Layout, RunDirectory, disk_errors
from evalwright.worker import write_failure

__all__ = ["Engine"]

POLL_SECONDS = 0.5
RETRY_POLL_SECONDS = 0.05
STOP_SECONDS = 30.0
SILENCE_SECONDS = 2 * 3600.0
FINISHED_KEYS = ("attempt", "status", "fault", "seal", "usage", "duration_ms", "error")
Warn = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Flight:
    """An attempt whose outcome is awaited; one that says nothing until ``give_up`` is lost."""

    case: Case
    spec: TrialSpec
    give_up: float


@dataclass(kw_only=True)
class Engine:
    """One run in progress. Only this object writes the run's ledger and moves evidence into place; one thread drives it.

    An attempt's first outcome counts as long as no newer attempt was begun; whatever comes later is only logged.
    """

    run: RunDirectory
    layout: Layout
    plan: Plan
    delivery: Delivery
    queue: GuardedQueue
    ledger: Ledger
    lease: Lease
    observers: Observers
    stop: Stop
    width: int
    warn: Warn
    environment: Mapping[str, str]
    attempts: Attempts
    _flying: dict[str, Flight] = field(default_factory=dict[str, Flight])
    _early: list[Outcome] = field(default_factory=list[Outcome])
    _late: set[str] = field(default_factory=set[str])

    def adopt(self, cases: Sequence[Case]) -> set[str]:
        """Take over what a dead coordinator left in the queue, and return the ids of the cases that are in flight now.

        Jobs of older attempts are ended, and have ended when this returns.
        """
        open_ones = [case for case in cases if not self.attempts.over(case.id)]
        current = {f"{self.run.path.name}/{case.id}/{self.attempts.last(case.id)}": case for case in open_ones}
        held = self.queue.attach(self.run.path.name)
        for key in held & current.keys():
            case = current[key]
            spec = self.delivery.spec(case, self.attempts.last(case.id), self.attempts.spoiled(case.id))
            self.delivery.take_back(spec)
            self._launch(key, case, spec)
        self._end(held - current.keys())
        return {flight.case.id for flight in self._flying.values()}

    def carry_out(self, cases: Sequence[Case]) -> None:
        """Run every trial to its end.

        Raises ``Interrupted`` when the user stopped it, ``DiskFull`` when there is no room and ``WorkerRefused`` when workers
        have other plugins: what was done is kept, what was cut will run again on resume.
        """
        waiting = deque(cases)
        try:
            while waiting or self._flying or self.attempts:
                if self.stop.requested:
                    self._interrupt(len(waiting))
                self._fill(waiting)
                self.lease.beat()
                self._settle(self._take(self._outcomes()))
                self._give_up()
        except (DiskFull, WorkerRefused, PluginFailed):
            with contextlib.suppress(PluginFailed):
                self._cut()
            raise

    def emit(self, type: str, data: Mapping[str, Any]) -> Event:
        """Write an event to the ledger."""
        with disk_errors(self.ledger.path):
            return self.ledger.append(type, data)

    def commit(self) -> None:
        """Make the ledger durable."""
        with disk_errors(self.ledger.path):
            self.ledger.commit()

    def _outcomes(self) -> Sequence[Outcome]:
        if self._early:
            early, self._early = self._early, []
            return early
        return self.queue.poll(RETRY_POLL_SECONDS if self.attempts else POLL_SECONDS)

    def _fill(self, waiting: deque[Case]) -> None:
        jobs: list[Job] = []
        started: list[tuple[Event, TrialSpec]] = []
        while len(self._flying) < self.width and (case := self.attempts.due() or (waiting.popleft() if waiting else None)):
            spec = self.delivery.spec(case, self.attempts.begin(case.id), self.attempts.spoiled(case.id))
            job = self.delivery.job(spec)
            data = {"case": case.id, "attempt": spec.attempt, **current_process().as_json()}
            started.append((self.emit("TRIAL_ATTEMPT", data), spec))
            self._launch(job.key, case, spec)
            jobs.append(job)
        if jobs:
            self._submit(jobs)
        for event, spec in started:
            self.observers.call("trial_started", event=event, case=spec.case_id, attempt=spec.attempt)

    def _submit(self, jobs: Sequence[Job]) -> None:
        """Hand jobs over. Those of a submission that fails are not waited for: closing the queue ends what it took of them."""
        try:
            self.queue.submit(jobs)
        except BaseException:
            for job in jobs:
                del self._flying[job.key]
            raise

    def _launch(self, key: str, case: Case, spec: TrialSpec) -> None:
        self._flying[key] = Flight(case, spec, time.monotonic() + spec.timeout + SILENCE_SECONDS)

    def _take(self, outcomes: Sequence[Outcome]) -> list[tuple[Event, Case]]:
        """Write down what ended, and return the trials whose result will count once that is durable."""
        finished: list[tuple[Event, Case]] = []
        for outcome, flight in [(outcome, self._flying.pop(outcome.key, None)) for outcome in outcomes]:
            if flight is None:
                self._log_late(outcome)
                continue
            result = self._result(outcome, flight.spec)
            case = flight.case
            data = {"case": case.id, **{key: result.get(key) for key in FINISHED_KEYS}}
            seconds = self.attempts.backoff(case.id, result)
            if seconds is not None:
                self.emit("TRIAL_RETRIED", data | {"retry_in_seconds": seconds})
                self.attempts.again(case, data, seconds)
                self.delivery.discard(case.id, flight.spec.attempt)
                continue
            if outcome.ended == "done":
                self.attempts.finish(case.id, flight.spec.attempt)
            state = {"id": case.id, "status": result["status"], "completed_ts": created_timestamp(self.environment)}
            self.delivery.settle(flight.spec, state)
            for warning in result.get("warnings", ()):
                self.warn(warning["code"], f"{case.id}: {warning['message']}")
            finished.append((self.emit("TRIAL_FINISHED", data), case))
        return finished

    def _settle(self, finished: Sequence[tuple[Event, Case]]) -> None:
        """Make the results durable, all in one commit; from then on they count, and the observers hear of them."""
        if not finished:
            return
        self.commit()
        for event, case in finished:
            self.observers.call("trial_finished", event=event, case=case.id, status=event["data"]["status"])

    def _result(self, outcome: Outcome, spec: TrialSpec) -> dict[str, Any]:
        """Return what the worker found out, or the failure that stands for a trial without a result."""
        if outcome.ended == "refused":
            raise WorkerRefused(
                f"the worker {outcome.worker} refused {outcome.key}: {outcome.reason}",
                hint="install the same versions of evalwright and its plugins there, then resume the run",
            )
        result = _parsed(outcome)
        if outcome.ended == "done" and result is not None:
            try:
                self.delivery.fetch(spec, outcome, str(result.get("seal")))
                return result
            except StoreError as error:
                return self._failure(spec, error.message, kind="bundle_lost", transient=True)
        reason = outcome.reason or f"the worker {outcome.worker} answered {outcome.ended}"
        if reason.startswith(DiskFull.code):
            raise DiskFull(
                reason.removeprefix(f"{DiskFull.code}: "),
                hint="free space; what was written is kept, and the run can be resumed",
            )
        kind = "sandbox_lost" if reason.startswith(SandboxLost.code) else LOST
        return self._failure(spec, reason, kind=kind, transient=outcome.transient)

    def _failure(self, spec: TrialSpec, reason: str, *, kind: str, transient: bool = False) -> dict[str, Any]:
        self.delivery.discard(spec.case_id, spec.attempt)
        bundle = self.run.attempt(spec.case_id, spec.attempt)
        return write_failure(spec, bundle, reason, store=self.delivery.store, kind=kind, transient=transient)

    def _log_late(self, outcome: Outcome) -> None:
        """Keep what a late result of this run cost; its score never counts. A repeated outcome is nothing new."""
        named = re.fullmatch(r"([^/]+)/([^/]+)/(\d+)", outcome.key)
        if named is None or named[1] != self.run.path.name or outcome.ended != "done" or outcome.key in self._late:
            return
        case_id, attempt = named[2], int(named[3])
        result = _parsed(outcome)
        if result is None or attempt > self.attempts.last(case_id) or self.attempts.heard(case_id, attempt):
            return
        self._late.add(outcome.key)
        data = {"case": case_id, "attempt": attempt, "worker": outcome.worker, "usage": result.get("usage")}
        self.emit("TRIAL_LATE", data)
        self.delivery.discard(case_id, attempt)

    def _give_up(self) -> None:
        """Count jobs as lost of which the queue has said nothing for hours after their time limit."""
        now = time.monotonic()
        for key in [key for key, flight in self._flying.items() if now > flight.give_up]:
            self.queue.cancel([key])
            self._settle(self._take([Outcome(key=key, ended="lost", worker="", reason="the queue never said how it ended")]))

    def _interrupt(self, waiting: int) -> None:
        canceled = [flight.case.id for flight in self._flying.values()]
        left = waiting + len(self.attempts)
        self._cut()
        event = self.emit("RUN_INTERRUPTED", {"canceled": canceled, "waiting": left})
        self.commit()
        self.observers.call("run_interrupted", event=event)
        total, cut = len(self.plan.cases), len(canceled)
        raise Interrupted(
            f"Stopped. {total - left - cut} of {total} trials are kept, {cut} were cut and {left} had not begun.",
            hint=f"go on with: evalwright run --resume {self.run.path.name}",
        )

    def _cut(self) -> None:
        """End every trial in flight; outcomes that were already on their way are dropped, and their trials run again."""
        keys = set(self._flying)
        self._flying.clear()
        self._end(keys)

    def _end(self, keys: set[str]) -> None:
        """Cancel jobs and wait until each has ended; what is said of others meanwhile is kept."""
        if not keys:
            return
        self.queue.cancel(keys)
        give_up = time.monotonic() + STOP_SECONDS
        while keys and time.monotonic() < give_up:
            outcomes = self.queue.poll(POLL_SECONDS)
            for outcome in outcomes:
                if outcome.key in self._flying:
                    self._early.append(outcome)
                else:
                    with contextlib.suppress(DiskFull):
                        self._log_late(outcome)
            keys -= {outcome.key for outcome in outcomes}


def _parsed(outcome: Outcome) -> dict[str, Any] | None:
    """Return the result that a worker sent, ``None`` for what is none."""
    try:
        result = json.loads(outcome.result or b"")
    except ValueError:
        return None
    return result if is_object(result) and isinstance(result.get("status"), str) else None
