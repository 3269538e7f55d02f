"""Where decisions of people become events: checked against what they saw, bound to it, and acted upon once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.errors import EvalwrightError
from evalwright_plugins.workflow.approvals.orders import Answer, Order
from evalwright_plugins.workflow.drive.ask import Ask
from evalwright_plugins.workflow.drive.facts import RunFacts
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.record import Request

__all__ = ["answer", "ask", "take_up"]

STALE = "what was asked about has changed since; look at it as it is now, then decide"


def ask(turn: Turn, stop: Ask) -> None:
    """Put a request on record."""
    turn.journal.write("HUMAN_REQUESTED", stop.data(turn.subject()))


def answer(turn: Turn, order: Order) -> Answer:
    """Carry out an order as far as the record goes; what follows from it is done by whoever drives the run."""
    state = turn.state
    if state.status.terminal:
        return Answer(ok=False, message=f"the run has ended: {state.status}")
    if order.action == "stop":
        reason = f"stopped by {order.by}" + (f": {order.reason}" if order.reason else "")
        turn.journal.write("RUN_TERMINAL", {"status": "CANCELLED", "reason": reason}, human=order.by)
        return Answer(ok=True, message="the run is cancelled")
    request = state.request
    if request is None or state.decision:
        return Answer(ok=False, message="the run does not wait for a decision")
    if order.request is not None and order.request != request.seq:
        return Answer(ok=False, message=f"request {order.request} is no longer open; {request.seq} is")
    if order.action == "adopt":
        return _adopt(turn, request, order)
    if order.action == "approve":
        refused = _refused(turn, request, order)
        if refused:
            return Answer(ok=False, message=refused)
    decision = "approved" if order.action == "approve" else "rejected"
    _record(turn, request, order, {"decision": decision})
    return Answer(ok=True, message=f"{request.transition} is {decision}")


def take_up(turn: Turn) -> None:
    """Act upon the decision that is on record: ask again when its subject has moved, end the run, or let it go on."""
    state = turn.state
    request, decision = state.request, state.decision
    assert request
    assert decision
    changed = _changed(decision.data["subject"], turn.subject())
    if changed and decision.approved:
        turn.journal.write("APPROVAL_STALE", {"approvalRef": decision.ref, "changed": changed})
        _again(turn, request)
        return
    if not decision.approved:
        reason = f"{request.transition} was rejected by {decision.by}"
        reason += f": {decision.data['reason']}" if decision.data.get("reason") else ""
        turn.journal.write("RUN_TERMINAL", {"status": "FAILED", "reason": reason})
        return
    if request.kind == "final-decision" and not decision.data.get("resumeAt"):
        turn.journal.write(
            "RUN_TERMINAL", {"status": "SUCCEEDED", "reason": f"approved by {decision.by}; nothing is merged or pushed"}
        )
        return
    for extension in _extensions(request.grants):
        data = extension | {"approvalRef": decision.ref, "scope": "work" if extension["kind"] == "reviews" else "run"}
        if f"{decision.ref}:{extension['kind']}:{extension.get('step', '')}" not in state.applied:
            turn.journal.write("BUDGET_EXTENDED", data)
    turn.journal.write("RUN_STARTED", {})


def _refused(turn: Turn, request: Request, order: Order) -> str | None:
    """Say why a yes does not count: its subject has moved, or a policy that was pinned with the run says otherwise."""
    if _changed(request.subject, turn.subject()):
        _again(turn, request)
        return STALE
    if request.kind != "final-decision":
        return None
    facts = RunFacts(turn, approving=order.by, to=request.transition, kind=request.kind)
    unmet = turn.judge("transition", turn.state.step, facts)
    return "; ".join((*unmet.fails, *unmet.waits)) or None


def _adopt(turn: Turn, request: Request, order: Order) -> Answer:
    """Put a commit in the candidate's place; the run goes on where it is looked at first."""
    try:
        commit = turn.site.adopt(order.commit or "")
    except EvalwrightError as error:
        return Answer(ok=False, message=f"{error.message}; {error.hint}")
    state = turn.state
    resume = turn.workflow.after_change(state.step if turn.step else state.came_from)
    pinned = {"workspaceId": state.run, "base": state.created["base"], "candidate": commit, "adopted": True}
    turn.journal.write("CANDIDATE_PINNED", pinned, human=order.by)
    _record(turn, request, order, {"decision": "approved", "adopted": commit, "resumeAt": resume})
    return Answer(ok=True, message=f"{commit[:12]} is adopted; the run goes on at {resume}")


def _record(turn: Turn, request: Request, order: Order, data: Mapping[str, Any]) -> None:
    ref = f"D-{turn.state.run}-{turn.state.decisions + 1}"
    more = {"reason": order.reason} if order.reason else {}
    subject = turn.subject()
    written = {"transition": request.transition, "subject": subject, "decisionRef": ref, "request": request.seq, **more, **data}
    turn.journal.write("DECISION_RECORDED", written, human=order.by)


def _again(turn: Turn, request: Request) -> None:
    """Ask the same about what is there now."""
    data = {"transition": request.transition, "subject": turn.subject(), "grants": dict(request.grants)}
    kind = request.kind if request.kind in ("final-decision", "infra") else "stale"
    reasons = [STALE, *(reason for reason in request.reasons if reason != STALE)]
    turn.journal.write("HUMAN_REQUESTED", data | {"kind": kind, "reasons": reasons, "effect": request.effect})


def _changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return sorted(key for key in {*before, *now} if before.get(key) != now.get(key))


def _extensions(grants: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if "attempts" in grants:
        found.append({"kind": "attempts", **grants["attempts"]})
    if "reviews" in grants:
        found.append({"kind": "reviews", "amount": grants["reviews"]})
    return found + [{"kind": kind, "amount": amount} for kind, amount in grants.get("budget", {}).items()]
