"""Ranks on a leaderboard, with intervals: how far would other cases of the same kind move them?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from evalwright.errors import UsageError
from evalwright.stats.findings import FindingCounts, finding_scores
from evalwright.stats.outcomes import Interval, at_least, fraction


@dataclass(frozen=True, slots=True)
class Rank:
    """The place of one entry among ``entries``, 1 for the best; ties share the better place."""

    score: float
    rank: int
    entries: int
    interval: Interval


def finding_ranks(
    entries: Mapping[str, Mapping[str, FindingCounts]],
    *,
    beta: float = 1.0,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> dict[str, Rank]:
    """Return the rank of every entry by micro F-beta over the cases that all entries cover, best first.

    The interval is the percentile bootstrap over cases, drawn alike for all entries: Goldstein and Spiegelhalter, "League
    tables and their limitations", JRSS A 159 (1996), with Efron's percentiles. Raises ``UsageError`` if no case is
    covered by all.
    """
    fraction(confidence, "confidence")
    cases = _covered(entries)
    columns = {name: [counts[case] for case in cases] for name, counts in entries.items()}
    random, draws = Random(seed), list[dict[str, int]]()
    for _ in range(at_least(resamples, 100, "resamples")):
        drawn = random.choices(range(len(cases)), k=len(cases))
        draws.append(_places({name: _micro(column, drawn, beta) for name, column in columns.items()}))
    scores = {name: _micro(column, range(len(cases)), beta) for name, column in columns.items()}
    places = _places(scores)
    skipped = math.floor((1 - confidence) / 2 * resamples)
    ranks = dict[str, Rank]()
    for name in sorted(entries, key=lambda name: (places[name], name)):
        drawn_places = sorted(draw[name] for draw in draws)
        interval = Interval(drawn_places[skipped], drawn_places[-1 - skipped], confidence)
        ranks[name] = Rank(scores[name], places[name], len(entries), interval)
    return ranks


def _covered(entries: Mapping[str, Mapping[str, FindingCounts]]) -> list[str]:
    boards = [set(counts) for counts in entries.values()]
    shared = boards[0].intersection(*boards[1:]) if boards else set[str]()
    if not shared:
        raise UsageError("no case is covered by all entries", hint="rank entries over cases that they share")
    return sorted(shared)


def _micro(column: Sequence[FindingCounts], chosen: Sequence[int], beta: float) -> float:
    posted = gold = matched = 0
    for index in chosen:
        counts = column[index]
        posted, gold, matched = posted + counts.posted, gold + counts.gold, matched + counts.matched
    return finding_scores(FindingCounts(posted, gold, matched), beta=beta).f_beta


def _places(scores: Mapping[str, float]) -> dict[str, int]:
    order = sorted(scores.values(), reverse=True)
    best = dict[float, int]()
    for place, score in enumerate(order, 1):
        best.setdefault(score, place)
    return {name: best[score] for name, score in scores.items()}
