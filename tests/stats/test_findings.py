"""Findings against gold, and ranks made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.errors import UsageError
from evalwright.stats import FindingCounts, FindingScores, finding_ranks, finding_scores, macro_scores, micro_scores

DATA = Path(__file__).parent.parent / "data" / "lastlight"


@pytest.fixture(scope="module")
def sample() -> dict[str, FindingCounts]:
    """Return the counts of a real review run over ten pull requests."""
    counts = json.loads((DATA / "pr-review-counts.json").read_text())
    return {case: FindingCounts(**row) for case, row in counts.items()}


@pytest.fixture(scope="module")
def board() -> dict[str, dict[str, FindingCounts]]:
    """Return the counts of 22 tools over 50 pull requests."""
    tools: dict[str, dict[str, FindingCounts]] = {}
    for case, instance in json.loads((DATA / "martian-leaderboard.json").read_text())["instances"].items():
        for tool, row in instance["toolMetrics"].items():
            counts = FindingCounts(posted=row["tp"] + row["fp"], gold=row["tp"] + row["fn"], matched=row["tp"])
            tools.setdefault(tool, {})[case] = counts
    return tools


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        (FindingCounts(0, 0, 0), FindingScores(1, 1, 1)),
        (FindingCounts(3, 0, 0), FindingScores(0, 1, 0)),
        (FindingCounts(0, 3, 0), FindingScores(0, 0, 0)),
        (FindingCounts(4, 2, 1), FindingScores(0.25, 0.5, 2 * 0.25 * 0.5 / 0.75)),
    ],
)
def test_findings_score_by_what_was_posted_and_what_is_gold(counts: FindingCounts, expected: FindingScores) -> None:
    assert finding_scores(counts) == expected


def test_beta_weighs_recall() -> None:
    assert finding_scores(FindingCounts(4, 2, 1), beta=2).f_beta == pytest.approx(5 * 0.25 * 0.5 / (4 * 0.25 + 0.5))
    with pytest.raises(UsageError, match="beta is 0"):
        finding_scores(FindingCounts(1, 1, 1), beta=0)


def test_more_matches_than_findings_are_refused() -> None:
    with pytest.raises(UsageError, match="3 matches of 2 posted"):
        FindingCounts(2, 4, 3)


def test_micro_and_macro_of_a_real_run_are_the_published_ones(sample: dict[str, FindingCounts]) -> None:
    micro, macro = micro_scores(sample), macro_scores(sample)
    assert micro is not None
    assert macro is not None
    assert (micro.precision, micro.recall, micro.f_beta) == pytest.approx((0.4, 0.3571, 0.3774), abs=5e-5)
    assert (macro.precision, macro.recall, macro.f_beta) == pytest.approx((0.3667, 0.3333, 0.3250), abs=5e-5)


def test_no_cases_have_no_scores() -> None:
    assert micro_scores({}) is None
    assert macro_scores({}) is None


def test_the_best_of_the_full_board_is_the_published_one(board: dict[str, dict[str, FindingCounts]]) -> None:
    ranks = finding_ranks(board, resamples=100)
    best = next(iter(ranks))
    matched = sum(counts.matched for counts in board[best].values())
    posted = sum(counts.posted for counts in board[best].values())

    assert (best, ranks[best].rank, ranks[best].entries) == ("cubic-v2", 1, 22)
    assert ranks[best].score == pytest.approx(0.6184, abs=5e-5)
    assert (matched, posted - matched, sum(counts.gold for counts in board[best].values())) == (94, 73, 137)


def test_a_run_is_ranked_on_what_it_covers(
    board: dict[str, dict[str, FindingCounts]], sample: dict[str, FindingCounts]
) -> None:
    rank = finding_ranks({**board, "ours": sample})["ours"]
    assert (rank.rank, rank.entries) == (16, 23)
    assert (rank.interval.low, rank.interval.high) == (7, 21)


def test_ties_share_the_better_place_and_do_not_depend_on_names() -> None:
    good, bad = {"c": FindingCounts(2, 2, 2)}, {"c": FindingCounts(2, 2, 0)}
    assert {name: rank.rank for name, rank in finding_ranks({"z": good, "a": bad, "b": good}).items()} == {
        "b": 1,
        "z": 1,
        "a": 3,
    }


def test_entries_that_share_no_case_cannot_be_ranked() -> None:
    with pytest.raises(UsageError, match="no case is covered by all"):
        finding_ranks({"a": {"c": FindingCounts(1, 1, 1)}, "b": {"d": FindingCounts(1, 1, 1)}})
    with pytest.raises(UsageError, match="no case is covered by all"):
        finding_ranks({})
