"""What is known of a run when a policy asks: true, false, or ``None`` for what nobody has verified."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.findings import Finding, Severity, more_severe

__all__ = ["ANYBODY", "RunFacts"]

GRADES = ("L0", "L1", "L2", "L3", "L4")


ANYBODY = object()
"""Stands for whoever may say yes, where it is weighed whether a yes would help."""


class RunFacts:
    """The facts of one turn. ``approving`` is the person whose yes is being weighed, to the transition ``to``."""

    def __init__(
        self, turn: Turn, *, approving: str | object | None = None, to: str | None = None, kind: str | None = None
    ) -> None:
        self._turn = turn
        self._approving = approving
        self._to = to
        self._kind = kind

    def evidence_exists(self, kind: str, min_grade: str | None, step: str | None) -> bool | None:
        """Tell whether evidence that passed exists for the candidate as it is; evidence of another candidate tells nothing."""
        found = [
            record
            for place, record in self._turn.state.evidence.items()
            if (place == f"{kind}/{step}" if step else place.startswith(f"{kind}/")) and self._on_candidate(record["subject"])
        ]
        if not found:
            return None
        least = GRADES.index(min_grade) if min_grade else 0
        return any(record["status"] == "passed" and GRADES.index(record["grade"]) >= least for record in found)

    def artifact_accepted(self, name: str) -> bool | None:
        """Tell whether a human has accepted a document as it is now."""
        digest = self._turn.artifacts().get(name)
        if digest is None:
            return None
        return self._approving is ANYBODY or self._turn.state.accepted.get(name) == digest

    def attempts_lt(self, step: str | None, limit: int) -> bool:
        """Tell whether fewer attempts than ``limit`` were begun."""
        state = self._turn.state
        return state.attempts.get(step or state.step, 0) < limit

    def budget_remaining(self, kind: str, at_least: float) -> bool | None:
        """Tell whether so much of a budget is left; unknown where there is none."""
        turn = self._turn
        if kind == "attempts":
            return turn.attempts_left(turn.state.step) >= at_least
        left = turn.rounds_left() if kind == "reviews" else turn.left(kind)
        return None if left is None or (kind in turn.state.untold and left >= at_least) else left >= at_least

    def candidate_clean(self) -> bool:
        """Tell whether the work tree is exactly a commit."""
        return not self._turn.site.tree.dirty()

    def human_approved(self, transition: str | None, kind: str | None, by: Sequence[str] | None) -> bool:
        """Tell whether a human has said yes to that, of the candidate as it is; a yes to another candidate tells nothing."""
        known: list[tuple[str | None, str | None, str | object]] = [
            (one["transition"], one["kind"], one["by"])
            for one in self._turn.state.approvals
            if self._on_candidate(one["subject"].get("candidate"))
        ]
        if self._approving is not None:
            known.append((self._to, self._kind, self._approving))
        return any(
            (transition is None or transition == to)
            and (kind is None or kind == of)
            and (by is None or who is ANYBODY or who in by)
            for to, of, who in known
        )

    def finding_max_severity(self, severity: Severity) -> bool | None:
        """Tell whether no finding stands that is more severe; dismissed ones do not stand. Unknown before the candidate, or one
        that had such a finding, was reviewed.
        """
        state = self._turn.state
        review = state.evidence.get("review")
        if review is None:
            return None
        findings = [Finding.from_json(record) for record in state.findings]
        if more_severe(findings, severity, self._turn.account.dismissed):
            return False
        return True if self._on_candidate(review["subject"]) else None

    def _on_candidate(self, commit: str | None) -> bool:
        return commit == self._turn.site.tree.head()
