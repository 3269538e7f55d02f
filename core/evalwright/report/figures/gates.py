"""Gates: may this change ship? A bound on a metric, or no regression against a baseline."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalwright.errors import UsageError
from evalwright.model import METRICS
from evalwright.report.figures.comparison import Side, compare_sides
from evalwright.report.figures.sentences import headline_of
from evalwright.report.trials import Trial, lacks
from evalwright.report.wording import shown

__all__ = ["Gate", "GateResult", "check_gates", "check_metrics", "parse_gate"]

BOUND = re.compile(r"\s*([A-Za-z0-9._-]+)\s*(>=|<=|==|>|<)\s*([-+0-9.eE]+)\s*", re.ASCII)
NO_REGRESSION = "no-regression"
CLOSE = 1e-9
COUNTS = ("harness_errors", "agent_faults", "unscored")
RESOURCES = ("cost", "total_cost", "duration")
Verdict = Literal["pass", "fail", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One condition: ``metric`` ``operator`` ``bound``, or ``no-regression`` with the two others empty."""

    text: str
    metric: str
    operator: str = ""
    bound: float = 0.0

    def holds(self, value: float) -> bool:
        """Tell whether a value meets the bound."""
        if self.operator == "==":
            return math.isclose(value, self.bound, rel_tol=CLOSE, abs_tol=CLOSE)
        above = self.operator.startswith(">")
        beyond = value > self.bound if above else value < self.bound
        return beyond or (self.operator.endswith("=") and math.isclose(value, self.bound, rel_tol=CLOSE, abs_tol=CLOSE))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """What a gate says of one arm. ``undecided`` means that only faults of the harness, or unknown values, kept it open."""

    gate: str
    arm: str
    verdict: Verdict
    value: float | None
    why: str

    def as_json(self) -> dict[str, Any]:
        """Return the record as ``run`` shows it."""
        return {"gate": self.gate, "arm": self.arm, "verdict": self.verdict, "value": self.value, "why": self.why}


def parse_gate(text: str) -> Gate:
    """Return a gate from ``METRIC>=NUMBER`` (also ``<=``, ``>``, ``<``, ``==``) or ``no-regression``. Raises ``UsageError``."""
    if text == NO_REGRESSION:
        return Gate(text=text, metric=text)
    found = BOUND.fullmatch(text)
    try:
        bound = float(found[3]) if found else math.nan
    except ValueError:
        bound = math.nan
    if found is None or not math.isfinite(bound):
        raise UsageError(
            f"{text!r} is no gate", hint="write METRIC>=NUMBER (or <=, >, <, ==), such as 'pass_rate>=0.8'; or no-regression"
        )
    return Gate(text=text, metric=found[1], operator=found[2], bound=bound)


def check_metrics(gates: Sequence[Gate], scorers: Sequence[str]) -> None:
    """Refuse a bound on a metric that no trial of a suite with these scorer ids can have. Raises ``UsageError``."""
    known = [*METRICS, *COUNTS, "total_cost", *scorers]
    for gate in gates:
        name = gate.metric
        if not gate.operator or name in known or any(name.startswith(f"{scorer}.") for scorer in scorers):
            continue
        near = difflib.get_close_matches(name, known, 1)
        raise UsageError(
            f"{gate.text!r}: no trial can have the metric {name}",
            hint=f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}",
            key="gate",
            did_you_mean=near[0] if near else None,
        )


def check_gates(
    gates: Sequence[Gate], sides: Sequence[Side], baseline: Side | None, *, alpha: float, look: int | None = None
) -> list[GateResult]:
    """Return what every gate says of every arm.

    Raises ``UsageError`` for ``no-regression`` without a baseline, and for a metric that no trial has.
    """
    results: list[GateResult] = []
    for gate in gates:
        if gate.metric == NO_REGRESSION:
            if baseline is None:
                raise UsageError("no-regression needs something to be held against", hint="name it: --baseline RUN")
            results += [_regression(gate, side, baseline, alpha, look) for side in sides]
        else:
            results += [_bound(gate, side) for side in sides]
    return results


