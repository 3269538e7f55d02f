"""Carry out the trials of one run: bounded in flight, each attempt in the ledger before it starts and after it ended."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.coordinate.create import created_timestamp
from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan
from evalwright.coordinate.stop import Stop
from evalwright.errors import DiskFull, Interrupted
from evalwright.hooks import Observers
from evalwright.interfaces import Job, Outcome, Queue
from evalwright.ledger import Event, Ledger
from evalwright.model import Case, TrialSpec
from evalwright.processes import current_process
from evalwright.rundir import Layout, RunDirectory, disk_errors, write_document
from evalwright.worker import write_failure
from evalwright.workspace import remove_tree

__all__ = ["Engine"]

POLL_SECONDS = 0.5
STOP_SECONDS = 30.0
Warn = Callable[[str, str], None]


@dataclass(kw_only=True)
class Engine:
    """One run in progress. Only this object writes the run's ledger and its ``state.json`` files; one thread drives it."""

    run: RunDirectory
    layout: Layout
    plan: Plan
    inputs: Inputs
    queue: Queue[Any]
    ledger: Ledger
    lease: Lease
    observers: Observers
    stop: Stop
    lock: str
    jobs: int
    warn: Warn
    environment: Mapping[str, str]
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    _flying: dict[str, tuple[Case, TrialSpec]] = field(default_factory=dict[str, tuple[Case, TrialSpec]])

    def carry_out(self, cases: Sequence[Case]) -> None:
        """Run every trial to its end.

        Raises ``Interrupted`` when the user stopped it and ``DiskFull`` when there is no room: what was done is kept, what
        was cut will run again on resume.
        """
        waiting = deque(cases)
        try:
            while waiting or self._flying:
                if self.stop.requested:
                    self._interrupt(len(waiting))
                self._fill(waiting)
                self.lease.beat()
                self._take(self.queue.poll(POLL_SECONDS))
        except DiskFull:
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

    def _fill(self, waiting: deque[Case]) -> None:
        jobs: list[Job] = []
        started: list[tuple[Event, Case, int]] = []
        while waiting and len(self._flying) < self.jobs:
            case = waiting.popleft()
            attempt = self.attempts[case.id] = self.attempts.get(case.id, 0) + 1
            spec = self._spec(case, attempt)
            key = f"{spec.run_id}/{case.id}/{attempt}"
            data = {"case": case.id, "attempt": attempt, **current_process().as_json()}
            started.append((self.emit("TRIAL_ATTEMPT", data), case, attempt))
            self._flying[key] = (case, spec)
            jobs.append(Job(key=key, spec=spec.to_bytes(), lock=self.lock, bundle=self.run.case(case.id)))
        if jobs:
            self.queue.submit(jobs)
        for event, case, attempt in started:
            self.observers.call("trial_started", event=event, case=case.id, attempt=attempt)

    def _spec(self, case: Case, attempt: int) -> TrialSpec:
        return self.plan.spec(
            case,
            attempt,
            run_id=self.run.path.name,
            inputs=self.inputs,
            store=self.layout.store.resolve(),
            snapshot=self.run.snapshot.resolve(),
        )

    def _take(self, outcomes: Sequence[Outcome]) -> None:
        """Record what ended: all in one commit, then told to the observers."""
        finished: list[tuple[Event, Case, str]] = []
        for outcome in outcomes:
            case, spec = self._flying.pop(outcome.key, (None, None))
            if case is None or spec is None or outcome.ended == "canceled":
                continue
            result = self._result(outcome, spec)
            for warning in result.get("warnings", ()):
                self.warn(warning["code"], f"{case.id}: {warning['message']}")
            data = {"case": case.id, **{key: result.get(key) for key in FINISHED_KEYS}}
            finished.append((self.emit("TRIAL_FINISHED", data), case, result["status"]))
        if not finished:
            return
        self.commit()
        for event, case, status in finished:
            self._mark(case.id, status)
            self.observers.call("trial_finished", event=event, case=case.id, status=status)

    def _result(self, outcome: Outcome, spec: TrialSpec) -> dict[str, Any]:
        if outcome.ended == "done" and outcome.result is not None:
            result: dict[str, Any] = json.loads(outcome.result)
            return result
        reason = outcome.reason or f"the worker {outcome.worker} answered {outcome.ended}"
        if reason.startswith(DiskFull.code):
            raise DiskFull(reason, hint="free space; what was written is kept, and the run can be resumed")
        bundle = self.run.case(spec.case_id)
        remove_tree(bundle, inside=self.run.cases)
        return write_failure(spec, bundle, reason)

    def _mark(self, case_id: str, status: str) -> None:
        record = {"id": case_id, "status": status, "completed_ts": created_timestamp(self.environment)}
        write_document(self.run.case(case_id) / "state.json", record)

    def _interrupt(self, waiting: int) -> None:
        canceled = [case.id for case, _ in self._flying.values()]
        cut = len(canceled)
        self._cut()
        event = self.emit("RUN_INTERRUPTED", {"canceled": canceled, "waiting": waiting})
        self.commit()
        self.observers.call("run_interrupted", event=event)
        total = len(self.plan.cases)
        raise Interrupted(
            f"Stopped. {total - waiting - cut} of {total} trials are kept, {cut} were cut and will run again.",
            hint=f"go on with: evalwright run --resume {self.run.path.name}",
        )

    def _cut(self) -> None:
        """End every trial in flight; outcomes that were already on their way are dropped, and their trials run again."""
        self.queue.cancel(list(self._flying))
        give_up = time.monotonic() + STOP_SECONDS
        while self._flying and time.monotonic() < give_up:
            for outcome in self.queue.poll(POLL_SECONDS):
                self._flying.pop(outcome.key, None)
        self._flying.clear()


FINISHED_KEYS = ("attempt", "status", "fault", "seal", "usage", "duration_ms", "error")
