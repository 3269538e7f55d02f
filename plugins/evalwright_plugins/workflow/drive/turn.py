"""What every check looks at: the plan, the record, the work tree, and the account of findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evalwright_plugins.workflow.drive.ask import Stop
from evalwright_plugins.workflow.findings.book import Book
from evalwright_plugins.workflow.model.loading import Plan
from evalwright_plugins.workflow.model.policy import Phase
from evalwright_plugins.workflow.model.workflow import Step, Workflow
from evalwright_plugins.workflow.policies import Facts, evaluate
from evalwright_plugins.workflow.record import Journal, State
from evalwright_plugins.workflow.sites import RunFiles, Site

__all__ = ["UNVERIFIED", "Check", "Turn", "Unmet", "first"]

UNVERIFIED = "UNVERIFIED"


class Unmet(NamedTuple):
    """What enforced policies that do not pass say: those that ask people, and those that end the run."""

    waits: tuple[str, ...]
    fails: tuple[str, ...]


@dataclass(slots=True)
class Turn:
    """One look at a run. ``rounds_before`` are review rounds that earlier runs of the same work have used up; ``versions`` are
    those of the plugins that are used now.
    """

    plan: Plan
    files: RunFiles
    journal: Journal
    site: Site
    account: Book
    rounds_before: int = 0
    versions: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def state(self) -> State:
        """Return the state as it is now."""
        return self.journal.state

    @property
    def workflow(self) -> Workflow:
        """Return the workflow."""
        return self.plan.workflow

    @property
    def step(self) -> Step | None:
        """Return the step where the run stands, ``None`` at a terminal."""
        return self.workflow.step(self.state.step)

    def cleared(self, check: str) -> bool:
        """Tell whether a human has said that this check shall not stop the run here."""
        return check in self.state.cleared

    def attempts_left(self, step: str) -> int:
        """Return how many attempts of a step may still count."""
        state = self.state
        return self.workflow.attempts(step) + state.granted.get(step, 0) - state.charged.get(step, 0)

    def rounds_left(self) -> int | None:
        """Return how many review rounds the work has left, ``None`` without a cap."""
        cap = self.workflow.budgets.review_rounds_per_work
        if cap is None:
            return None
        return cap + self.state.granted_reviews - self.state.review_rounds - self.rounds_before

    def left(self, kind: str) -> float | None:
        """Return what is left of a budget of the run (``tokens``, ``cost``, ``wall``), ``None`` without one."""
        limit = self.state.budgets.get(kind)
        return None if limit is None else limit - self.state.spent.get(kind, 0.0)

    def subject(self) -> dict[str, Any]:
        """Return what a decision is about: it goes stale when any of it changes."""
        state, tree = self.state, self.site.tree
        artifacts = self.artifacts()
        evidence = state.outcome.evidence if state.outcome and state.outcome.evidence else state.evidence.get("command")
        return {
            "candidate": tree.head(),
            "diffDigest": tree.diff_digest(state.created["base"]),
            "planDigest": artifacts.get("plan", UNVERIFIED),
            "evidenceDigest": evidence["digest"] if evidence else UNVERIFIED,
            **({"artifacts": artifacts} if artifacts else {}),
        }

    def artifacts(self) -> dict[str, str]:
        """Return the digests of the documents that people accept, as they are now."""
        paths = self.plan.config.artifacts
        found = self.site.digests(list(paths.values()))
        return {name: found[path] for name, path in paths.items() if path in found}

    def judge(self, phase: Phase, place: str, facts: Facts) -> Unmet:
        """Evaluate the policies of a phase that concern a place, put each on record, and return what stops the run."""
        waits: list[str] = []
        fails: list[str] = []
        for policy in self.workflow.policies:
            if policy.concerns(phase, place):
                verdict = evaluate(policy, facts)
                said = {"result": verdict.result, "enforcement": policy.enforcement, "reason": verdict.reason}
                self.journal.write("POLICY_EVALUATED", {"policy": policy.id, "phase": phase, **said})
                if verdict.stops:
                    (fails if verdict.result == "FAIL" else waits).append(f"policy {policy.id}: {verdict.reason}")
        return Unmet(tuple(waits), tuple(fails))

    def passes(self, phase: Phase, place: str, facts: Facts) -> bool:
        """Tell whether nothing would stop the run if these were the facts; nothing is put on record."""
        concerned = [policy for policy in self.workflow.policies if policy.concerns(phase, place)]
        return not any(evaluate(policy, facts).stops for policy in concerned)


Check = Callable[[Turn], Stop | None]


def first(checks: Sequence[Check], turn: Turn) -> Stop | None:
    """Return the first stop of checks made in their order."""
    return next((stop for check in checks if (stop := check(turn))), None)
