"""The trials of one run: each attempt in the ledger before it starts and after it ended, its evidence in place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.canonical import is_object
from evalwright.coordinate.attempts import LOST, Attempts
from evalwright.coordinate.create import created_timestamp
from evalwright.coordinate.delivery import Delivery
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan
from evalwright.coordinate.profile import Profile
from evalwright.errors import DiskFull, SandboxLost, StoreError, WorkerRefused
from evalwright.hooks import Observers
from evalwright.interfaces import Job, Outcome
from evalwright.ledger import Event, Ledger
from evalwright.model import Case, TrialSpec
from evalwright.processes import current_process
from evalwright.rundir import Layout, RunDirectory, disk_errors
from evalwright.spans import now
from evalwright.worker import write_failure

__all__ = ["Begun", "Engine"]

FINISHED_KEYS = ("attempt", "status", "fault", "seal", "usage", "judging", "duration_ms", "error")
Warn = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Begun:
    """An attempt that is about to be submitted; its event is written, but nobody was told yet."""

    case: Case
    spec: TrialSpec
    job: Job
    event: Event


@dataclass(kw_only=True)
class Engine:
    """One run in progress. Only this object writes the run's ledger and moves evidence into place; one thread drives it.

    An attempt's first outcome counts as long as no newer attempt was begun; whatever comes later is only logged. ``spend``
    hears the result of every attempt, whether it counts or not.
    """

    run: RunDirectory
    layout: Layout
    plan: Plan
    delivery: Delivery
    ledger: Ledger
    lease: Lease
    observers: Observers
    warn: Warn
    environment: Mapping[str, str]
    attempts: Attempts
    spend: Callable[[str, Mapping[str, Any]], None]
    profile: Profile | None = None
    _late: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.run.path.name

    def key(self, case_id: str) -> str:
        """Return the key of a case's newest attempt."""
        return f"{self.id}/{case_id}/{self.attempts.last(case_id)}"

    def begin(self, case: Case) -> Begun:
        """Write down that another attempt of a case starts, and return its job."""
        begun = now() if self.profile else None
        spec = self.delivery.spec(case, self.attempts.begin(case.id), self.attempts.spoiled(case.id))
        job = self.delivery.job(spec)
        data = {"case": case.id, "attempt": spec.attempt, **current_process().as_json()}
        event = self.emit("TRIAL_ATTEMPT", data)
        if self.profile and begun:
            self.profile.begun((case.id, spec.attempt), begun)
        return Begun(case, spec, job, event)

    def announce(self, begun: Begun) -> None:
        """Tell the observers that an attempt was submitted."""
        self.observers.call("trial_started", event=begun.event, case=begun.case.id, attempt=begun.spec.attempt)

    def adopt(self, case: Case) -> TrialSpec:
        """Return the spec of an attempt that is in flight since before this process."""
        spec = self.delivery.spec(case, self.attempts.last(case.id), self.attempts.spoiled(case.id))
        self.delivery.take_back(spec)
        return spec

    def take(self, outcome: Outcome, case: Case, spec: TrialSpec) -> Event | None:
        """Write down how an attempt ended; return the event if its result counts once that is durable."""
        if self.profile is None:
            return self._take(self._result(outcome, spec), outcome, case, spec)
        begun, result = now(), self._result(outcome, spec)
        event = self._take(result, outcome, case, spec)
        self.profile.taken((case.id, spec.attempt), result, begun, counts=event is not None)
        return event

    def _take(self, result: dict[str, Any], outcome: Outcome, case: Case, spec: TrialSpec) -> Event | None:
        self.spend(self.plan.arm, result)
        data = {"case": case.id, **{key: result.get(key) for key in FINISHED_KEYS}}
        seconds = self.attempts.backoff(case.id, result)
        if seconds is not None:
            self.emit("TRIAL_RETRIED", data | {"retry_in_seconds": seconds})
            self.attempts.again(case, data, seconds)
            self.delivery.discard(case.id, spec.attempt)
            return None
        if outcome.ended == "done":
            self.attempts.finish(case.id, spec.attempt)
        state = {"id": case.id, "status": result["status"], "completed_ts": created_timestamp(self.environment)}
        self.delivery.settle(spec, state)
        for warning in result.get("warnings", ()):
            self.warn(warning["code"], f"{case.id}: {warning['message']}")
        return self.emit("TRIAL_FINISHED", data)

    def settle(self, finished: Sequence[Event]) -> None:
        """Make results durable, all in one commit; from then on they count, and the observers hear of them."""
        begun = now() if self.profile else None
        self.commit()
        if self.profile and begun:
            self.profile.durable(finished, begun)
        for event in finished:
            data = event["data"]
            self.observers.call("trial_finished", event=event, case=data["case"], status=data["status"])

    def log_late(self, outcome: Outcome, case_id: str, attempt: int) -> None:
        """Keep what a late result cost; its score never counts. A repeated outcome is nothing new."""
        result = _parsed(outcome)
        if result is None or outcome.ended != "done" or (case_id, attempt) in self._late:
            return
        if attempt > self.attempts.last(case_id) or self.attempts.heard(case_id, attempt):
            return
        self._late.add((case_id, attempt))
        self.spend(self.plan.arm, result)
        data = {"case": case_id, "attempt": attempt, "worker": outcome.worker}
        self.emit("TRIAL_LATE", data | {key: result.get(key) for key in ("usage", "judging")})
        self.delivery.discard(case_id, attempt)

    def interrupted(self, canceled: Sequence[str], waiting: int) -> None:
        """Write down that the run was stopped: which trials were cut, and how many had not begun."""
        event = self.emit("RUN_INTERRUPTED", {"canceled": list(canceled), "waiting": waiting})
        self.commit()
        self.observers.call("run_interrupted", event=event)

    def emit(self, type: str, data: Mapping[str, Any]) -> Event:
        """Write an event to the ledger."""
        with disk_errors(self.ledger.path):
            return self.ledger.append(type, data)

    def commit(self) -> None:
        """Make the ledger durable."""
        with disk_errors(self.ledger.path):
            self.ledger.commit()

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


def _parsed(outcome: Outcome) -> dict[str, Any] | None:
    """Return the result that a worker sent, ``None`` for what is none."""
    try:
        result = json.loads(outcome.result or b"")
    except ValueError:
        return None
    return result if is_object(result) and isinstance(result.get("status"), str) else None
