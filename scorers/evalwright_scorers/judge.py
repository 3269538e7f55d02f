"""The scorer that asks a model to judge by a rubric."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from evalwright.errors import TrialError
from evalwright.interfaces import GradeForm, JsonForm, PromptTemplate, ScoreContext, Scorer, VerdictForm
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.expectation import table
from evalwright_scorers.questions import questions, trial_values

__all__ = ["JudgeScorer", "JudgeScorerConfig", "Rubric"]

TITLES: Mapping[str, str] = MappingProxyType(
    {
        "task": "The task that the agent was given:",
        "output": "The agent's answer:",
        "diff": "What the agent changed in its workspace:",
        "transcript": "What the agent did:",
        "reference": "A right answer, for comparison:",
    }
)
SHOWN = ("case_id", *TITLES)
REASON = 2000
Unit = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1, max_length=100)]


class Rubric(BaseModel, extra="forbid", frozen=True, strict=True):
    """What a case may say: its own rubric, a right answer to compare with, labels with their scores, values of variables."""

    rubric: Annotated[str, Field(min_length=1)] | None = None
    reference: str = ""
    labels: Annotated[dict[Word, Unit], Field(min_length=2)] | None = None
    threshold: Annotated[Unit, Field(gt=0)] = 0.5
    vars: dict[str, str] = {}

    @model_validator(mode="after")
    def _known_variables(self) -> Self:
        if unknown := PromptTemplate(self.rubric or "").unknown([*SHOWN, *self.vars]):
            raise ValueError(f"the rubric has the unknown variable {unknown[0]}; known: {', '.join([*SHOWN, *self.vars])}")
        return self


class JudgeScorerConfig(Rubric, extra="forbid", frozen=True, strict=True):
    """The judge, what it is shown, how it answers, and how often it is asked."""

    judge: Word
    template: Annotated[str, Field(min_length=1)] | None = None
    show: list[Literal["task", "output", "diff", "transcript", "reference"]] = ["task", "output"]
    format: Literal["json", "grade"] = "json"
    samples: Annotated[int, Field(ge=1, le=25)] = 1
    options: dict[str, Any] = {}

    @model_validator(mode="after")
    def _fits(self) -> Self:
        passing = [label for label, score in (self.labels or {}).items() if score >= self.threshold]
        if self.labels and len(passing) in (0, len(self.labels)):
            every = "every label passes" if passing else "no label passes"
            raise ValueError(f"{every}, with a threshold of {self.threshold:g}: nothing would be judged")
        if self.format == "grade" and not all(label.isalnum() for label in self.labels or {"": 0}):
            raise ValueError("the format grade needs labels that are single words")
        if self.template and (unknown := PromptTemplate(self.template).unknown([*SHOWN, "rubric", "menu", *self.vars])):
            raise ValueError(f"the template has the unknown variable {unknown[0]}; define it in vars")
        return self


class JudgeScorer(Scorer[JudgeScorerConfig]):
    """Asks a judge of the suite. A score of ``threshold`` or more passes.

    With ``labels`` the judge chooses one of them, without it gives a score from 0 to 1. Of several samples the mean counts.
    A reply without a clear verdict makes the trial an error.
    """

    api = "scorer/1.0"
    Config = JudgeScorerConfig
    Expect = MappingProxyType({"judge": Rubric})
    capabilities = frozenset({"needs-judge"})
    files = frozenset({"rubric", "template"})

    def uses(self) -> Sequence[str]:
        """Name the judge."""
        return [f"judges.{self.config.judge}"]

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether there is a rubric."""
        return bool(expect.get("judge") or self.config.rubric or self.config.template)

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Ask as often as the table says, and take the mean."""
        config = table(trial.expect, "judge", self.config)
        template = PromptTemplate(config.template or _usual(config)).holding("rubric", config.rubric or "")
        values = {**trial_values(trial), "reference": config.reference, "menu": _menu(config), **config.vars}
        if unknown := template.unknown(values):
            raise TrialError("expectation_invalid", f"the rubric has the unknown variable {unknown[0]}; define it in vars")
        form = _form(config)
        with questions(context, config.judge, config.options) as asking:
            verdicts = [asking.ask(template, values, form, number + 1).verdict for number in range(config.samples)]
        return _scored([{"label": verdict} if isinstance(verdict, str) else verdict for verdict in verdicts], config)

    def weakness(self, expect: Mapping[str, Any]) -> str | None:
        """Say that a model's opinion is one."""
        return None if self.config.samples > 1 else "one answer of a model decides; ask for samples, and calibrate the judge"


def _usual(config: JudgeScorerConfig) -> str:
    """Return the template of a table that has none."""
    show = [*config.show, *(["reference"] if config.reference and "reference" not in config.show else [])]
    parts = [f"{TITLES[name]}\n{{{{ {name} }}}}" for name in show]
    return "\n\n".join(["Judge by this rubric:\n{{ rubric }}", *parts, "{{ menu }}"])


def _menu(config: JudgeScorerConfig) -> str:
    """Return the sentence that says how to answer."""
    names = list(config.labels or {})
    if config.format == "grade":
        return f"Give your reasons. Then end with one line: GRADE: and one of {', '.join(names)}."
    wanted = f'"label": one of {", ".join(map(repr, names))}' if names else '"score": a number from 0 (worst) to 1 (best)'
    return f'Answer with one JSON object and nothing else: {{"reason": a sentence, {wanted}}}.'


def _form(config: JudgeScorerConfig) -> VerdictForm:
    """Return what a verdict looks like; one whose parts lie on both sides of the threshold contradicts itself."""
    labels, threshold = config.labels, config.threshold
    if config.format == "grade":
        return GradeForm(grades=tuple(labels or ()))
    score = {"type": "number", "minimum": 0, "maximum": 1}
    properties: dict[str, Any] = {"score": score, "pass": {"type": "boolean"}}

    def objection(verdict: Any) -> str | None:
        value = labels[verdict["label"]] if labels else verdict["score"]
        sides = {value >= threshold, *([verdict["score"] >= threshold] if "score" in verdict else [])}
        sides |= {verdict["pass"]} if "pass" in verdict else set()
        return "its parts do not agree" if len(sides) > 1 else None

    decides = "label" if labels else "score"
    properties |= {"label": {"enum": list(labels)}} if labels else {}
    schema = {"type": "object", "required": [decides], "properties": properties}
    return JsonForm(schema=schema, objection=objection, decides=(decides,))


def _scored(verdicts: list[dict[str, Any]], config: JudgeScorerConfig) -> Score:
    labels = config.labels
    scores = [float(labels[verdict["label"]] if labels else verdict["score"]) for verdict in verdicts]
    mean = statistics.fmean(scores)
    ok = mean >= config.threshold
    metrics = {"judge_spread": max(scores) - min(scores)} if len(scores) > 1 else {}
    reasons = dict.fromkeys(str(verdict.get("reason", ""))[:REASON] for verdict in verdicts)
    findings = () if ok else tuple({"why": reason or "the judge gave no reason"} for reason in reasons)
    label = Counter(verdict["label"] for verdict in verdicts).most_common(1)[0][0] if labels else ""
    return Score(ok=ok, score=mean, label=label, findings=findings, metrics=metrics)
