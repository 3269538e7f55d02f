"""Labelled items for a judge: read from JSON Lines, and judged by a scorer of a suite outside of any run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from evalwright.errors import JudgeError, SuiteError, TrialError, UsageError
from evalwright.interfaces import Deadline, Judge, JudgeReply, JudgeRequest, Scorer, Session
from evalwright.judging.calibration import Answer
from evalwright.model import Score, ScoredTrial

__all__ = ["Item", "judge_items", "read_items"]

SECONDS = 3600.0


class Item(BaseModel, extra="forbid", frozen=True, strict=True):
    """One answer that people have labelled, with what a case would expect of it."""

    id: str | None = None
    task: str = ""
    output: str
    label: str
    expect: dict[str, Any] = {}


def read_items(path: Path) -> list[Item]:
    """Return the items of a file. Raises ``UsageError`` naming the line that is wrong."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", hint="give a file of JSON Lines", key="items") from error
    items: list[Item] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                items.append(Item.model_validate_json(line))
            except ValidationError as error:
                why = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'line'}: {each['msg']}" for each in error.errors())
                raise UsageError(f"{path}:{number}: {why}", hint='an item is {"output", "label", ...}', line=number) from error
    if not items:
        raise UsageError(f"{path} holds no item", hint='an item is {"output", "label", ...}', key="items")
    return items


def judge_items(
    scorer: Scorer[Any], judge: Callable[[str], Judge[Any]], items: Sequence[Item], *, samples: int, width: int
) -> list[Answer]:
    """Judge every item ``samples`` times and return what came of each; an item that cannot be judged is an error of it."""
    scores = _human_scores(scorer)

    def judged(item: Item) -> Answer:
        trial = ScoredTrial(case_id=item.id or "item", task=item.task, expect=item.expect, output=item.output)
        try:
            found = [scorer.score(trial, _Asking(judge, number + 1)) for number in range(samples)]
        except JudgeError as error:
            return Answer(human=item.label, error=error.kind)
        except TrialError as error:
            raise UsageError(
                f"item {item.id or item.output[:40]!r}: {error}", hint="correct its expect", key="items"
            ) from error
        return _answer(item, found, scores)

    with ThreadPoolExecutor(width) as pool:
        return list(pool.map(judged, items))


def _answer(item: Item, found: Sequence[Score], scores: Mapping[str, float]) -> Answer:
    first = found[0]
    labels = tuple(score.label or ("pass" if score.ok else "fail") for score in found)
    human = scores.get(item.label)
    return Answer(
        human=item.label,
        labels=labels,
        leniency=None if human is None else first.score - human,
        inconsistent=first.metrics.get("inconsistent"),
        first_chosen=first.metrics.get("first_chosen"),
    )


def _human_scores(scorer: Scorer[Any]) -> Mapping[str, float]:
    """Return what the labels of people are worth: as the scorer's menu says, else as pass and fail, or win, tie and loss."""
    menu: Mapping[str, float] | None = getattr(scorer.config, "labels", None)
    return menu or {"pass": 1.0, "fail": 0.0, "win": 1.0, "tie": 0.5, "loss": 0.0}


class _Asking:
    """What a scorer gets outside of a trial: judges, and nothing else."""

    def __init__(self, judge: Callable[[str], Judge[Any]], repeat: int) -> None:
        self.deadline = Deadline.after(SECONDS)
        self._judge = judge
        self._repeat = repeat

    def judge(self, name: str, request: JudgeRequest) -> JudgeReply:
        return self._judge(name).ask(replace(request, repeat=self._repeat), self.deadline)

    def session(
        self,
        sandbox: str | None = None,
        *,
        workspace: Literal["final", "fixture", "empty"] = "final",
        hidden: bool = False,
    ) -> AbstractContextManager[Session]:
        raise SuiteError("this scorer runs commands, which judge calibrate does not", hint="choose one that only asks a judge")

    def environment(self, session: Session) -> Mapping[str, str]:
        return {}

    def keep(self, name: str, content: bytes) -> None:
        return