def _regression(gate: Gate, side: Side, baseline: Side, alpha: float, look: int | None) -> GateResult:
    (found,) = compare_sides(baseline, [side], metric="pass_rate", alpha=alpha, look=look)
    verdict: Verdict = "fail" if found.answer == "worse" else "pass"
    if not found.result.pairs:
        verdict = "undecided"
    seen, why = found.result.minimum_detectable_effect, headline_of(found)
    if verdict == "pass" and _may_hide_a_drop(side, baseline, alpha, look):
        verdict = "undecided"
        why += f" But {_count('harness_errors', [*side.trials, *baseline.trials])} faults of the harness may hide a drop."
    if verdict == "pass" and seen is not None:
        why += f" A drop of {shown(seen)} would have been seen with 80 % power."
    if found.result.only_first:
        why += f" Not compared: {len(found.result.only_first)} of the baseline's cases."
    if found.changed:
        why += f" Not compared either: {len(found.changed)} with other contents than in the baseline."
    return GateResult(gate=gate.text, arm=side.name, verdict=verdict, value=found.result.difference, why=why)


def _may_hide_a_drop(side: Side, baseline: Side, alpha: float, look: int | None) -> bool:
    """Tell whether the arm would be worse had each fault of the harness been a fail here and a pass in the baseline."""
    worst, best = _settled(side, "fail"), _settled(baseline, "pass")
    (found,) = compare_sides(best, [worst], metric="pass_rate", alpha=alpha, look=look)
    return found.answer == "worse"


def _settled(side: Side, status: str) -> Side:
    """Return a side whose faults of the harness have another status."""
    lost = [trial.status == "error" and not trial.counts for trial in side.trials]
    trials = [replace(t, status=status, fault=None) if gone else t for t, gone in zip(side.trials, lost, strict=True)]
    return replace(side, trials=trials)


def _bound(gate: Gate, side: Side) -> GateResult:
    low, value, high, why = _range(gate.metric, side.trials)
    if low is None or high is None or value is None:
        return GateResult(gate=gate.text, arm=side.name, verdict="undecided", value=value, why=why)
    verdict: Verdict = "undecided"
    if gate.holds(low) == gate.holds(high) == gate.holds(value):
        verdict = "pass" if gate.holds(value) else "fail"
    said = f"{gate.metric} is {shown(value)}{_of_how_many(gate.metric, side.trials)}"
    if verdict == "undecided":
        said += f", and {why} leave it anywhere from {shown(low)} to {shown(high)}"
    elif verdict == "pass" and _stands_for_faults(gate.metric, side.trials):
        verdict, said = "undecided", f"no trial has {gate.metric}: only faults of the agent, worth 0, stand for it"
    return GateResult(gate=gate.text, arm=side.name, verdict=verdict, value=value, why=said)


def _of_how_many(metric: str, trials: Sequence[Trial]) -> str:
    """Return how many trials a mean is over, where some have no value."""
    if metric in (*COUNTS, *RESOURCES):
        return ""
    scored = sum(trial.value(metric) is not None for trial in trials)
    return "" if scored == len(trials) else f" over {scored} of {len(trials)} trials"


def _stands_for_faults(metric: str, trials: Sequence[Trial]) -> bool:
    return metric not in (*COUNTS, *RESOURCES) and not any(trial.measures(metric) for trial in trials)


Range = tuple[float | None, float | None, float | None, str]


def _range(metric: str, trials: Sequence[Trial]) -> Range:
    """Return the least value that a metric can have, its value, and the greatest, with what leaves it open."""
    if metric in COUNTS:
        count = float(_count(metric, trials))
        return count, count, count, ""
    values = [value for trial in trials if (value := trial.value("cost" if metric == "total_cost" else metric)) is not None]
    if metric in RESOURCES:
        return _resource(metric, values, len(trials))
    lost = _count("harness_errors", trials)
    why = f"{lost} faults of the harness"
    if lacks(trials, metric) or not values:
        if not lost or values:
            raise UsageError(f"no trial has the metric {metric}", hint="see: evalwright report --format json", key="gate")
        return None, None, None, why
    value = sum(values) / len(values)
    if "." in metric:
        return (value, value, value, "") if not lost else (None, value, None, f"{why} leave it open")
    all_of_them = len(values) + lost
    return sum(values) / all_of_them, value, (sum(values) + lost) / all_of_them, why


def _resource(metric: str, values: Sequence[float], count: int) -> Range:
    """Return the range of a sum or mean of which some terms may be unknown: they are at least 0, and at most anything."""
    unknown = count - len(values)
    why = f"{unknown} of {count} trials did not tell"
    divisor = count if metric != "total_cost" else 1
    if not values:
        return None, None, None, why if count else "there are no trials"
    known = sum(values) / divisor
    return known, known, math.inf if unknown else known, why


def _count(name: str, trials: Sequence[Trial]) -> int:
    if name == "unscored":
        return sum(trial.status == "unscored" for trial in trials)
    return sum(trial.status == "error" and (trial.fault == "agent") == (name == "agent_faults") for trial in trials)
