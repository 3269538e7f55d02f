"""What each arm of an experiment came to: its rate with an interval, cost, tokens, time, and which cases are flaky."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evalwright.model import Usage
from evalwright.report.experiment import ExperimentView
from evalwright.report.totals import rates
from evalwright.stats import Interval, Rate, rate, stability

__all__ = ["ArmFigures", "Sum", "arm_figures", "never_passed"]


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over ``of`` trials, ``known`` of which tell their part. ``total`` is ``None`` when none does, never 0 for that."""

    total: float | None
    known: int
    of: int

    @property
    def complete(self) -> bool:
        """Tell whether every trial told its part, and there was one."""
        return 0 < self.known == self.of

    def as_json(self) -> dict[str, Any]:
        """Return ``{total, known, of}``."""
        return {"total": self.total, "known": self.known, "of": self.of}


@dataclass(frozen=True, kw_only=True)
class ArmFigures:
    """The figures of one arm over all its finished trials; ``planned`` counts those that are missing too.

    ``rate`` is the pass rate, ``primary`` the same of the suite's primary metric if that is another one. Cost is in US
    dollars, ``seconds`` the agent's own time of each trial that has one.
    """

    name: str
    planned: int
    totals: Mapping[str, Any]
    rate: Rate
    score: float | None
    primary: Rate | None
    cost: Sum
    tokens: Sum
    seconds: Sequence[float]
    stability: Mapping[str, str]

    @property
    def missing(self) -> int:
        """Return how many planned trials have no result yet."""
        attempted: int = self.totals["attempted"]
        return self.planned - attempted

    @cached_property
    def median_seconds(self) -> float | None:
        """Return the median of the agent's time, in seconds."""
        return statistics.median(self.seconds) if self.seconds else None

    def cases(self, kind: str) -> list[str]:
        """Return the cases that are ``stable``, ``flaky`` or ``never``, by id."""
        return [case for case, found in self.stability.items() if found == kind]

    def as_json(self, metric: str | None = None) -> dict[str, Any]:
        """Return the arm's record in a report. ``metric`` is the name of the primary metric."""
        primary = self.primary
        return {
            "name": self.name,
            "planned": self.planned,
            "missing": self.missing,
            **self.totals,
            "pass_rate": self.rate.micro,
            "pass_rate_macro": self.rate.macro,
            "interval": _ends(self.rate.micro_interval),
            "score": self.score,
            "primary": primary and {"metric": metric, "value": primary.micro, "interval": _ends(primary.micro_interval)},
            "cost": self.cost.as_json(),
            "tokens": self.tokens.as_json(),
            "duration_s": {"median": self.median_seconds, "known": len(self.seconds), "of": self.totals["attempted"]},
            **{kind: self.cases(kind) for kind in ("flaky", "never", "stable")},
        }


def arm_figures(view: ExperimentView) -> list[ArmFigures]:
    """Return the figures of every arm, in the order of the plan."""
    return [_figures(view, arm) for arm in view.arms]


def never_passed(arms: Sequence[ArmFigures]) -> list[str]:
    """Return the cases that have results and passed in none, whatever the arm."""
    found = {case for arm in arms for case in arm.stability}
    return sorted(case for case in found if all(arm.stability.get(case, "never") == "never" for arm in arms))


def _figures(view: ExperimentView, arm: str) -> ArmFigures:
    trials = view.of_arm(arm)
    passes = view.outcomes(arm, "pass_rate")
    scores = [value for values in view.outcomes(arm, "score").values() for value in values]
    durations = [trial.value("duration") for trial in trials]
    metric = view.primary
    return ArmFigures(
        name=arm,
        planned=sum(cell.cases for cell in view.cells if cell.arm == arm),
        totals=rates((trial.status, trial.fault) for trial in trials),
        rate=rate(passes, attempted=len(trials)),
        score=math.fsum(scores) / len(scores) if scores else None,
        primary=rate(view.outcomes(arm, metric)) if metric not in (None, "pass_rate") else None,
        cost=_sum([trial.value("cost") for trial in trials]),
        tokens=_sum([_tokens(trial.usage) for trial in trials]),
        seconds=[seconds for seconds in durations if seconds is not None and math.isfinite(seconds)],
        stability=stability(passes),
    )


def _sum(values: Sequence[float | None]) -> Sum:
    known = [value for value in values if value is not None]
    return Sum(math.fsum(known) if known else None, len(known), len(values))


def _tokens(usage: Usage | None) -> int | None:
    """Return all tokens of a trial, cached ones too; reasoning tokens are part of the output."""
    if usage is None or usage.input is None or usage.output is None:
        return None
    return usage.input + usage.output + (usage.cache_read or 0) + (usage.cache_write or 0)


def _ends(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None
