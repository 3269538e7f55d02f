"""What is checked after a step, in this order; the first stop counts. Each check leaves alone what is on record already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalwright_plugins.workflow.drive.ask import Ask, End, Stop, resuming
from evalwright_plugins.workflow.drive.attempt import review
from evalwright_plugins.workflow.drive.before import budgets
from evalwright_plugins.workflow.drive.facts import ANYBODY, RunFacts
from evalwright_plugins.workflow.drive.turn import Check, Turn
from evalwright_plugins.workflow.evidence import both_ends, failure_fingerprint
from evalwright_plugins.workflow.findings import Finding
from evalwright_plugins.workflow.model.workflow import Outcome
from evalwright_plugins.workflow.workspace import CandidateUnfit

__all__ = ["JUDGE", "SETTLE", "outcome_of"]


def trespass(turn: Turn) -> Ask | None:
    """A step has changed what it must not: a read-only one anything, another one what is not its own."""
    finished = _finished(turn)
    if finished["status"] != "blocked":
        return None
    step = turn.state.step
    return resuming(
        step,
        "boundary",
        reasons=(f"{'read-only ' * _readonly(turn)}step {step} has changed: {', '.join(finished.get('changed', ()))}",),
        effect=f"step {step} is done again, on the work tree as it is",
    )


def charge(turn: Turn) -> Ask | None:
    """Failures and review rounds cost an attempt; a success that writes, and infrastructure, cost nothing."""
    outcome, state = turn.state.outcome, turn.state
    assert outcome
    if "BUDGET_CONSUMED" not in outcome.events:
        finished = _finished(turn)
        counts = not finished.get("infra") and (finished["status"] != "succeeded" or turn.workflow.reviews(outcome.step))
        left = turn.attempts_left(state.step) - counts
        turn.journal.write("BUDGET_CONSUMED", {"kind": "attempts", "amount": int(counts), "remaining": left})
    return None


def infrastructure(turn: Turn) -> Ask | None:
    """What the candidate is not to blame for is retried as configured, then a human is asked. A step that the run's own budget
    of time has cut is a matter of the budget.
    """
    finished, step = _finished(turn), turn.state.step
    if not finished.get("infra"):
        return None
    if turn.state.infrastructure[step] <= turn.plan.config.retry.infrastructure:
        return None
    spent = budgets(turn) if finished["status"] == "timeout" else None
    if spent:
        return spent
    return resuming(
        step,
        "infra",
        reasons=(f"step {step} could not be done: {finished.get('reason', finished['status'])}", "no attempt was charged"),
        effect=f"step {step} is done again",
    )


def findings(turn: Turn) -> Ask | None:
    """Put a review's findings on record, and in the work's account."""
    outcome = turn.state.outcome
    assert outcome
    if turn.workflow.reviews(outcome.step) and _finished(turn)["status"] == "succeeded" and outcome.review is None:
        data = review(turn)
        raised = [Finding.from_json(record) for record in data["findings"]]
        turn.account.raise_findings(raised, run=turn.state.run, candidate=data["subject"])
        turn.journal.write("EVIDENCE_RECORDED", data)
    return None


def scope(turn: Turn) -> Ask | None:
    """Only paths of the run's scope may have changed."""
    prefixes, state = turn.plan.config.scope, turn.state
    if not prefixes or _readonly(turn) or turn.cleared("after:scope"):
        return None
    outside = turn.site.tree.out_of_scope(state.created["base"], prefixes)
    if not outside:
        return None
    return resuming(
        state.step,
        "boundary",
        reasons=(f"step {state.step} has changed paths outside the scope: {', '.join(outside[:20])}",),
        effect="these changes are accepted as they are, and the run goes on",
        grants={"clears": ["after:scope"]},
    )


def clean(turn: Turn) -> Ask | None:
    """A candidate is a commit."""
    if _readonly(turn) or outcome_of(turn) != "succeeded":
        return None
    step = turn.state.step
    try:
        turn.site.tree.candidate()
    except CandidateUnfit as error:
        return resuming(
            step,
            "boundary",
            reasons=(
                f"step {step} left no candidate: {error.message}",
                f"mend it by hand in {turn.site.tree.place.root}, commit, and adopt the commit; or {error.hint}",
            ),
            effect=f"step {step} is done again, on the work tree as it is",
        )
    return None


