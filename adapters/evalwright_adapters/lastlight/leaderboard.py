"""Scores of other tools on the same pull requests: an experiment of their own, and a field in which results are placed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from evalwright.interfaces import (
    Imported,
    ImportedRun,
    ImportedSummary,
    ImportedTrial,
)
from evalwright.stats import FindingCounts, Rank, finding_ranks, micro_scores
from evalwright_adapters.lastlight.instances import InstanceId
from evalwright_adapters.lastlight.recorded_suite import recorded_case, recorded_suite
from evalwright_adapters.lastlight.reviews import counts_of, review_score
from evalwright_adapters.lastlight.source import read_bytes, validated
from evalwright_adapters.lastlight.trials import ReadTrial

__all__ = ["Leaderboard", "placed", "read_leaderboard", "reference_experiment"]

Count = Annotated[int, Field(ge=0, le=2**31)]
Record = dict[str, Any]
CREATED = "1970-01-01T00:00:00Z"


class _Metrics(BaseModel, extra="ignore"):
    tp: Count
    fp: Count
    fn: Count


class _Instance(BaseModel, extra="ignore"):
    url: str = ""
    tools: dict[str, _Metrics] = Field(alias="toolMetrics")


class _Document(BaseModel, extra="ignore"):
    source: str
    judge_model: str = Field(default="", alias="judgeModel")
    names: dict[str, str] = Field(default={}, alias="toolDisplayNames")
    instances: dict[InstanceId, _Instance]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaderboard:
    """Counts by tool and instance. ``urls`` names each instance's pull request, ``names`` each tool for people."""

    path: Path
    source: str
    judge: str
    names: Mapping[str, str]
    urls: Mapping[str, str]
    counts: Mapping[str, Mapping[str, FindingCounts]]


def read_leaderboard(path: Path) -> Leaderboard:
    """Return a leaderboard. Raises ``UsageError`` for a damaged one."""
    document = validated(_Document, read_bytes(path), path)
    counts: dict[str, dict[str, FindingCounts]] = {}
    for name, instance in document.instances.items():
        for tool, m in instance.tools.items():
            counts.setdefault(tool, {})[name] = FindingCounts(m.tp + m.fp, m.tp + m.fn, m.tp)
    urls = {name: instance.url for name, instance in document.instances.items()}
    return Leaderboard(
        path=path, source=document.source, judge=document.judge_model, names=document.names, urls=urls, counts=counts
    )


def reference_experiment(board: Leaderboard) -> Iterator[Imported]:
    """Describe the leaderboard as an experiment: every tool is an arm with one repeat, known by its scores only."""
    name = "lastlight-" + board.path.stem
    yield recorded_suite(name, board.source, ["findings"])
    for case_id, url in sorted(board.urls.items()):
        yield recorded_case(case_id, f"Review the pull request {url}.\n", meta={"url": url})
    for tool, counts in sorted(board.counts.items()):
        settings = {"harness": board.source, "tool": board.names.get(tool, tool), "judge": board.judge}
        yield ImportedRun(
            experiment=name,
            arm=tool,
            repeat=1,
            created=CREATED,
            evidence="scores-only",
            source=board.source,
            settings=settings,
        )
        for case_id, each in sorted(counts.items()):
            yield ImportedTrial(case_id=case_id, scores=[review_score(each)])
    yield ImportedSummary(_summary(board))


def placed(board: Leaderboard | None, arms: Mapping[str, Sequence[ReadTrial]]) -> Iterator[ImportedSummary]:
    """Place arms among the tools of a leaderboard, over the instances that all of them cover; without such ones say nothing."""
    if board is None:
        return
    mine = {
        arm: {trial.result.instance_id: counts_of(trial.result.review) for trial in trials if trial.result.review}
        for arm, trials in arms.items()
    }
    entries = {**{f"{arm} (imported)": counts for arm, counts in mine.items() if counts}, **board.counts}
    covered = [case for case in board.urls if all(case in counts for counts in entries.values())]
    if len(entries) == len(board.counts) or not covered:
        return
    ranks = finding_ranks(entries)
    reference = [
        {"arm": arm, "tools": len(board.counts), "cases": len(covered), **_rank(ranks[f"{arm} (imported)"])}
        for arm, counts in mine.items()
        if counts
    ]
    yield ImportedSummary({"reference": {"source": board.source, "arms": reference, "ranking": _ranking(board, ranks)}})


def _summary(board: Leaderboard) -> Record:
    ranks = finding_ranks(board.counts)
    best = next(iter(ranks))
    counts = board.counts[best].values()
    posted, gold, matched = (sum(getattr(each, name) for each in counts) for name in ("posted", "gold", "matched"))
    micro = micro_scores(board.counts[best])
    return {
        "tools": len(board.counts),
        "gold": gold,
        "best": {
            "tool": best,
            "f1": micro.f_beta if micro else None,
            "tp": matched,
            "fp": posted - matched,
            "fn": gold - matched,
        },
        "reference": {"source": board.source, "ranking": _ranking(board, ranks)},
    }


def _ranking(board: Leaderboard, ranks: Mapping[str, Rank]) -> list[Record]:
    return [{"key": key, "name": board.names.get(key, key), **_rank(rank)} for key, rank in ranks.items()]


def _rank(rank: Rank) -> Record:
    interval = [int(rank.interval.low), int(rank.interval.high)]
    return {"rank": rank.rank, "of": rank.entries, "f1": rank.score, "interval": interval}
