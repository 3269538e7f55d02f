"""The state of a run: what its events add up to, and nothing that they do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Decision", "Outcome", "Request", "State", "Status"]

Record = Mapping[str, Any]


class Status(StrEnum):
    """Where a run stands: ``NONE`` before its first event."""

    NONE = "NONE"
    CREATED = "CREATED"
    RUNNING = "RUNNING"
    WAITING_HUMAN = "WAITING_HUMAN"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    SUPERSEDED = "SUPERSEDED"

    @property
    def terminal(self) -> bool:
        """Tell whether the run is over."""
        return self in (Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A question to a human: what is asked about, why, and what a yes does, as ``grants`` and in words (``effect``)."""

    seq: int
    kind: str
    transition: str
    subject: Record
    reasons: tuple[str, ...]
    grants: Record
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A human's answer to the open request, not yet acted upon."""

    ref: str
    by: str
    decision: str
    data: Record

    @property
    def approved(self) -> bool:
        """Tell whether the answer was yes."""
        return self.decision == "approved"


@dataclass(slots=True, kw_only=True)
class Outcome:
    """One attempt of a step, from its start until the run goes on from it. ``events`` are the types recorded since its end."""

    step: str
    attempt: int
    started: Record
    evidence: Record | None = None
    review: Record | None = None
    finished: Record | None = None
    interrupted: bool = False
    repeated: bool = False
    events: set[str] = field(default_factory=set[str])

    @property
    def over(self) -> bool:
        """Tell whether the step may be started anew: its process was lost, or its infrastructure failed."""
        return self.finished is not None and (self.interrupted or bool(self.finished.get("infra")))

    @property
    def lost(self) -> bool:
        """Tell whether it was cut off with its driver."""
        return self.interrupted and self.finished is not None and self.finished["status"] == "crashed"


@dataclass(slots=True, kw_only=True)
class State:
    """A run as its ledger tells it. Attempts, charges and grants are counts by step.

    ``untold`` names budgets of which some step has not said what it used.
    """

    run: str = ""
    work: str = ""
    status: Status = Status.NONE
    seq: int = 0
    created: Record = field(default_factory=dict[str, Any])
    workspace: Record | None = None
    step: str = ""
    came_from: str = ""
    cause: str = ""
    outcome: Outcome | None = None
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    charged: dict[str, int] = field(default_factory=dict[str, int])
    granted: dict[str, int] = field(default_factory=dict[str, int])
    passed: dict[str, str] = field(default_factory=dict[str, str])
    review_rounds: int = 0
    granted_reviews: int = 0
    budgets: dict[str, float] = field(default_factory=dict[str, float])
    spent: dict[str, float] = field(default_factory=dict[str, float])
    untold: set[str] = field(default_factory=set[str])
    candidate: str = ""
    evidence: dict[str, Record] = field(default_factory=dict[str, Record])
    findings: tuple[Record, ...] = ()
    blockers: tuple[Record, ...] = ()
    failures: dict[str, Record] = field(default_factory=dict[str, Record])
    last_failure: Record | None = None
    reviewed: list[str] = field(default_factory=list[str])
    accepted: dict[str, str] = field(default_factory=dict[str, str])
    approvals: list[Record] = field(default_factory=list[Record])
    request: Request | None = None
    decision: Decision | None = None
    decisions: int = 0
    applied: set[str] = field(default_factory=set[str])
    cleared: set[str] = field(default_factory=set[str])
    interruptions: int = 0
    infrastructure: dict[str, int] = field(default_factory=dict[str, int])
    waited_seconds: float = 0.0
    asked_at: str = ""
    ended: Record | None = None
    compacted: Record | None = None
