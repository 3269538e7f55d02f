"""What policies ask about a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from evalwright_plugins.workflow.findings import Severity
from evalwright_plugins.workflow.model.policy import BudgetKind, Grade

__all__ = ["Facts"]


class Facts(Protocol):
    """One question for each predicate. An answer of ``None`` means that nobody verified it."""

    def evidence_exists(self, kind: str, min_grade: Grade | None, step: str | None) -> bool | None:
        """Tell whether the candidate has passed evidence of a kind and of at least a grade, from any step or from one."""
        ...

    def artifact_accepted(self, name: str) -> bool | None:
        """Tell whether a person accepted the artifact as it is now."""
        ...

    def attempts_lt(self, step: str | None, limit: int) -> bool | None:
        """Tell whether a step, ``None`` for the one at hand, was attempted fewer than ``limit`` times."""
        ...

    def budget_remaining(self, kind: BudgetKind, at_least: float) -> bool | None:
        """Tell whether so much is left: tokens, US dollars, seconds, attempts of the step at hand, rounds of review."""
        ...

    def candidate_clean(self) -> bool | None:
        """Tell whether the work tree holds its candidate and nothing else."""
        ...

    def human_approved(self, transition: str | None, kind: str | None, by: Sequence[str] | None) -> bool | None:
        """Tell whether one of these people, ``None`` for anybody, approved the transition or the kind, of this candidate."""
        ...

    def finding_max_severity(self, severity: Severity) -> bool | None:
        """Tell whether no finding is more severe, not counting dismissed ones; unknown until the candidate was reviewed."""
        ...
