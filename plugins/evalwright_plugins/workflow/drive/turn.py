"""What every check looks at: the plan, the record, the work tree, and the account of findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright_plugins.workflow.drive.ask import Ask
from evalwright_plugins.workflow.findings import Account
from evalwright_plugins.workflow.model.loading import Plan
from evalwright_plugins.workflow.model.policy import Policy
from evalwright_plugins.workflow.model.workflow import Step, Workflow
from evalwright_plugins.workflow.policies import evaluate
from evalwright_plugins.workflow.record import Journal, State
from evalwright_plugins.workflow.sites import RunFiles, Site

__all__ = ["UNVERIFIED", "Check", "Turn", "first"]

UNVERIFIED = "UNVERIFIED"


@dataclass(slots=True)
class Turn:
    """One look at a run. ``rounds_before`` are review rounds that earlier runs of the same work have used up."""

    plan: Plan
    files: RunFiles
    journal: Journal
    site: Site
    account: Account
    rounds_before: int = 0

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

    def judge(self, phase: str, place: str, facts: Any, *, write: bool = True) -> list[tuple[Policy, str]]:
        """Evaluate the policies of a phase that hold at a place; record each, and return the enforced ones that do not pass."""
        unmet: list[tuple[Policy, str]] = []
        for policy in self.workflow.policies:
            if policy.phase != phase or (policy.steps and place not in policy.steps):
                continue
            verdict = evaluate(policy, facts)
            if write:
                self.journal.write(
                    "POLICY_EVALUATED",
                    {
                        "policy": policy.id,
                        "phase": phase,
                        "result": verdict.result,
                        "enforcement": policy.enforcement,
                        "reason": verdict.reason,
                    },
                )
            if verdict.result not in ("PASS", "ADVISORY"):
                unmet.append((policy, verdict.reason))
        return unmet


Check = Callable[[Turn], Ask | None]


def first(checks: Sequence[Check], turn: Turn) -> Ask | None:
    """Return the first stop of checks made in their order."""
    return next((stop for check in checks if (stop := check(turn))), None)
