"""Who answers requests where no human is: what the configuration says, as far as an answer can lead anywhere."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from evalwright_plugins.workflow.approvals.orders import Order
from evalwright_plugins.workflow.drive.drive import Gate
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.record import Request

__all__ = ["Unattended"]

MORE = ("budget", "work-review-cap", "not-converging", "stale")
"""Kinds of requests for more of what is bounded: a machine that always says yes would never let a run end. One that is asked
again, about something that has moved, may stand for each of them.
"""


@dataclass(slots=True)
class Unattended:
    """Wraps the configured gate. ``fixed`` tells that this gate is an answer given once for all, not a program.

    What it must not say yes to is left to people where a run ``waits`` for them, and gets a no elsewhere. A step whose
    infrastructure has failed for good is not the gate's to judge: ``infrastructure`` is then the reason.
    """

    gate: Gate
    fixed: bool
    waits: bool = False
    infrastructure: str | None = None
    asked: set[str] = field(default_factory=set[str])

    def __call__(self, turn: Turn, request: Request, refused: str) -> Order | None:
        """Return the answer to a request."""
        if request.kind == "infra" and not request.grants:
            self.infrastructure = request.reasons[0]
            return self._decline(request, "its infrastructure failed")
        if not self.fixed:
            return self.gate(turn, request, refused)
        if request.kind in MORE:
            return self._decline(request, f"{request.reasons[0]}; more is not granted without a human or a program")
        if _trespassed(turn, request):
            return self._decline(request, f"{request.reasons[0]}; that is not allowed afterwards without a human or a program")
        question = _question(turn, request)
        if question in self.asked:
            return self._decline(request, "a yes to the same question has changed nothing")
        self.asked.add(question)
        return self.gate(turn, request, refused)

    def _decline(self, request: Request, reason: str) -> Order | None:
        return None if self.waits else Order(action="reject", by="on_gate", request=request.seq, reason=reason)


def _trespassed(turn: Turn, request: Request) -> bool:
    """Tell whether a step has changed what it may not: outside the scope, or anything in a read-only one."""
    outcome = turn.state.outcome
    blocked = outcome is not None and outcome.finished is not None and outcome.finished["status"] == "blocked"
    return blocked or "after:scope" in request.grants.get("clears", ())


def _question(turn: Turn, request: Request) -> str:
    """Return what makes a request the same as an earlier one: nothing that it is about has moved, no step was begun."""
    about = [request.kind, request.transition, list(request.reasons), dict(request.subject), turn.state.attempts]
    return json.dumps(about, sort_keys=True)
