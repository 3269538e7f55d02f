"""Repeats of one arm: how far they spread, which cases flip, and what any or all of them reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evalwright.errors import UsageError
from evalwright.report.figures.comparison import Side
from evalwright.report.trials import Trial, lacks
from evalwright.stats import (
    Band,
    McNemar,
    band,
    flip_rates,
    intersection_at_k,
    mcnemar,
    stability,
    suite_pass_at_k,
    suite_pass_hat_k,
    union_at_k,
)

__all__ = ["ArmBand", "band_of", "hits_of"]

HIT = "hit."


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmBand:
    """The repeats of one arm. ``values`` has the metric of each pass, oldest first; ``null`` where a pass has none.

    ``union`` and ``intersection`` are over the items that every pass judged: hit by any, and by all passes. ``changes`` are
    McNemar's tests of each pass against the one before. ``cases`` counts the cases that any pass tried; ``lost`` are those
    that not every pass scored, so that passes with and without them are no like with like.
    """

    arm: str
    metric: str
    values: Sequence[float | None]
    cases: int
    lost: Sequence[str]
    band: Band | None
    items: int
    union: int
    intersection: int
    union_at_k: Sequence[float | None]
    intersection_at_k: Sequence[float | None]
    pass_at_k: Sequence[float | None]
    pass_hat_k: Sequence[float | None]
    stability: Mapping[str, str]
    flip_rate: float | None
    changes: Sequence[McNemar]

    def as_json(self) -> dict[str, Any]:
        """Return the record of ``band``."""
        record: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        found = self.band
        record["band"] = None
        if found is not None:
            interval = [found.interval.low, found.interval.high] if found.interval else None
            record["band"] = asdict(found) | {"interval": interval, "range": found.maximum - found.minimum}
        kinds = ("stable", "flaky", "never")
        cases = {kind: sorted(case for case, its in self.stability.items() if its == kind) for kind in kinds}
        return record | cases | {"changes": [asdict(change) for change in self.changes]}


def band_of(side: Side, *, metric: str, items: str = "pass") -> ArmBand:
    """Return what the passes of an arm have in common.

    ``metric`` may be a ratio ``A/B`` of sums over the suite, such as ``findings.matched/findings.gold``. ``items`` is
    ``pass``, or the id of a score whose metrics ``hit.NAME`` say what was found. Raises ``UsageError`` without a value.
    """
    passes = _passes(side)
    values = [_value(trials, metric) for trials in passes]
    known = [value for value in values if value is not None]
    if not known or any(lacks(side.trials, name) for name in metric.split("/", 1)):
        raise UsageError(f"no trial of {side.name} has the metric {metric}", hint="see: evalwright report --format json")
    hits = hits_of(passes, items)
    if not hits and items != "pass":
        hint = f"a scorer whose metrics are named {HIT}NAME tells of items; or leave --items out"
        raise UsageError(f"no scorer {items} of {side.name} tells of items", hint=hint, key="items")
    outcomes = side.outcomes("pass_rate")
    rates = [rate for rate in flip_rates(outcomes).values() if rate is not None]
    count, tried = len(passes), sorted({trial.case for trial in side.trials})
    return ArmBand(
        arm=side.name,
        metric=metric,
        values=values,
        cases=len(tried),
        lost=[case for case in tried if len(outcomes.get(case, ())) < count],
        band=band(known),
        items=len(hits),
        union=sum(any(vector) for vector in hits.values()),
        intersection=sum(all(vector) for vector in hits.values()),
        union_at_k=[union_at_k(hits, k).value for k in range(1, count + 1)],
        intersection_at_k=[intersection_at_k(hits, k).value for k in range(1, count + 1)],
        pass_at_k=[suite_pass_at_k(outcomes, k).value for k in range(1, count + 1)],
        pass_hat_k=[suite_pass_hat_k(outcomes, k).value for k in range(1, count + 1)],
        stability=dict(stability(outcomes)),
        flip_rate=sum(rates) / len(rates) if rates else None,
        changes=[_change(hits, number) for number in range(1, count)],
    )


def hits_of(passes: Sequence[Sequence[Trial]], items: str) -> dict[str, list[bool]]:
    """Return ``{item: hit by each pass}`` of the items that every pass judged."""
    found: dict[str, list[bool]] = {}
    for trials in passes:
        for trial in trials:
            for name, hit in _hits(trial, items).items():
                found.setdefault(name, []).append(hit)
    return {name: vector for name, vector in found.items() if len(vector) == len(passes)}


def _hits(trial: Trial, items: str) -> dict[str, bool]:
    if items == "pass":
        value = trial.value("pass_rate")
        return {} if value is None else {trial.case: value == 1.0}
    for score in trial.scores:
        if str(score.get("id", score["scorer"])) == items:
            metrics: Mapping[str, float] = score.get("metrics", {})
            names = [name for name in metrics if name.startswith(HIT)]
            return {f"{trial.case}/{name[len(HIT) :]}": metrics[name] >= 0.5 for name in names}
    return {}


def _passes(side: Side) -> list[list[Trial]]:
    """Return the trials of each pass; a pass is a run."""
    found: dict[tuple[int, str], list[Trial]] = {}
    for trial in side.trials:
        found.setdefault((trial.repeat, trial.run_id), []).append(trial)
    return [found[key] for key in sorted(found)]


def _value(trials: Sequence[Trial], metric: str) -> float | None:
    numerator, ratio, denominator = metric.partition("/")
    values = [value for trial in trials if (value := trial.value(numerator)) is not None]
    if not ratio:
        return sum(values) / len(values) if values else None
    parts = [value for trial in trials if (value := trial.value(denominator)) is not None]
    return sum(values) / sum(parts) if sum(parts) else None


def _change(hits: Mapping[str, Sequence[bool]], number: int) -> McNemar:
    gained = sum(vector[number] and not vector[number - 1] for vector in hits.values())
    lost = sum(vector[number - 1] and not vector[number] for vector in hits.values())
    return mcnemar(gained, lost)