def pin(turn: Turn) -> Ask | None:
    """Put the candidate on record as git tells it."""
    state = turn.state
    head = turn.site.tree.head()
    if head != state.candidate and not _readonly(turn):
        data = {"workspaceId": state.run, "base": state.created["base"], "candidate": head}
        turn.journal.write("CANDIDATE_PINNED", data)
    return None


def policies(turn: Turn) -> Stop | None:
    """The policies that hold after the step."""
    step = turn.state.step
    unmet = turn.judge("post", step, RunFacts(turn))
    if unmet.fails:
        return End("; ".join(unmet.fails))
    if not unmet.waits:
        return None
    asked = resuming(
        step,
        "boundary",
        reasons=unmet.waits,
        effect=f"step {step} is done again",
    )
    if not turn.passes("post", step, RunFacts(turn, approving=ANYBODY, to=asked.transition, kind=asked.kind)):
        return asked
    return replace(
        asked,
        effect=f"the candidate and the documents are accepted as they are, and the policies are asked again after step {step}",
        grants={"clears": ["after:yes"], "accepts": turn.artifacts()},
    )


def repeated(turn: Turn) -> Ask | None:
    """The same failure twice in a row: whoever should have mended it did not."""
    outcome = turn.state.outcome
    assert outcome
    if outcome_of(turn) != "failed":
        return None
    if "FAILURE_FINGERPRINT" not in outcome.events:
        text = both_ends(turn.files.log(outcome.step, outcome.attempt))
        assert outcome.evidence
        digest = turn.site.tree.diff_digest(turn.state.created["base"])
        code = _finished(turn)["exitCode"]
        turn.journal.write(
            "FAILURE_FINGERPRINT", failure_fingerprint(outcome.step, outcome.evidence["command"], code, text, digest)
        )
    if not outcome.repeated or turn.cleared("after:repeated"):
        return None
    return resuming(
        outcome.step,
        "not-converging",
        reasons=(f"{outcome.step} has failed twice in a row in the same way",),
        effect="the failure is passed on once more",
        grants={"clears": ["after:repeated"]},
    )


def edge(turn: Turn) -> Ask | None:
    """Go where the outcome leads."""
    state, outcome = turn.state, outcome_of(turn)
    target = turn.workflow.edge(state.step, outcome)
    if target is None:
        return resuming(
            state.step,
            "boundary",
            reasons=(f"nothing follows when {state.step} ends as {outcome}",),
            effect=f"step {state.step} is done again",
        )
    turn.journal.write("TRANSITION", {"from": state.step, "to": target, "cause": f"outcome:{outcome}"})
    head, dirty = turn.site.tree.head(), outcome == "failed" and bool(turn.site.tree.dirty())
    turn.journal.write(
        "CHECKPOINT",
        {
            "resumePoint": {"step": target, "attempt": state.attempts.get(target, 0) + 1},
            "workspaceStates": [{"workspaceId": state.run, "head": head, "dirty": dirty}],
        },
    )
    return None


SETTLE: tuple[Check, ...] = (trespass, charge, infrastructure)
"""What tells whether the attempt counts at all; a step whose infrastructure failed goes no further."""

JUDGE: tuple[Check, ...] = (findings, scope, clean, pin, policies, repeated, edge)


def outcome_of(turn: Turn) -> Outcome:
    """Return how a step that has finished is to be taken."""
    outcome = turn.state.outcome
    assert outcome
    if _finished(turn)["status"] != "succeeded":
        return "failed"
    return "findings-blocking" if outcome.review and outcome.review["status"] == "failed" else "succeeded"


def _finished(turn: Turn) -> dict[str, Any]:
    outcome = turn.state.outcome
    assert outcome
    assert outcome.finished is not None
    return dict(outcome.finished)


def _readonly(turn: Turn) -> bool:
    step = turn.step
    return step is not None and step.readonly
