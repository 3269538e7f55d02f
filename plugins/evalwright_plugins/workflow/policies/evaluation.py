"""Conditions in Kleene's strong three-valued logic, and what a policy makes of their value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright_plugins.workflow.model.policy import Policy, Predicate
from evalwright_plugins.workflow.policies.facts import Facts

__all__ = ["Result", "Verdict", "evaluate"]

Result = Literal["PASS", "WAIT_HUMAN", "FAIL", "ADVISORY"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a policy says of a run, and why."""

    result: Result
    reason: str

    @property
    def stops(self) -> bool:
        """Tell whether the run must not go on by itself."""
        return self.result in ("WAIT_HUMAN", "FAIL")


@dataclass(frozen=True, slots=True)
class _Judged:
    """The value of a condition, ``None`` for unverified, and the facts that keep it from being true."""

    value: bool | None
    because: tuple[str, ...] = ()


def evaluate(policy: Policy, facts: Facts) -> Verdict:
    """Return what the policy says. Only a condition known to be true passes; an unverified one counts like a false one.

    Facts are asked in the order of the condition, and only as long as its value is open (Kleene 1952, section 64).
    """
    judged = _judged(policy.when, facts)
    if judged.value is True:
        return Verdict("PASS", "all conditions hold")
    why = "; ".join(dict.fromkeys(judged.because))
    reason = f"{policy.reason} ({why})" if policy.reason else why
    if policy.enforcement == "ADVISORY":
        return Verdict("ADVISORY", reason)
    return Verdict("FAIL" if policy.otherwise == "fail" else "WAIT_HUMAN", reason)


def _judged(predicate: Predicate, facts: Facts) -> _Judged:
    if predicate.all:
        return _conjunction(predicate.all, facts)
    if predicate.any:
        return _disjunction(predicate.any, facts)
    if predicate.not_:
        return _negation(predicate.not_, facts)
    answer = _answer(predicate, facts)
    if answer is True:
        return _Judged(True)
    if answer is False:
        return _Judged(False, (f"not met: {predicate}",))
    return _Judged(None, (f"unverified: {predicate}",))


def _conjunction(parts: Sequence[Predicate], facts: Facts) -> _Judged:
    unknown: list[str] = []
    for part in parts:
        judged = _judged(part, facts)
        if judged.value is False:
            return judged
        unknown += judged.because
    return _Judged(None if unknown else True, tuple(unknown))


def _disjunction(parts: Sequence[Predicate], facts: Facts) -> _Judged:
    values: list[bool | None] = []
    because: list[str] = []
    for part in parts:
        judged = _judged(part, facts)
        if judged.value is True:
            return judged
        values.append(judged.value)
        because += judged.because
    return _Judged(None if None in values else False, tuple(because))


def _negation(part: Predicate, facts: Facts) -> _Judged:
    judged = _judged(part, facts)
    if judged.value is None:
        return judged
    return _Judged(False, (f"not met: not({part})",)) if judged.value else _Judged(True)


def _answer(predicate: Predicate, facts: Facts) -> bool | None:
    if evidence := predicate.evidence_exists:
        return facts.evidence_exists(evidence.kind, evidence.min_grade, evidence.step)
    if predicate.artifact_accepted:
        return facts.artifact_accepted(predicate.artifact_accepted)
    if attempts := predicate.attempts_lt:
        return facts.attempts_lt(attempts.step, attempts.limit)
    if budget := predicate.budget_remaining:
        return facts.budget_remaining(budget.kind, budget.at_least)
    if human := predicate.human_approved:
        return facts.human_approved(human.transition, human.kind, human.by)
    if predicate.finding_max_severity:
        return facts.finding_max_severity(predicate.finding_max_severity)
    return facts.candidate_clean()
