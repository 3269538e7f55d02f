"""The scorer that matches the agent's findings with gold findings, one to one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, Field

from evalwright.interfaces import JsonForm, PromptTemplate, ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.expectation import table
from evalwright_scorers.matching import agreement, one_to_one
from evalwright_scorers.questions import Questions, questions

__all__ = ["Findings", "FindingsConfig", "GoldFinding", "GoldFindings"]

FINDING: Mapping[str, Any] = MappingProxyType(
    {"type": "object", "required": ["description"], "properties": {"description": {"type": "string", "minLength": 1}}}
)
EXTRACTED = JsonForm(
    schema={"type": "object", "required": ["findings"], "properties": {"findings": {"type": "array", "items": dict(FINDING)}}},
    decides=("findings",),
)
EXTRACT = PromptTemplate(
    "List every separate problem that this review reports. Leave out praise, summaries and questions; merge nothing and add "
    "nothing.\n\nThe review:\n{{ output }}\n\nAnswer with one JSON object and nothing else: "
    '{"findings": [{"description": text, "file": path if one is named}]}.'
)
MATCH = PromptTemplate(
    "Two lists of problems in the same work, numbered from 0. Which posted finding describes the same problem as which gold "
    "finding? Wording may differ, the problem may not. Each is used at most once.\n\n"
    "Posted:\n{{ posted }}\n\nGold:\n{{ gold }}\n\n"
    'Answer with one JSON object and nothing else: {"matches": [{"finding": number, "gold": number}]}.'
)
TEXT = 500


class GoldFinding(BaseModel, extra="forbid", frozen=True, strict=True):
    """A problem that is really there."""

    description: Annotated[str, Field(min_length=1)]
    severity: Annotated[str, Field(pattern=r"^[a-z]+$")] | None = None
    file: str | None = None
    line: int | None = None


class GoldFindings(BaseModel, extra="forbid", frozen=True, strict=True):
    """The gold findings of a case; an empty list says that there is nothing to find."""

    gold: list[GoldFinding] | None = None
    threshold: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.5
    beta: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = 1.0


class FindingsConfig(GoldFindings, extra="forbid", frozen=True, strict=True):
    """The judge, and whether the agent's findings are text to extract from or JSON already."""

    judge: Annotated[str, Field(min_length=1)]
    source: Literal["text", "json"] = "text"
    options: dict[str, Any] = {}


class Findings(Scorer[FindingsConfig]):
    """Scores F-beta of the findings of one case; ``threshold`` or more passes.

    Metrics: ``posted``, ``gold``, ``matched``, ``precision``, ``recall``, ``f_beta``, gold and matched by severity, and
    ``hit.N`` for each gold finding, from which ``band`` knows what any or all repeats find.
    """

    api = "scorer/1.0"
    Config = FindingsConfig
    Expect = MappingProxyType({"findings": GoldFindings})
    capabilities = frozenset({"needs-judge"})

    def uses(self) -> Sequence[str]:
        """Name the judge."""
        return [f"judges.{self.config.judge}"]

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether there are gold findings, be they none."""
        return (expect.get("findings") or {}).get("gold") is not None or self.config.gold is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Extract, match, count."""
        config = table(trial.expect, "findings", self.config)
        gold = config.gold or []
        with questions(context, config.judge, config.options) as asking:
            posted = _given(trial.output) if config.source == "json" else _extracted(trial.output, asking)
            if posted is None:
                return Score.failed({"why": "the answer is no JSON list of findings"})
            pairs = one_to_one(_matched(posted, gold, asking)) if posted and gold else {}
        return _scored(posted, gold, pairs, config)


def _given(output: str) -> list[Mapping[str, Any]] | None:
    """Return the findings of an answer that is JSON: a list, or an object with ``findings``."""
    try:
        document: Any = json.loads(output)
        found: Any = document if _is_list(document) else document["findings"]
        return [_finding(item) for item in found] if _is_list(found) else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _finding(item: Any) -> Mapping[str, Any]:
    if isinstance(item, str):
        return {"description": item}
    return {**item, "description": str(item["description"])}


def _extracted(output: str, asking: Questions) -> list[Mapping[str, Any]]:
    if not output.strip():
        return []
    found: list[Mapping[str, Any]] = asking.ask(EXTRACT, {"output": output}, EXTRACTED).verdict["findings"]
    return found


def _matched(posted: Sequence[Mapping[str, Any]], gold: Sequence[GoldFinding], asking: Questions) -> list[tuple[int, int]]:
    """Return the pairs that the judge names. A number that is none of the list's makes its reply unreadable."""

    def number(count: int) -> dict[str, Any]:
        return {"type": "integer", "minimum": 0, "exclusiveMaximum": count}

    pair = {"finding": number(len(posted)), "gold": number(len(gold))}
    item = {"type": "object", "required": list(pair), "properties": pair}
    schema = {"type": "object", "required": ["matches"], "properties": {"matches": {"type": "array", "items": item}}}
    values = {
        "posted": _numbered([{"description": each["description"], "file": each.get("file")} for each in posted]),
        "gold": _numbered([{"description": each.description, "file": each.file} for each in gold]),
    }
    matches = asking.ask(MATCH, values, JsonForm(schema=schema, decides=("matches",))).verdict["matches"]
    return [(int(match["finding"]), int(match["gold"])) for match in matches]


def _numbered(items: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{number}. {json.dumps(dict(item), ensure_ascii=False)}" for number, item in enumerate(items))


def _scored(
    posted: Sequence[Mapping[str, Any]], gold: Sequence[GoldFinding], pairs: Mapping[int, int], config: FindingsConfig
) -> Score:
    precision, recall, f_beta = agreement(len(posted), len(gold), len(pairs), config.beta)
    wrong = [posted[number]["description"] for number in range(len(posted)) if number not in pairs]
    missed = [each for number, each in enumerate(gold) if number not in pairs.values()]
    findings: list[dict[str, Any]] = [{"why": "finding without gold", "description": text[:TEXT]} for text in wrong]
    findings += [{"why": "gold finding missed", **each.model_dump(exclude_none=True)} for each in missed]
    metrics: dict[str, float] = {"posted": len(posted), "gold": len(gold), "matched": len(pairs)}
    metrics |= {"precision": precision, "recall": recall, "f_beta": f_beta}
    metrics |= {f"hit.{number}": float(number in pairs.values()) for number in range(len(gold))}
    severities = Counter(each.severity for each in gold if each.severity)
    found = Counter(gold[number].severity for number in pairs.values())
    for severity, count in severities.items():
        metrics |= {f"gold_{severity}": count, f"matched_{severity}": found[severity]}
    return Score(ok=f_beta >= config.threshold, score=f_beta, findings=tuple(findings), metrics=metrics)
