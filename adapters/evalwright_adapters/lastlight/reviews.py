"""Reviews against gold findings: counts, scores, and the judge's replies read again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from evalwright.interfaces import ImportedScore
from evalwright.model import Score
from evalwright.stats import FindingCounts, finding_scores
from evalwright_adapters.lastlight.scorecard import Gold, Review, Trace

__all__ = ["counts_of", "is_fenced", "recall_by_severity", "replayed", "review_score"]

M = TypeVar("M", bound=BaseModel)
Index = Annotated[int, Field(ge=0, strict=True)]
FENCE = re.compile(r"\s*```(?:json)?\s*(.*?)\s*```\s*", re.DOTALL)


class _Extraction(BaseModel, extra="ignore"):
    findings: list[Any]


class _Pair(BaseModel, extra="ignore"):
    finding: Index
    gold: Index


class _Matching(BaseModel, extra="ignore"):
    matches: list[_Pair]


def counts_of(review: Review) -> FindingCounts:
    """Return the counts. Raises ``UsageError`` when there are more matches than findings."""
    return FindingCounts(review.posted, review.gold, review.matched)


def review_score(counts: FindingCounts, beta: float = 1.0, trace: Trace | None = None) -> ImportedScore:
    """Return the score of a review as the scorer ``findings`` has it: F-beta, counts as metrics, what is wrong and missed.

    It is advisory: the harness sets no bar that a review would have to reach.
    """
    scores = finding_scores(counts, beta=beta)
    metrics: dict[str, float] = {"posted": counts.posted, "gold": counts.gold, "matched": counts.matched}
    metrics |= {"precision": scores.precision, "recall": scores.recall, "f_beta": scores.f_beta}
    trace = trace or Trace()
    metrics |= {f"hit.{index}": float(item.matched_finding is not None) for index, item in enumerate(trace.gold)}
    for severity, entry in recall_by_severity(trace.gold).items():
        metrics |= {f"gold_{severity}": entry["gold"], f"matched_{severity}": entry["matched"]}
    score = Score(ok=counts.matched == counts.gold, score=scores.f_beta, findings=tuple(_remarks(trace)), metrics=metrics)
    return ImportedScore(scorer="findings", score=score, required=False, advisory=True)


def _remarks(trace: Trace) -> Iterator[dict[str, str]]:
    for posted in trace.findings:
        if posted.matched_gold is None:
            yield {"why": "finding without gold", "description": posted.description}
    for gold in trace.gold:
        if gold.matched_finding is None:
            yield {"why": "gold finding missed", "severity": gold.severity, "description": gold.description}


def recall_by_severity(gold: Iterable[Gold]) -> dict[str, dict[str, Any]]:
    """Return ``{matched, gold, recall}`` by severity."""
    found: dict[str, dict[str, Any]] = {}
    for item in gold:
        entry = found.setdefault(item.severity, {"matched": 0, "gold": 0})
        entry["gold"] += 1
        entry["matched"] += item.matched_finding is not None
    return {name: {**entry, "recall": entry["matched"] / entry["gold"]} for name, entry in sorted(found.items())}


def replayed(trace: Trace, gold: int) -> tuple[int, int] | None:
    """Return ``(posted, matched)`` as the stored replies of the judge give them; ``None`` where they cannot be read.

    A match counts when both of its numbers exist and neither was used before. Without a second reply nothing was matched.
    """
    extracted = _reply(_Extraction, trace.raw_extract)
    matching = _Matching(matches=[]) if trace.raw_match is None else _reply(_Matching, trace.raw_match)
    if extracted is None or matching is None:
        return None
    posted = len(extracted.findings)
    return posted, _one_to_one(matching.matches, posted, gold)


def is_fenced(reply: str | None) -> bool:
    """Tell whether the judge put its JSON into a code fence."""
    return reply is not None and FENCE.fullmatch(reply) is not None


def _reply(model: type[M], text: str | None) -> M | None:
    fenced = FENCE.fullmatch(text or "")
    try:
        return model.model_validate_json(fenced[1] if fenced else text or "")
    except ValidationError:
        return None


def _one_to_one(matches: Iterable[_Pair], findings: int, gold: int) -> int:
    used: set[tuple[str, int]] = set()
    count = 0
    for match in matches:
        ends = {("finding", match.finding), ("gold", match.gold)}
        if match.finding < findings and match.gold < gold and not ends & used:
            used |= ends
            count += 1
    return count
