"""The figures of imported results, computed from the instances and not taken from the scorecard's own totals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from evalwright.model import Usage
from evalwright.stats import FindingCounts, intersection_at_k, macro_scores, mcnemar, micro_scores, union_at_k
from evalwright_adapters.lastlight.reviews import counts_of, is_fenced, recall_by_severity, replayed
from evalwright_adapters.lastlight.scorecard import Card, Result
from evalwright_adapters.lastlight.trials import ReadTrial

__all__ = ["summary_of"]

Run = tuple[Card, str, int, Sequence[ReadTrial]]
Record = dict[str, Any]


def summary_of(runs: Sequence[Run]) -> Record:
    """Return all figures: over all trials, and by run where there are several."""
    results = [trial.result for _, _, _, trials in runs for trial in trials]
    summary = _checked(results) | _consumed([trial for _, _, _, trials in runs for trial in trials])
    reviewed = any(result.review for result in results)
    summary |= _reviewed(runs) if reviewed else {}
    if len(runs) > 1:
        summary["by_run"] = [_by_run(run) for run in runs]
        summary["band"] = [_band(arm, runs) for arm in dict.fromkeys(arm for _, arm, _, _ in runs)] if reviewed else []
    return summary


def _checked(results: Sequence[Result]) -> Record:
    """Return how many instances did what was expected, and how many tests resolved."""
    found: Record = {}
    behavioral = [result.behavioral for result in results if result.behavioral]
    if behavioral:
        checks = sum(len(each.checks) for each in behavioral)
        found["behavioral"] = {"ok": sum(each.ok for each in behavioral), "total": len(behavioral), "checks": checks}
    resolved = [result.resolved for result in results if result.resolved is not None]
    if resolved:
        found["resolved"] = {"ok": sum(resolved), "total": len(resolved)}
    return found


def _consumed(trials: Sequence[ReadTrial]) -> Record:
    """Return cost, tokens and time; a sum of which a part is unknown is ``null``."""
    results = [trial.result for trial in trials]
    usages = [trial.trial.usage or Usage() for trial in trials]
    cost = _sum(usage.cost for usage in usages)
    times = [result.duration_ms for result in results if result.measured and result.duration_ms is not None]
    return {
        "cost_usd": None if cost is None else round(cost, 10),
        "tokens": {
            "in": _sum(result.input_tokens if result.measured else None for result in results),
            "cached": _sum(result.cached_tokens if result.measured else None for result in results),
            "out": _sum(result.output_tokens if result.measured else None for result in results),
            "cache_read": _sum(usage.cache_read for usage in usages),
            "cache_write": _sum(usage.cache_write for usage in usages),
        },
        "median_duration_ms": statistics.median(times) if times else None,
        "turns": _sum(usage.turns for usage in usages),
        "tool_calls": _sum(usage.tool_calls for usage in usages),
        "tool_errors": _sum(usage.tool_errors for usage in usages),
    }


def _sum(values: Iterable[float | None]) -> float | None:
    """Return the sum, ``None`` when a value is unknown; whole numbers stay whole."""
    given = list(values)
    known = [value for value in given if value is not None]
    if len(known) < len(given):
        return None
    return sum(known) if all(isinstance(value, int) for value in known) else math.fsum(known)


def _reviewed(runs: Sequence[Run]) -> Record:
    """Return counts and scores of all reviews, recall by severity, and whether the judge's stored replies give the same."""
    numbered = enumerate(trial.result for _, _, _, trials in runs for trial in trials)
    reviews = {str(number): result.review for number, result in numbered if result.review}
    counts = {name: counts_of(review) for name, review in reviews.items()}
    traces = [(review, review.trace) for review in reviews.values() if review.trace]
    kept = [(review, trace) for review, trace in traces if trace.raw_extract is not None]
    same = [replayed(trace, review.gold) == (review.posted, review.matched) for review, trace in kept]
    gold = [item for _, trace in traces for item in trace.gold]
    replies = {"kept": len(kept), "fenced": sum(is_fenced(trace.raw_extract) for _, trace in kept), "reproduced": sum(same)}
    return _scores(counts) | {"recall_by_severity": recall_by_severity(gold), "judge_replies": replies}


def _scores(counts: dict[str, FindingCounts]) -> Record:
    micro, macro = micro_scores(counts), macro_scores(counts)
    assert micro is not None
    assert macro is not None
    return {
        "posted": sum(each.posted for each in counts.values()),
        "gold": sum(each.gold for each in counts.values()),
        "matched": sum(each.matched for each in counts.values()),
        "micro_precision": micro.precision,
        "micro_recall": micro.recall,
        "micro_f1": micro.f_beta,
        "macro_precision": macro.precision,
        "macro_recall": macro.recall,
        "macro_f1": macro.f_beta,
    }


def _by_run(run: Run) -> Record:
    card, arm, repeat, trials = run
    counts = {trial.result.instance_id: counts_of(trial.result.review) for trial in trials if trial.result.review}
    return {"arm": arm, "repeat": repeat, "source": card.run_id, "cases": len(trials), **(_scores(counts) if counts else {})}


def _band(arm: str, runs: Sequence[Run]) -> Record:
    """Return the spread of recall over the repeats of an arm, and what any or all of them found of the gold."""
    mine = [trials for _, name, _, trials in runs if name == arm]
    hits = _hits(mine)
    gold, repeats = len(hits), len(mine)
    found = [sum(each[index] for each in hits.values()) for index in range(repeats)]
    changes = [
        {"from": first + 1, "to": second + 1, **_change([(each[first], each[second]) for each in hits.values()])}
        for first, second in combinations(range(repeats), 2)
    ]
    return {
        "arm": arm,
        "gold": gold,
        "recall": [count / gold for count in found] if gold else [],
        "mean": sum(found) / (gold * repeats) if gold else None,
        "spread": (max(found) - min(found)) / gold if gold else None,
        "union": sum(any(each) for each in hits.values()),
        "intersection": sum(all(each) for each in hits.values()),
        "union_at_k": [union_at_k(hits, k).value for k in range(1, repeats + 1)],
        "intersection_at_k": [intersection_at_k(hits, k).value for k in range(1, repeats + 1)],
        "mcnemar": changes,
    }


def _hits(repeats: Sequence[Sequence[ReadTrial]]) -> dict[str, list[bool]]:
    """Return for each gold finding that every repeat was judged against, whether each of them found it."""
    found: dict[str, list[bool]] = {}
    for trials in repeats:
        for trial in trials:
            trace = trial.result.review.trace if trial.result.review else None
            for index, item in enumerate(trace.gold if trace else []):
                found.setdefault(f"{trial.result.instance_id} {index}", []).append(item.matched_finding is not None)
    return {name: hits for name, hits in found.items() if len(hits) == len(repeats)}


def _change(pairs: Sequence[tuple[bool, bool]]) -> Record:
    test = mcnemar(sum(b and not a for a, b in pairs), sum(a and not b for a, b in pairs))
    return {"gained": test.gained, "lost": test.lost, "p": test.p}
