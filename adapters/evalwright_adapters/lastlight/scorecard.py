"""A scorecard: what the harness says about one of its runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from evalwright_adapters.lastlight.instances import InstanceId
from evalwright_adapters.lastlight.source import read_bytes, validated

__all__ = ["Behavioral", "Card", "Gold", "Result", "Review", "Trace", "read_card"]

Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
STAMP = re.compile(r"(\d{4}-\d\d-\d\d)_(\d\d)(\d\d)(\d\d)")
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Check(BaseModel, extra="ignore"):
    """One assertion on what the agent did."""

    name: str
    ok: bool
    detail: str = ""


class Behavioral(BaseModel, extra="ignore"):
    """All assertions of an instance."""

    ok: bool
    checks: list[Check] = []


class Gold(BaseModel, extra="ignore"):
    """A gold finding, and which of the posted ones was matched with it."""

    description: str = ""
    severity: str = "unknown"
    matched_finding: int | None = Field(default=None, alias="matchedFinding")


class Posted(BaseModel, extra="ignore"):
    """A finding that the judge read out of the review."""

    description: str = ""
    file: str | None = None
    matched_gold: int | None = Field(default=None, alias="matchedGold")


class Trace(BaseModel, extra="ignore"):
    """How the judge came to its counts: its replies stand as they were."""

    judge_model: str = Field(default="", alias="judgeModel")
    review_text: str = Field(default="", alias="reviewText")
    findings: list[Posted] = []
    gold: list[Gold] = []
    raw_extract: str | None = Field(default=None, alias="rawExtract")
    raw_match: str | None = Field(default=None, alias="rawMatch")


class Review(BaseModel, extra="ignore"):
    """Findings of a review against gold findings."""

    posted: Count
    gold: Count
    matched: Count
    beta: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    trace: Trace | None = None


class Session(BaseModel, extra="ignore"):
    """The transcript of one trial, by path relative to the scorecard."""

    trial: int = 1
    full: str | None = None


class Result(BaseModel, extra="ignore"):
    """One instance under one model. Times are in milliseconds, cost in US dollars; ``raw`` is all that the card says of it."""

    instance_id: InstanceId
    model: str
    tier: str = ""
    workflow_succeeded: bool = Field(default=True, alias="workflowSucceeded")
    error: str | None = None
    input_tokens: Count | None = Field(default=None, alias="inputTokens")
    cached_tokens: Count | None = Field(default=None, alias="cachedTokens")
    output_tokens: Count | None = Field(default=None, alias="outputTokens")
    cost: Amount | None = Field(default=None, alias="costUsd")
    duration_ms: Amount | None = Field(default=None, alias="durationMs")
    patch_file: str | None = Field(default=None, alias="modelPatchFile")
    execution_log: str | None = Field(default=None, alias="executionLog")
    behavioral: Behavioral | None = None
    resolved: bool | None = None
    fail_to_pass: list[Any] = Field(default=[], alias="failToPass")
    pass_to_pass: list[Any] = Field(default=[], alias="passToPass")
    review: Review | None = None
    sessions: list[Session] = []
    raw: dict[str, Any] = {}

    @property
    def measured(self) -> bool:
        """Tell whether consumption was measured: a scorecard that was put together from scores holds zeros throughout."""
        return any((self.input_tokens, self.cached_tokens, self.output_tokens, self.cost, self.duration_ms))


class _Meta(BaseModel, extra="ignore"):
    run_id: str = Field(default="", alias="runId")
    generated: str = Field(default="", alias="generatedAt")
    tiers: list[str] = []


class _Scorecard(BaseModel, extra="ignore"):
    results: list[Result]
    meta: _Meta = _Meta()


class _RawScorecard(BaseModel, extra="ignore"):
    results: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A scorecard and the directory that its paths lead into. ``created`` is a UTC time in ISO 8601."""

    directory: Path
    run_id: str
    created: str
    results: Sequence[Result]


def read_card(path: Path) -> Card:
    """Return a scorecard. Raises ``UsageError`` that names the file and the wrong key."""
    content = read_bytes(path)
    card = validated(_Scorecard, content, path)
    raw = validated(_RawScorecard, content, path)
    only = card.meta.tiers[0] if len(card.meta.tiers) == 1 else ""
    results = [
        result.model_copy(update={"tier": result.tier or only, "raw": said})
        for result, said in zip(card.results, raw.results, strict=True)
    ]
    run_id = card.meta.run_id or path.parent.name
    created = _moment(card.meta.generated) or _moment(run_id) or "1970-01-01T00:00:00Z"
    return Card(directory=path.parent, run_id=run_id, created=created, results=results)


def _moment(text: str) -> str | None:
    if ISO.fullmatch(text):
        return text
    stamp = STAMP.match(text)
    return f"{stamp[1]}T{stamp[2]}:{stamp[3]}:{stamp[4]}Z" if stamp else None
