"""What is checked before a step, in this order; the first stop counts."""

from __future__ import annotations

from typing import Any

from evalwright_plugins.workflow.drive.ask import Ask, End, Moved, Stop, entering, resuming
from evalwright_plugins.workflow.drive.facts import RunFacts
from evalwright_plugins.workflow.drive.turn import Check, Turn
from evalwright_plugins.workflow.findings import Finding, not_converging, split
from evalwright_plugins.workflow.record import BLOCKED, DISMISSED
from evalwright_plugins.workflow.workspace import printable

__all__ = ["BEFORE"]

TOTAL = 3
BUDGETS = {"tokens": "tokens", "cost": "dollars", "wall": "seconds of work"}


def interrupted(turn: Turn) -> Ask | None:
    """A step that was lost half-way may have left half of a change."""
    outcome = turn.state.outcome
    if outcome is None or turn.cleared("after:interrupted"):
        return None
    dirty = turn.site.tree.dirty()
    if not dirty:
        return None
    return resuming(
        outcome.step,
        "infra",
        reasons=(f"step {outcome.step} was cut off and left changes that are not committed: {_some(dirty)}",),
        effect=f"step {outcome.step} is done again on the work tree as it is",
        grants={"clears": ["after:interrupted"]},
    )


def final_decision(turn: Turn) -> Stop | None:
    """A terminal is entered by people."""
    if turn.step is not None:
        return None
    unmet = turn.judge("transition", turn.state.step, RunFacts(turn))
    if unmet.fails:
        return End("; ".join(unmet.fails))
    return entering(
        turn.state.step,
        "final-decision",
        reasons=("the work is done; a human decides", *unmet.waits),
        effect="the run ends as SUCCEEDED; nothing is merged or pushed",
    )


def boundary(turn: Turn) -> Ask | None:
    """``stop_at`` names steps that people want to be asked about."""
    step = turn.state.step
    if step not in turn.plan.config.stop_at or turn.cleared("stop_at"):
        return None
    return entering(
        turn.state.step,
        "boundary",
        reasons=(f"stop_at has {step}",),
        effect=f"step {step} begins",
        grants={"clears": ["stop_at"]},
    )


def needs(turn: Turn) -> Ask | None:
    """Some steps make sense only on a candidate that others have passed."""
    step, state = turn.step, turn.state
    assert step
    head = turn.site.tree.head()
    missing = [name for name in step.needs if state.passed.get(name) != head]
    if not missing or turn.cleared("needs"):
        return None
    return entering(
        turn.state.step,
        "boundary",
        reasons=(f"{step.id} needs {', '.join(missing)} to have succeeded on this candidate",),
        effect=f"step {step.id} begins all the same",
        grants={"clears": ["needs"]},
    )


def worker(turn: Turn) -> Ask | None:
    """A step that nobody is configured for is done by people, who then adopt their commit."""
    step = turn.step
    assert step
    if step.table in turn.plan.config.workers or turn.cleared("worker"):
        return None
    following = turn.workflow.edge(step.id, "succeeded") or step.id
    return entering(
        turn.state.step,
        "boundary",
        reasons=(f"no worker {step.table} is configured: do step {step.id} by hand in the work tree, then adopt your commit",),
        effect=f"step {step.id} counts as done by hand; the run goes on at {following}",
        grants={"clears": [], "resume_at": following},
    )


def dismissed(turn: Turn) -> Stop | None:
    """When people have dismissed everything that blocked, the review counts as passed."""
    state = turn.state
    target = turn.workflow.edge(state.came_from, "succeeded") if state.cause == BLOCKED else None
    if target is None or state.outcome or _blocking(turn):
        return None
    turn.journal.write("TRANSITION", {"from": state.step, "to": target, "cause": DISMISSED})
    return Moved()


def triage(turn: Turn) -> Ask | None:
    """Blocking findings are looked at by people before anybody acts on them."""
    state = turn.state
    if state.cause != BLOCKED or state.outcome or turn.plan.config.triage == "auto" or turn.cleared("triage"):
        return None
    blocking = _blocking(turn)
    listed = tuple(f"[{one.severity} {one.fingerprint}] {one.summary}" for one in blocking)
    return entering(
        turn.state.step,
        "finding-triage",
        reasons=(f"{state.came_from} has {len(blocking)} blocking finding{'s' * (len(blocking) != 1)}", *listed),
        effect=f"step {state.step} begins with the findings that are not dismissed",
        grants=_spent(turn) | {"clears": ["triage"]},
    )


