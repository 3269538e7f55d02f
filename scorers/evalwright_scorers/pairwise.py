"""The scorer that asks a model which of two answers is better, in both orders."""

from __future__ import annotations

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from evalwright.errors import TrialError
from evalwright.interfaces import JsonForm, PromptTemplate, ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.questions import questions

__all__ = ["Opponent", "Pairwise", "PairwiseConfig"]

FORM = JsonForm(
    schema={"type": "object", "required": ["winner"], "properties": {"winner": {"enum": ["first", "second", "tie"]}}},
    decides=("winner",),
)
TEMPLATE = PromptTemplate(
    "{{ rubric }}\n\nThe task:\n{{ task }}\n\nThe first answer:\n{{ first }}\n\nThe second answer:\n{{ second }}\n\n"
    "Which answer is better? The order says nothing. Answer with one JSON object and nothing else: "
    '{"reason": a sentence, "winner": "first" or "second" or "tie"}.'
)
SCORES: Mapping[str, float] = MappingProxyType({"win": 1.0, "tie": 0.5, "loss": 0.0})
MAX_BYTES = 5 << 20


class Opponent(BaseModel, extra="forbid", frozen=True, strict=True):
    """The answer to compare with."""

    reference: str


class PairwiseConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The judge, and where the other answers are: a run's directory, or ``reference`` in each case."""

    judge: Annotated[str, Field(min_length=1)]
    rubric: Annotated[str, Field(min_length=1)] = "Compare two answers to one task: which serves the one who asked better?"
    reference_run: str | None = None
    threshold: Literal["win", "tie"] = "tie"
    options: dict[str, Any] = {}


class Pairwise(Scorer[PairwiseConfig]):
    """Passes when the answer is not worse than the other one; with ``"threshold": "win"`` only when it is better.

    The judge sees both orders. If it does not choose the same answer twice, the order has decided: that is a tie, marked
    inconsistent.
    """

    api = "scorer/1.0"
    Config = PairwiseConfig
    Expect = MappingProxyType({"pairwise": Opponent})
    capabilities = frozenset({"needs-judge"})
    files = frozenset({"rubric"})

    def uses(self) -> Sequence[str]:
        """Name the judge."""
        return [f"judges.{self.config.judge}"]

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether there is another answer."""
        return expect.get("pairwise") is not None or self.config.reference_run is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Ask in both orders."""
        other = self._other(trial)
        values = {"rubric": self.config.rubric, "task": trial.task}
        with questions(context, self.config.judge, self.config.options) as asking:
            ahead = asking.ask(TEMPLATE, {**values, "first": trial.output, "second": other}, FORM, 1).verdict["winner"]
            behind = asking.ask(TEMPLATE, {**values, "first": other, "second": trial.output}, FORM, 2).verdict["winner"]
        one = {"first": "win", "second": "loss", "tie": "tie"}[ahead]
        two = {"first": "loss", "second": "win", "tie": "tie"}[behind]
        label = one if one == two else "tie"
        findings = () if one == two else ({"why": "inconsistent: the order of the answers decided", "orders": [ahead, behind]},)
        metrics = {"inconsistent": float(one != two), "first_chosen": float((ahead, behind).count("first"))}
        ok = SCORES[label] >= SCORES[self.config.threshold]
        return Score(ok=ok, score=SCORES[label], label=label, findings=findings, metrics=metrics)

    def _other(self, trial: ScoredTrial) -> str:
        own = trial.expect.get("pairwise")
        if own is not None:
            return str(own["reference"])
        run = self.host.file(self.config.reference_run or "")
        return _read(run / "cases" / trial.case_id / "output.txt")


def _read(path: Path) -> str:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError("no regular file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise TrialError("reference_missing", f"the reference run has no answer to this case: {path}: {error}") from error
