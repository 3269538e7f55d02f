"""The rules of a run: which event may follow, and what it changes. Pure, and O(1) per event.

Every event is refused or applied by one row of :data:`RULES`. :func:`refusal` is asked before an event is written, so that
no ledger ever holds one that :func:`advance` would not take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from evalwright.canonical import is_object
from evalwright.errors import LedgerDamaged
from evalwright_plugins.workflow.evidence import same_failure
from evalwright_plugins.workflow.findings import Finding
from evalwright_plugins.workflow.record.state import Decision, Outcome, Request, State, Status

__all__ = ["BLOCKED", "DISMISSED", "RULES", "advance", "refusal"]

BLOCKED = "outcome:findings-blocking"
DISMISSED = "findings-dismissed"
"""The cause of a transition that takes a review whose blocking findings were all dismissed for passed."""


Record = Mapping[str, Any]
Guard = Callable[[State, Record], str | None]
Change = Callable[[State, Record, Record], None]
ANY = frozenset(Status) - {Status.NONE}
LIVE = frozenset(status for status in ANY if not status.terminal)
RUNNING = frozenset({Status.RUNNING})
WAITING = frozenset({Status.WAITING_HUMAN})
RUN_EXTENSIONS = ("tokens", "cost", "wall")


@dataclass(frozen=True, slots=True)
class Rule:
    """In which states an event may come, what else must hold, and what it changes."""

    statuses: frozenset[Status]
    change: Change
    guard: Guard | None = None


def refusal(state: State, type: str, data: Record) -> str | None:
    """Return why an event may not be written now, ``None`` when it may."""
    rule = RULES.get(type)
    if rule is None:
        return f"{type} is no event of a run"
    if state.status not in rule.statuses:
        return f"{type} cannot come while the run is {state.status}"
    try:
        return rule.guard(state, data) if rule.guard else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return f"{type} lacks or garbles {error}"


def advance(state: State, event: Record) -> None:
    """Apply an event.

    Raises ``LedgerDamaged`` for one that the rules do not allow, and the state is then as it was; also for one that lacks or
    garbles what it changes, and then the state is not to be used.
    """
    name, data = str(event.get("type")), event.get("data")
    if not is_object(data):
        raise _not_allowed(event, state, f"{name} has no data")
    reason = refusal(state, name, data)
    if reason:
        raise _not_allowed(event, state, reason)
    try:
        RULES[name].change(state, data, event)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _not_allowed(event, state, f"{name} lacks or garbles {error}") from error
    state.seq = event["seq"]


def _not_allowed(event: Record, state: State, reason: str) -> LedgerDamaged:
    return LedgerDamaged(
        f"event {event['seq']}: {reason}",
        hint="the ledger was written by something that does not keep the rules of a run",
        after_seq=state.seq,
        reason=reason,
        damage="not_allowed",
    )


def _created(state: State, data: Record, event: Record) -> None:
    state.status, state.created = Status.CREATED, data
    state.run, state.work = event["run"], event.get("work", "")
    state.candidate, state.step = data["base"], data["entry"]
    state.budgets = {kind: data["budgets"][kind] for kind in RUN_EXTENSIONS if data.get("budgets", {}).get(kind) is not None}


def _may_start(state: State, _data: Record) -> str | None:
    if state.status is Status.WAITING_HUMAN and not (state.decision and state.decision.approved):
        return "the run waits for a decision"
    return None


def _started(state: State, _data: Record, _event: Record) -> None:
    """Take up the decision that the run waited for, if it did: with it end the question and what it stood for."""
    request, decision = state.request, state.decision
    if request and decision:
        grants = request.grants
        state.cleared |= set(grants.get("clears", ()))
        state.accepted |= grants.get("accepts", {})
        state.step = decision.data.get("resumeAt") or grants.get("resume_at") or state.step
        if decision.data.get("resumeAt") or not grants.get("clears"):
            state.outcome = None
        state.request = state.decision = None
    state.status = Status.RUNNING


def _bound(state: State, data: Record, _event: Record) -> None:
    state.workspace = data


def _may_start_step(state: State, data: Record) -> str | None:
    if state.outcome and not state.outcome.over:
        return f"step {state.outcome.step} is not done with"
    if data["step"] != state.step:
        return f"the run stands at {state.step}, not at {data['step']}"
    following = state.attempts.get(state.step, 0) + 1
    return None if data["attempt"] == following else f"attempt {data['attempt']} where {following} comes next"


def _step_started(state: State, data: Record, event: Record) -> None:
    state.attempts[data["step"]] = data["attempt"]
    state.outcome = Outcome(step=data["step"], attempt=data["attempt"], started={**data, "ts": event["ts"]})
    state.cleared = {key for key in state.cleared if not key.startswith("after:")}


def _in_step(state: State, _data: Record) -> str | None:
    return None if state.outcome else "no step is under way"


def _evidence(state: State, data: Record, _event: Record) -> None:
    outcome = state.outcome
    assert outcome
    kind = data["kind"]
    state.evidence[kind] = state.evidence[f"{kind}/{outcome.step}"] = {**data, "step": outcome.step}
    outcome.events.add(f"EVIDENCE_RECORDED/{kind}")
    if kind == "review":
        outcome.review = data
        _reviewed(state, data)
    else:
        outcome.evidence = data


def _reviewed(state: State, data: Record) -> None:
    state.review_rounds += 1
    state.reviewed.append(data["subject"])
    suppressed = set(data.get("suppressedFingerprints", ()))
    state.blockers = state.findings
    state.findings = tuple(one for one in data.get("findings", ()) if Finding.from_json(one).fingerprint not in suppressed)


def _may_finish_step(state: State, data: Record) -> str | None:
    outcome = state.outcome
    if outcome is None or outcome.finished is not None:
        return "no step is running"
    if (data["step"], data["attempt"]) != (outcome.step, outcome.attempt):
        return f"attempt {outcome.attempt} of {outcome.step} is running"
    return None


def _step_finished(state: State, data: Record, _event: Record) -> None:
    outcome = state.outcome
    assert outcome
    outcome.finished = data
    spent: Mapping[str, float | None] = data.get("spent") or {}
    state.untold |= {kind for kind, amount in spent.items() if amount is None}
    for kind, amount in spent.items():
        state.spent[kind] = state.spent.get(kind, 0.0) + (amount or 0.0)
    if data["status"] == "succeeded":
        state.failures.pop(outcome.step, None)
    infrastructure = state.infrastructure.get(outcome.step, 0)
    state.infrastructure[outcome.step] = infrastructure + 1 if data.get("infra") else 0


def _step_is_done(state: State, _data: Record) -> str | None:
    return None if state.outcome and state.outcome.finished is not None else "no step has finished"


def _consumed(state: State, data: Record, _event: Record) -> None:
    assert state.outcome
    state.outcome.events.add("BUDGET_CONSUMED")
    if data["kind"] == "attempts":
        state.charged[state.outcome.step] = state.charged.get(state.outcome.step, 0) + data["amount"]


def _may_extend(state: State, data: Record) -> str | None:
    if not (state.decision and state.decision.approved and state.decision.ref == data["approvalRef"]):
        return "nobody has approved it"
    key = _extension(data)
    return f"{key} was granted already" if key in state.applied else None


def _extended(state: State, data: Record, _event: Record) -> None:
    state.applied.add(_extension(data))
    kind, amount = data.get("kind", "attempts"), data["amount"]
    if kind in RUN_EXTENSIONS:
        state.budgets[kind] = state.budgets.get(kind, 0.0) + amount
    if kind == "attempts":
        state.granted[data["step"]] = state.granted.get(data["step"], 0) + amount
    if kind == "reviews" or data.get("scope") == "work":
        state.granted_reviews += amount


def _extension(data: Record) -> str:
    return f"{data['approvalRef']}:{data.get('kind', 'attempts')}:{data.get('step', '')}"


def _may_pin(state: State, data: Record) -> str | None:
    if data.get("adopted"):
        return None if state.status is Status.WAITING_HUMAN else "a commit is adopted only while the run waits"
    return _step_is_done(state, data) if state.status is Status.RUNNING else "the run waits for a decision"


def _pinned(state: State, data: Record, _event: Record) -> None:
    state.candidate = data["candidate"]
    if state.outcome:
        state.outcome.events.add("CANDIDATE_PINNED")


def _policy(state: State, data: Record, _event: Record) -> None:
    if state.outcome:
        state.outcome.events.add(f"POLICY_EVALUATED/{data['policy']}")


def _fingerprint(state: State, data: Record, _event: Record) -> None:
    outcome = state.outcome
    assert outcome
    outcome.repeated = same_failure(state.failures.get(data["step"], {}), data)
    outcome.events.add("FAILURE_FINGERPRINT")
    state.failures[data["step"]] = state.last_failure = data


def _may_move(state: State, data: Record) -> str | None:
    if data["from"] != state.step:
        return f"the run stands at {state.step}, not at {data['from']}"
    if data["cause"] == DISMISSED:
        return None if state.outcome is None and state.cause == BLOCKED else "no blocking findings led here"
    return _step_is_done(state, data)


def _moved(state: State, data: Record, _event: Record) -> None:
    if data["cause"] in ("outcome:succeeded", DISMISSED):
        state.passed[state.came_from if data["cause"] == DISMISSED else data["from"]] = state.candidate
    state.came_from, state.step, state.cause = data["from"], data["to"], data["cause"]
    state.outcome = None
    state.cleared = set()


def _may_ask(state: State, _data: Record) -> str | None:
    if state.outcome and state.outcome.finished is None:
        return f"step {state.outcome.step} is running"
    return "the last decision was not acted upon" if state.decision else None


def _asked(state: State, data: Record, event: Record) -> None:
    state.status, state.asked_at = Status.WAITING_HUMAN, state.asked_at or event["ts"]
    state.request = Request(
        seq=event["seq"],
        kind=data["kind"],
        transition=data["transition"],
        subject=data["subject"],
        reasons=tuple(data["reasons"]),
        grants=data.get("grants") or {},
        effect=str(data.get("effect") or ""),
    )


def _may_decide(state: State, data: Record) -> str | None:
    if state.request is None or state.decision:
        return "no request is open"
    if data["transition"] != state.request.transition:
        return f"{state.request.transition} is asked for, not {data['transition']}"
    return None if data["decision"] in ("approved", "rejected") else f"{data['decision']} is no decision"


def _decided(state: State, data: Record, event: Record) -> None:
    assert state.request
    by = event["actor"]["id"]
    state.decision = Decision(ref=data["decisionRef"], by=by, decision=data["decision"], data=data)
    state.decisions += 1
    state.waited_seconds += _seconds(state.asked_at, event["ts"])
    state.asked_at = ""
    if state.decision.approved and "adopted" not in data:
        kind, transition = state.request.kind, state.request.transition
        state.approvals.append(
            {"ref": data["decisionRef"], "by": by, "kind": kind, "transition": transition, "subject": data["subject"]}
        )


def _may_go_stale(state: State, data: Record) -> str | None:
    known = state.decision is not None and state.decision.ref == data["approvalRef"]
    return None if known else "that approval does not stand"


def _stale(state: State, data: Record, event: Record) -> None:
    state.decision, state.asked_at = None, event["ts"]
    state.approvals = [one for one in state.approvals if one["ref"] != data["approvalRef"]]


def _interrupted(state: State, _data: Record, _event: Record) -> None:
    state.interruptions += 1
    if state.outcome:
        state.outcome.interrupted = True


def _may_end(state: State, data: Record) -> str | None:
    status = Status(data["status"])
    if not status.terminal:
        return f"{status} is no end"
    if status is not Status.SUCCEEDED:
        return None
    final = state.request is not None and state.request.kind == "final-decision"
    approved = state.decision is not None and state.decision.approved
    return None if final and approved else "nobody has approved the final decision"


def _ended(state: State, data: Record, _event: Record) -> None:
    state.status, state.ended = Status(data["status"]), data
    state.request = state.decision = state.outcome = None


def _compacted(state: State, data: Record, _event: Record) -> None:
    state.compacted = data


def _nothing(_state: State, _data: Record, _event: Record) -> None:
    return


def _seconds(begin: str, end: str) -> float:
    try:
        return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds())
    except ValueError:
        return 0.0


RULES: Mapping[str, Rule] = {
    "RUN_CREATED": Rule(frozenset({Status.NONE}), _created),
    "RUN_STARTED": Rule(LIVE, _started, _may_start),
    "WORKSPACE_BOUND": Rule(LIVE, _bound),
    "STEP_STARTED": Rule(RUNNING, _step_started, _may_start_step),
    "EVIDENCE_RECORDED": Rule(RUNNING, _evidence, _in_step),
    "STEP_FINISHED": Rule(RUNNING, _step_finished, _may_finish_step),
    "BUDGET_CONSUMED": Rule(RUNNING, _consumed, _step_is_done),
    "BUDGET_EXTENDED": Rule(WAITING, _extended, _may_extend),
    "CANDIDATE_PINNED": Rule(RUNNING | WAITING, _pinned, _may_pin),
    "POLICY_EVALUATED": Rule(RUNNING | WAITING, _policy),
    "FAILURE_FINGERPRINT": Rule(RUNNING, _fingerprint, _step_is_done),
    "TRANSITION": Rule(RUNNING, _moved, _may_move),
    "CHECKPOINT": Rule(RUNNING, _nothing),
    "HUMAN_REQUESTED": Rule(RUNNING | WAITING, _asked, _may_ask),
    "DECISION_RECORDED": Rule(WAITING, _decided, _may_decide),
    "APPROVAL_STALE": Rule(WAITING, _stale, _may_go_stale),
    "RUN_INTERRUPTED": Rule(LIVE, _interrupted),
    "RUN_TERMINAL": Rule(LIVE, _ended, _may_end),
    "RUN_COMPACTED": Rule(frozenset(status for status in Status if status.terminal), _compacted),
    "LEDGER_TAIL_REPAIRED": Rule(ANY | {Status.NONE}, _nothing),
}
