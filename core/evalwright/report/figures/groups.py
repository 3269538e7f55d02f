"""Failures put together by what they share: a finding, a case, a tag, a split or an arm."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.report.cases import CaseFacts
from evalwright.report.figures.failures import Failure
from evalwright.report.wording import finding_text, printable

__all__ = ["GROUPINGS", "Group", "folded", "group_failures"]

GROUPINGS = ("finding", "case", "tag", "split", "arm")
MAX_EXAMPLES = 3
PATH = re.compile(r"(?<![\w.])(?:\.{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w.])/[\w.@+-]+")
HEXADECIMAL = re.compile(r"\b(?:0x[0-9a-fA-F]+|(?=[0-9a-f]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,})\b")
NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NOTHING_SAID = "nothing said why"


@dataclass(slots=True)
class Group:
    """Failures with the same ``key``. ``count`` is of trials; a trial is in one group for each different thing it shows."""

    key: str
    count: int = 0
    cases: set[str] = field(default_factory=set[str])
    arms: Counter[str] = field(default_factory=Counter[str])
    examples: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def as_json(self) -> dict[str, Any]:
        """Return ``{key, count, cases[], arms{}, examples[{trial, arm, repeat, id, text}]}``."""
        return {
            "key": self.key,
            "count": self.count,
            "cases": sorted(self.cases),
            "arms": dict(self.arms),
            "examples": self.examples,
        }


def group_failures(failures: Iterable[Failure], by: str, facts: Mapping[str, CaseFacts]) -> list[Group]:
    """Return the groups, the largest first. ``by`` is one of ``GROUPINGS``; ``facts`` are those of the cases."""
    groups: dict[str, Group] = {}
    for failure in failures:
        said = list(_said(failure))
        keys = {folded(text): text for text in reversed(said)} if by == "finding" else _keys(failure, by, facts, said[0])
        for key, text in keys.items():
            _add(groups.setdefault(key, Group(key)), failure, text)
    return sorted(groups.values(), key=lambda group: (-group.count, group.key))


def folded(text: str) -> str:
    """Return a finding without what differs from trial to trial: paths, digests and numbers."""
    return NUMBER.sub("N", HEXADECIMAL.sub("HEX", PATH.sub("PATH", text)))


def _add(group: Group, failure: Failure, text: str) -> None:
    trial = failure.trial
    group.count += 1
    group.cases.add(trial.case)
    group.arms[trial.arm] += 1
    if len(group.examples) < MAX_EXAMPLES:
        place = {"trial": failure.key, "arm": trial.arm, "repeat": trial.repeat, "id": trial.case}
        group.examples.append({**place, "text": text})


def _keys(failure: Failure, by: str, facts: Mapping[str, CaseFacts], text: str) -> dict[str, str]:
    trial = failure.trial
    fact = facts.get(trial.case, CaseFacts())
    found: Mapping[str, Sequence[str]] = {
        "case": [trial.case],
        "arm": [trial.arm],
        "tag": fact.tags or ["(no tag)"],
        "split": [fact.split or "(no split)"],
    }
    return dict.fromkeys(found[by], text)


def _said(failure: Failure) -> Iterator[str]:
    """Yield what is wrong with a trial: the reason of its error, then each objection of a scorer that decides."""
    trial = failure.trial
    if trial.status == "error":
        yield f"{trial.fault or 'harness'} fault: {_line(failure.reason or NOTHING_SAID)}"
    objections = [score for score in trial.scores if score.get("required", True) and not score["ok"]]
    for score in objections:
        name = _line(str(score.get("id", score["scorer"])))
        for finding in score["findings"]:
            yield f"{name}: {finding_text(finding)}"
        if not score["findings"]:
            yield f"{name}: {_line(str(score['label']))}"
    if trial.status != "error" and not objections:
        yield f"{trial.status}: {NOTHING_SAID}"


def _line(text: str) -> str:
    return printable(" ".join(text[:1000].split()))[:160]
