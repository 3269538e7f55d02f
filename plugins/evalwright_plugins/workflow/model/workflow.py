"""A workflow: which steps follow which, who does them, what they may cost, and where people are asked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from evalwright_plugins.workflow.model.policy import Grade, Policy

__all__ = ["Budgets", "Outcome", "Step", "Transition", "Workflow"]

Outcome = Literal["succeeded", "failed", "findings-blocking"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,60}$")]
Count = Annotated[int, Field(ge=1)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
ATTEMPTS = 4


class Step(BaseModel, extra="forbid", frozen=True, strict=True):
    """One step. ``worker`` is a table of the run's configuration, the step's own name by default; ``timeout`` in seconds.

    A ``readonly`` step may change nothing, not even an ignored file. The success of a ``reusable`` step holds for every run
    that comes to the same tree with the same command. ``needs`` names steps that must have succeeded on the candidate as it is.
    """

    id: Name
    worker: Name | None = None
    readonly: bool = False
    reusable: bool = False
    grade: Grade = "L2"
    timeout: Amount | None = None
    needs: list[Name] = []

    @property
    def table(self) -> str:
        """Return the name of the worker's table."""
        return self.worker or self.id


class Transition(BaseModel, extra="forbid", frozen=True, strict=True):
    """Where an outcome of a step leads."""

    source: Name = Field(alias="from")
    on: Outcome
    target: Name = Field(alias="to")


class Budgets(BaseModel, extra="forbid", frozen=True, strict=True):
    """What a run may use up: attempts that count by step, review rounds of all runs of a work, tokens, dollars, and seconds
    of work.
    """

    max_attempts: dict[Name, Count] = {}
    review_rounds_per_work: Count | None = None
    tokens: Count | None = None
    cost: Amount | None = None
    wall: Amount | None = None


class Workflow(BaseModel, extra="forbid", frozen=True, strict=True):
    """Steps in their order, and what differs from going to the next one after a success."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    entry: Name | None = None
    steps: Annotated[list[Step], Field(min_length=1)]
    transitions: list[Transition] = []
    terminal: Annotated[list[Name], Field(min_length=1)]
    budgets: Budgets = Budgets()
    policies: list[Policy] = []

    @property
    def first(self) -> str:
        """Return the step that a run begins with."""
        return self.entry or self.steps[0].id

    def step(self, name: str) -> Step | None:
        """Return a step, ``None`` for a terminal."""
        return next((step for step in self.steps if step.id == name), None)

    def edge(self, step: str, outcome: Outcome) -> str | None:
        """Return where an outcome leads: a transition, else after a success the next step, in the end the first terminal."""
        for transition in self.transitions:
            if (transition.source, transition.on) == (step, outcome):
                return transition.target
        if outcome != "succeeded":
            return None
        names = [one.id for one in self.steps]
        return [*names[1:], self.terminal[0]][names.index(step)]

    def reviews(self, step: str) -> bool:
        """Tell whether a step is a review: one whose findings lead somewhere."""
        return self.edge(step, "findings-blocking") is not None

    def mender(self, step: str) -> str | None:
        """Return who mends what a step finds, ``None`` for a step that finds nothing but makes something."""
        return self.edge(step, "findings-blocking") or self.edge(step, "failed")

    def after_change(self, step: str) -> str:
        """Return where a change that people made at a step is looked at first: where the success of whoever would have made
        it leads.
        """
        maker = self.mender(step) or step
        return self.edge(maker, "succeeded") or step

    def attempts(self, step: str) -> int:
        """Return how many attempts of a step may count."""
        return self.budgets.max_attempts.get(step, ATTEMPTS)
