"""What is known of a run when a policy asks: true, false, or ``None`` for what nobody has verified."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.findings import Finding, Severity, more_severe

__all__ = ["RunFacts"]

GRADES = ("L0", "L1", "L2", "L3", "L4")


class RunFacts:
    """The facts of one turn. ``approving`` is the person whose yes is being weighed, to the transition ``to``."""

    def __init__(self, turn: Turn, *, approving: str | None = None, to: str | None = None, kind: str | None = None) -> None:
        self._turn = turn
        self._approving = approving
        self._to = to
        self._kind = kind

    def evidence_exists(self, kind: str, min_grade: str | None, step: str | None) -> bool | None:
        """Tell whether evidence that passed exists for the candidate as it is; evidence of another candidate tells nothing."""
        state = self._turn.state
        record = state.evidence.get(f"{kind}/{step}" if step else kind)
        if record is None:
            return None
        if record["subject"] != self._turn.site.tree.head():
            return None
        good = record["status"] == "passed"
        return good and (min_grade is None or GRADES.index(record["grade"]) >= GRADES.index(min_grade))

    def artifact_accepted(self, name: str) -> bool | None:
        """Tell whether a human has accepted a document as it is now."""
        digest = self._turn.artifacts().get(name)
        if digest is None:
            return None
        return self._turn.state.accepted.get(name) == digest

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
        """Tell whether a human has said yes to that, on the candidate as it is or on the way to it."""
        known = [(one["transition"], one["kind"], one["by"]) for one in self._turn.state.approvals]
        if self._approving is not None:
            known.append((self._to, self._kind, self._approving))
        return any(
            (transition is None or transition == to) and (kind is None or kind == of) and (by is None or who in by)
            for to, of, who in known
        )

    def finding_max_severity(self, severity: Severity) -> bool | None:
        """Tell whether no finding stands that is more severe; dismissed ones do not stand. Unknown before any review."""
        state = self._turn.state
        if state.evidence.get("review") is None:
            return None
        findings = [Finding.from_json(record) for record in state.findings]
        return not more_severe(findings, severity, self._turn.account.dismissed)