def converging(turn: Turn) -> Ask | None:
    """What was found before and fixed since is not found again, and findings do not grow in number."""
    state = turn.state
    if state.cause != BLOCKED or state.outcome or turn.cleared("converging"):
        return None
    old, new = ([Finding.from_json(record) for record in records] for records in (state.blockers, state.findings))
    reason = not_converging(split(old, turn.account.dismissed)[0], split(new, turn.account.dismissed)[0])
    if reason is None:
        return None
    return entering(
        turn.state.step,
        "not-converging",
        reasons=(reason,),
        effect=f"step {state.step} begins all the same",
        grants=_spent(turn) | {"clears": ["converging", "triage"]},
    )


def spent(turn: Turn) -> Ask | None:
    """What led here has used up its last attempt or round: ask before anybody works on what could not be judged again."""
    state, grants = turn.state, _spent(turn)
    if not grants or state.outcome:
        return None
    rounds = "reviews" in grants
    return entering(
        turn.state.step,
        "work-review-cap" if rounds else "budget",
        reasons=(_review_reason(turn) if rounds else f"{state.came_from} has failed its last attempt",),
        effect=f"step {state.step} begins, and {state.came_from} may be done once more",
        grants=grants,
    )


def review_cap(turn: Turn) -> Ask | None:
    """Review rounds are counted over all runs of a work."""
    state, left = turn.state, turn.rounds_left()
    if left is None or left > 0 or not turn.workflow.reviews(state.step):
        return None
    return entering(
        turn.state.step,
        "work-review-cap",
        reasons=(_review_reason(turn),),
        effect="one more review round, in this run and of this work",
        grants={"reviews": 1, "clears": []},
    )


def policies(turn: Turn) -> Stop | None:
    """The policies that hold before the step."""
    step = turn.state.step
    unmet = turn.judge("pre", step, RunFacts(turn))
    if unmet.fails:
        return End("; ".join(unmet.fails))
    if not unmet.waits:
        return None
    return entering(
        turn.state.step,
        "boundary",
        reasons=unmet.waits,
        effect=f"the documents are accepted as they are, and the policies are asked again before step {step}",
        grants={"clears": [], "accepts": turn.artifacts()},
    )


def attempts(turn: Turn) -> Ask | None:
    """Attempts that count are bounded, and so are all together, since successes cost nothing."""
    state, step = turn.state, turn.state.step
    limit = turn.workflow.attempts(step) + state.granted.get(step, 0)
    begun = state.attempts.get(step, 0)
    if turn.attempts_left(step) > 0 and begun < TOTAL * limit:
        return None
    reason = f"{step} has used its {limit} attempts" if turn.attempts_left(step) <= 0 else f"{step} was begun {begun} times"
    return entering(
        turn.state.step,
        "budget",
        reasons=(reason,),
        effect=f"one more attempt of {step}",
        grants={"attempts": {"step": step, "amount": 1}, "clears": []},
    )


def budgets(turn: Turn) -> Ask | None:
    """Tokens, dollars and seconds of work that the run may use."""
    over = {kind: turn.state.budgets[kind] for kind in BUDGETS if (left := turn.left(kind)) is not None and left <= 0}
    if not over:
        return None
    first = {kind: turn.state.created.get("budgets", {}).get(kind, limit) for kind, limit in over.items()}
    return entering(
        turn.state.step,
        "budget",
        reasons=tuple(f"{turn.state.spent[kind]:g} of {limit:g} {BUDGETS[kind]} are used" for kind, limit in over.items()),
        effect=", ".join(f"{amount:g} more {BUDGETS[kind]}" for kind, amount in first.items()),
        grants={"budget": first, "clears": []},
    )


BEFORE: tuple[Check, ...] = (
    interrupted,
    final_decision,
    dismissed,
    boundary,
    converging,
    triage,
    spent,
    needs,
    worker,
    review_cap,
    policies,
    attempts,
    budgets,
)


def _blocking(turn: Turn) -> tuple[Finding, ...]:
    return split([Finding.from_json(record) for record in turn.state.findings], turn.account.dismissed).blocking


def _spent(turn: Turn) -> dict[str, Any]:
    """Return what must be granted before the step that led here could be done again."""
    state, source = turn.state, turn.state.came_from
    if state.cause == "outcome:succeeded" or not source:
        return {}
    grants: dict[str, Any] = {}
    left = turn.rounds_left()
    if turn.workflow.reviews(source) and left is not None and left <= 0:
        grants["reviews"] = 1
    if turn.attempts_left(source) <= 0:
        grants["attempts"] = {"step": source, "amount": 1}
    return grants


def _review_reason(turn: Turn) -> str:
    rounds, cap = turn.state.review_rounds + turn.rounds_before, turn.workflow.budgets.review_rounds_per_work
    return f"{turn.state.work} has had {rounds} review round{'s' * (rounds != 1)} (review_rounds_per_work is {cap})"


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - 5} more" if len(paths) > 5 else ""
    return ", ".join(map(printable, paths[:5])) + more
