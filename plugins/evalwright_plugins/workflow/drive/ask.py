"""A typed request to a human: what for, why, and what exactly a yes does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from evalwright_plugins.workflow.record import Request

__all__ = ["Ask", "End", "Kind", "Moved", "Stop", "commands_of", "entering", "resuming"]

Kind = Literal["boundary", "final-decision", "finding-triage", "infra", "budget", "work-review-cap", "not-converging", "stale"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A stop. ``effect`` says in words what ``grants`` is for the reducer:

    ``clears`` (checks that are not made again here), ``attempts``, ``reviews``, ``budget`` (amounts by kind), ``accepts``
    (artifacts by digest), ``resume_at`` (a step). A yes to a stop after a step that clears nothing has the step done again.
    """

    kind: Kind
    transition: str
    reasons: tuple[str, ...]
    effect: str
    grants: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def data(self, subject: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of HUMAN_REQUESTED."""
        return {
            "transition": self.transition,
            "subject": dict(subject),
            "reasons": list(self.reasons),
            "kind": self.kind,
            "effect": self.effect,
            "grants": dict(self.grants),
        }


def entering(
    step: str, kind: Kind, *, reasons: tuple[str, ...], effect: str, grants: Mapping[str, Any] = MappingProxyType({})
) -> Ask:
    """Return a stop on the way into a step or a terminal."""
    return Ask(kind=kind, transition=f"enter-{step}", reasons=reasons, effect=effect, grants=grants)


def resuming(
    step: str, kind: Kind, *, reasons: tuple[str, ...], effect: str, grants: Mapping[str, Any] = MappingProxyType({})
) -> Ask:
    """Return a stop in the middle of a step, or after it."""
    return Ask(kind=kind, transition=f"resume-{step}", reasons=reasons, effect=effect, grants=grants)


@dataclass(frozen=True, slots=True)
class End:
    """A stop that nobody is asked about: a policy says that the run has failed."""

    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """No stop, but the run stands at another step now: the checks begin anew."""


Stop = Ask | End | Moved


def commands_of(run: str, request: Request) -> dict[str, str]:
    """Return the commands that lead on from a request, with what each does; a decision is of this request, and no later one."""
    this = f"--request {request.seq}"
    found = {f"evalwright work approve {run} {this}": "yes: go on"}
    if request.kind == "finding-triage":
        found[f"evalwright work findings list {run}"] = "read the findings"
    return found | {
        f"evalwright work reject {run} {this}": "no: the run ends as failed",
        f"evalwright work adopt {run} COMMIT {this}": "a commit of yours takes the candidate's place",
        f"evalwright work stop {run}": "the run ends as cancelled",
    }
