"""Arms against each other: one honest answer per pair, how sure it is, and what would make it surer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalwright.errors import UsageError
from evalwright.report.experiment import ExperimentView
from evalwright.report.overlap import overlapping
from evalwright.report.trials import Trial, lacks
from evalwright.stats import (
    Comparison,
    Interval,
    Outcomes,
    ResourceDifference,
    compare,
    holm,
    look_alpha,
    needed_cases,
    needed_repeats,
    resource_difference,
)

__all__ = ["LOWER_IS_BETTER", "ArmComparison", "Side", "compare_arms", "compare_sides", "sides_of"]

LOWER_IS_BETTER = frozenset({"cost", "duration", "tokens", "turns", "tool_calls", "tool_errors"})
WISHED_EFFECT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a comparison: an arm's finished trials. ``inputs`` are the digests of its cases, where they are known.

    ``overlapping`` is how many of its trials ran beside another of their experiment; ``None`` where no ledger tells.
    """

    name: str
    trials: Sequence[Trial]
    inputs: dict[str, str]
    overlapping: int | None = None

    @property
    def repeats(self) -> int:
        """Return the number of passes that left a trial."""
        return len({(trial.run_id, trial.repeat) for trial in self.trials})

    def outcomes(self, metric: str) -> dict[str, list[float]]:
        """Return ``{case: values}``: one value per repeat that has one."""
        found: dict[str, list[float]] = {}
        for trial in self.trials:
            value = trial.value(metric)
            if value is not None:
                found.setdefault(trial.case, []).append(value)
        return found

    def resources(self, metric: str, without: Sequence[str] = ()) -> dict[str, list[float | None]]:
        """Return ``{case: values}`` but for the cases ``without``, ``None`` for a value that is unknown."""
        found: dict[str, list[float | None]] = {}
        for trial in self.trials:
            if trial.case not in without:
                found.setdefault(trial.case, []).append(trial.value(metric))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmComparison:
    """``b`` against ``a``. ``alpha`` is what this look at these data may use; ``p`` is Holm's over all pairs asked about.

    ``changed`` are cases that have the same id on both sides and different contents: they are no pairs. ``look`` counts how
    often growing data of this experiment were compared; every look after the first is ``exploratory``, and so is one by
    another metric or a greater alpha than the experiment's record declares (``undeclared``). ``overlapping`` counts trials of
    each side that ran beside others, so that their durations are no clean latencies.
    """

    a: str
    b: str
    metric: str
    result: Comparison
    p: float
    alpha: float
    answer: str
    changed: Sequence[str]
    cost: ResourceDifference
    duration: ResourceDifference
    overlapping: tuple[int | None, int | None]
    look: int | None
    advice: str | None
    undeclared: bool = False

    @property
    def exploratory(self) -> bool:
        """Tell whether somebody had looked at fewer of these data before, or asks what nobody had said to ask."""
        return (self.look or 1) > 1 or self.undeclared

    @property
    def interval(self) -> Interval | None:
        """Return the interval of the difference, cut off where a difference of shares ends: at -1 and 1."""
        found = self.result.interval
        if found is None or self.metric in LOWER_IS_BETTER or "." in self.metric:
            return found
        return Interval(max(found.low, -1.0), min(found.high, 1.0), found.confidence)

    def as_json(self) -> dict[str, Any]:
        """Return the record of ``compare``."""
        result = self.result
        return {
            "a": {"name": self.a, "mean": result.mean_first},
            "b": {"name": self.b, "mean": result.mean_second},
            "metric": self.metric,
            "pairs": result.pairs,
            "lost": sorted({*result.only_first, *result.only_second}),
            "changed": list(self.changed),
            "difference": result.difference,
            "interval": _bounds(self.interval),
            "p": self.p,
            "alpha": self.alpha,
            "answer": self.answer,
            "wins": result.wins,
            "losses": result.losses,
            "ties": result.ties,
            "mde": result.minimum_detectable_effect,
            "equivalent": result.equivalent,
            "looks": self.look,
            "exploratory": self.exploratory,
            "advice": self.advice,
            "cost_usd": _resource(self.cost),
            "duration_s": _resource(self.duration)
            | {"overlapping_first": self.overlapping[0], "overlapping_second": self.overlapping[1]},
            "method": {
                "interval": "paired hierarchical bootstrap, agreed with the test",
                "test": "sign-flip permutation" + (", exact" if result.permutation_exact else ""),
                "permutation_p": result.permutation_p,
                "seed": result.seed,
                "engine": result.engine,
            },
        }


def sides_of(view: ExperimentView) -> list[Side]:
    """Return every arm of an experiment."""
    beside = _beside(view)
    return [
        Side(
            name=arm,
            trials=view.of_arm(arm),
            inputs={case: digest for run in view.runs if run.arm == arm for case, digest in run.inputs.items()},
            overlapping=beside.get(arm),
        )
        for arm in view.arms
    ]


