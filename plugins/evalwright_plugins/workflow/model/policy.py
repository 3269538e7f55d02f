"""What a user writes as a policy: a condition on a run, where it is looked at, and what happens when it does not hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evalwright.canonical import is_object, is_sequence

__all__ = [
    "AttemptsLt",
    "BudgetKind",
    "BudgetRemaining",
    "EvidenceExists",
    "Grade",
    "HumanApproved",
    "Phase",
    "Policy",
    "Predicate",
]

MAX_DEPTH = 16
Grade = Literal["L0", "L1", "L2", "L3", "L4"]
Phase = Literal["pre", "post", "transition"]
BudgetKind = Literal["tokens", "cost", "wall", "attempts", "reviews"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class EvidenceExists(_Table):
    """There is passed evidence of a kind for the candidate, of at least a grade, from any step or from one."""

    kind: Name
    min_grade: Grade | None = None
    step: Name | None = None


class AttemptsLt(_Table):
    """A step, the one at hand without a name, was attempted fewer times than the limit."""

    step: Name | None = None
    limit: Annotated[int, Field(ge=1)]


class BudgetRemaining(_Table):
    """At least so much is left: tokens, US dollars (``cost``), seconds (``wall``), attempts of the step, rounds of review."""

    kind: BudgetKind
    at_least: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class HumanApproved(_Table):
    """A person approved a transition, or a kind of request, for the candidate as it is; ``by`` names who may have done so."""

    transition: Name | None = None
    kind: Name | None = None
    by: Names | None = None

    @model_validator(mode="after")
    def _one_subject(self) -> Self:
        if self.transition is not None and self.kind is not None:
            raise ValueError("name a transition or a kind, not both")
        return self


class Predicate(_Table):
    """A condition: exactly one of these keys."""

    all: Annotated[tuple[Predicate, ...], Field(strict=False)] | None = None
    any: Annotated[tuple[Predicate, ...], Field(strict=False)] | None = None
    not_: Predicate | None = Field(None, alias="not")
    evidence_exists: EvidenceExists | None = Field(None, alias="evidence.exists")
    artifact_accepted: Name | None = Field(None, alias="artifact.accepted")
    attempts_lt: AttemptsLt | None = Field(None, alias="attempts.lt")
    budget_remaining: BudgetRemaining | None = Field(None, alias="budget.remaining")
    candidate_clean: Literal[True] | None = Field(None, alias="candidate.clean")
    human_approved: HumanApproved | None = Field(None, alias="human.approved")
    finding_max_severity: Literal["P0", "P1", "P2", "P3"] | None = Field(None, alias="finding.max_severity")

    @model_validator(mode="after")
    def _exactly_one_key(self) -> Self:
        given = self.model_fields_set
        if len(given) != 1 or not getattr(self, next(iter(given))):
            keys = [field.alias or name for name, field in type(self).model_fields.items()]
            raise ValueError(f"a condition has exactly one of the keys {', '.join(keys)}, and nothing empty in it")
        return self

    @property
    def parts(self) -> tuple[Predicate, ...]:
        """Return the conditions that this one is made of; none for a question of fact."""
        return self.all or self.any or ((self.not_,) if self.not_ else ())

    def __str__(self) -> str:
        """Return it in one line, ``evidence.exists kind=review min_grade=L2``."""
        ((key, value),) = self.model_dump(by_alias=True, exclude_unset=True).items()
        if self.parts:
            return f"{key}({'; '.join(str(part) for part in self.parts)})"
        if value is True:
            return str(key)
        return f"{key} {_words(value) if is_object(value) else value}".rstrip()


class Policy(_Table):
    """A condition that a run has to meet: before a step, after it, or on the way to the next.

    ``steps`` are those it concerns, all without. When the condition does not hold, or nobody can tell, an ``ENFORCED`` policy
    asks a human (``wait``) or ends the run (``fail``), and an ``ADVISORY`` one is put on record.
    """

    id: Name
    phase: Phase
    steps: Names | None = None
    when: Predicate
    otherwise: Literal["wait", "fail"] = "wait"
    enforcement: Literal["ADVISORY", "ENFORCED"] = "ENFORCED"
    reason: str | None = None

    @field_validator("when")
    @classmethod
    def _not_too_deep(cls, when: Predicate) -> Predicate:
        level, depth = list(when.parts), 1
        while level:
            level, depth = [part for predicate in level for part in predicate.parts], depth + 1
        if depth > MAX_DEPTH:
            raise ValueError(f"conditions are nested {depth} deep; {MAX_DEPTH} is the most")
        return when

    def concerns(self, phase: Phase, step: str) -> bool:
        """Tell whether it is looked at in this phase of this step."""
        return self.phase == phase and (self.steps is None or step in self.steps)


def _words(table: dict[str, Any]) -> str:
    return " ".join(f"{key}={','.join(value) if is_sequence(value) else value}" for key, value in table.items())