def _beside(view: ExperimentView) -> dict[str, int]:
    """Return ``{arm: number of its trials that ran beside another trial}``; arms of which no ledger tells are left out."""
    timed = [(trial.arm, trial.span) for trial in view.trials if trial.span is not None]
    counts = {arm: 0 for arm, _ in timed}
    for (arm, _), beside in zip(timed, overlapping([span for _, span in timed]), strict=True):
        counts[arm] += beside
    return counts


def compare_arms(
    view: ExperimentView, *, metric: str | None = None, alpha: float | None = None, min_effect: float = 0.0, look: int = 1
) -> list[ArmComparison]:
    """Return every arm of an experiment against the first. Raises ``UsageError`` for a metric that no trial has."""
    sides = sides_of(view)
    return compare_sides(
        sides[0],
        sides[1:],
        metric=metric or view.primary or "pass_rate",
        alpha=alpha or view.alpha,
        min_effect=min_effect,
        look=look,
    )


def compare_sides(
    first: Side, others: Sequence[Side], *, metric: str, alpha: float, min_effect: float = 0.0, look: int | None = None
) -> list[ArmComparison]:
    """Return each of ``others`` against ``first``; the chance of any false alarm among them stays at ``alpha`` or below.

    Raises ``UsageError`` for a metric that one side does not have at all, or that is a ratio over the suite.
    """
    if "/" in metric:
        raise UsageError(f"{metric} has one value per pass, none per case", hint="compare a metric of cases, or use: band")
    allowed = alpha if look in (None, 1) else look_alpha(alpha, look)
    before = first.outcomes(metric)
    for side in (first, *others):
        if lacks(side.trials, metric) or (any(trial.counts for trial in side.trials) and not side.outcomes(metric)):
            raise UsageError(f"no trial of {side.name} has the metric {metric}", hint=_known_metrics(side), key="metric")
    results = {other.name: _compared(first, before, other, metric, allowed, min_effect) for other in others}
    adjusted = holm({name: result.p for name, (result, _) in results.items()})
    return [_arm_comparison(first, side, metric, *results[side.name], adjusted[side.name], allowed, look) for side in others]


def _compared(
    first: Side, before: Outcomes, other: Side, metric: str, alpha: float, min_effect: float
) -> tuple[Comparison, list[str]]:
    changed = sorted(case for case, digest in other.inputs.items() if first.inputs.get(case, digest) != digest)
    one, two = ({case: values for case, values in o.items() if case not in changed} for o in (before, other.outcomes(metric)))
    higher = metric not in LOWER_IS_BETTER
    return compare(one, two, alpha=alpha, min_effect=min_effect, higher_is_better=higher), changed


def _arm_comparison(
    first: Side, other: Side, metric: str, result: Comparison, changed: list[str], p: float, alpha: float, look: int | None
) -> ArmComparison:
    answer = result.answer if p < alpha else "no-evidence"
    return ArmComparison(
        a=first.name,
        b=other.name,
        metric=metric,
        result=result,
        p=p,
        alpha=alpha,
        answer=answer,
        changed=changed,
        cost=resource_difference(first.resources("cost", changed), other.resources("cost", changed)),
        duration=resource_difference(first.resources("duration", changed), other.resources("duration", changed)),
        overlapping=(first.overlapping, other.overlapping),
        look=look,
        advice=_advice(result, min(first.repeats, other.repeats), alpha) if answer == "no-evidence" else None,
    )


def _advice(result: Comparison, repeats: int, alpha: float) -> str | None:
    """Return what would make a comparison without evidence surer."""
    effect = result.min_effect or WISHED_EFFECT
    if result.pairs < 2:
        return "only cases that both arms have can tell: run more of them"
    if result.components is None:
        wanted = "a second repeat of both arms tells how much of the spread is chance"
        return wanted if repeats < 2 else None
    if result.minimum_detectable_effect is not None and result.minimum_detectable_effect <= effect:
        return f"a difference of {effect:g} would have been seen with 80 % power"
    more = needed_repeats(result.components, effect, cases=result.pairs, alpha=alpha)
    if more is not None and more > repeats:
        extra = more - repeats
        return f"{extra} more {'repeat' if extra == 1 else 'repeats'} would detect a difference of {effect:g} with 80 % power"
    if more is not None:
        return None
    cases = needed_cases(result.components, effect, repeats=repeats, alpha=alpha)
    return f"more repeats will not do: {cases} cases would detect a difference of {effect:g} with 80 % power"


def _bounds(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [interval.low, interval.high]


def _resource(difference: ResourceDifference) -> dict[str, Any]:
    record = asdict(difference)
    return record | {"interval": _bounds(difference.interval)}


def _known_metrics(side: Side) -> str:
    names: dict[str, None] = {"pass_rate": None, "score": None, "cost": None, "duration": None}
    for trial in side.trials:
        for score in trial.scores:
            own = str(score.get("id", score["scorer"]))
            names |= dict.fromkeys([own, *(f"{own}.{name}" for name in score.get("metrics", {}))])
    return f"its metrics: {', '.join(names)}"
