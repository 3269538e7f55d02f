"""Groups of failures, selections, and cases that are held out."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.views import MIXED, score, trial, view

from evalwright.errors import NothingSelected, RunCorrupt
from evalwright.report import ExperimentView
from evalwright.report.cases import CaseFacts, facts_of, select, without_held_out
from evalwright.report.figures.failures import failures_of
from evalwright.report.figures.groups import GROUPINGS, Group, folded, group_failures

FACTS = {"a": CaseFacts(("slow", "net"), "train"), "b": CaseFacts(("slow",), "held-out"), "c": CaseFacts()}


def grouped(found: ExperimentView, by: str) -> list[Group]:
    return group_failures(failures_of(found), by, FACTS)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("took 12 tries", "took N tries"),
        ("1.5e-3 is not 2", "N is not N"),
        ("src/a.py: missing", "PATH: missing"),
        ("/tmp/x1/y: no", "PATH: no"),
        ("./a/b and ../c/d", "PATH and PATH"),
        ("digest 3f2a9c01deadbeef differs", "digest HEX differs"),
        ("0xdeadbeef", "HEX"),
        ("gcd[3]: failed", "gcd[N]: failed"),
        ("utf8 and v2 stay", "utf8 and v2 stay"),
        ("a / b", "a / b"),
        ("", ""),
    ],
)
def test_findings_that_differ_in_numbers_and_paths_only_are_one(text: str, key: str) -> None:
    assert folded(text) == key


@pytest.mark.parametrize("text", ["/" * 160, "a/" * 80, "0" * 160, "0x" * 80, "-1" * 80, "1e" * 80])
def test_folding_of_any_line_ends(text: str) -> None:
    assert len(folded(text)) <= 5 * len(text)


def test_failures_of_a_finding_are_counted_with_examples() -> None:
    first, *rest = grouped(MIXED, "finding")
    record = first.as_json()
    assert (record["key"], record["count"], record["cases"]) == ("exact: PATH: took N tries (line N)", 4, ["a", "b"])
    assert record["arms"] == {"small": 3, "large": 1}
    assert record["examples"][0] == {
        "trial": "x.small.2/a",
        "arm": "small",
        "repeat": 2,
        "id": "a",
        "text": "exact: src/a.py: took 12 tries (line 3)",
    }
    assert len(record["examples"]) == 3
    assert [group.key for group in rest] == [
        "agent fault: nothing said why",
        "harness fault: nothing said why",
        "unscored: nothing said why",
    ]


def test_one_trial_counts_once_in_a_group_and_once_in_each_of_its_groups() -> None:
    wrong = score(findings=[{"test": f"t[{number}]", "why": "failed"} for number in range(3)])
    label = score(scorer="other", label="too slow", findings=[])
    advisory = score(scorer="advice", required=False)
    found = view({"only": ["f"]}, cases=["a"])
    row = trial("only", 1, "a", "f", scores=[wrong, label, advisory])
    found = replace(found, runs=[replace(found.runs[0], trials=[row])])
    assert {group.key: group.count for group in grouped(found, "finding")} == {"exact: t[N]: failed": 1, "other: too slow": 1}


@pytest.mark.parametrize(
    ("by", "counts"),
    [
        ("case", {"a": 1, "b": 3, "c": 3}),
        ("arm", {"small": 5, "large": 2}),
        ("split", {"train": 1, "held-out": 3, "(no split)": 3}),
        ("tag", {"slow": 4, "net": 1, "(no tag)": 3}),
    ],
)
def test_failures_are_put_together_by_what_they_share(by: str, counts: dict[str, int]) -> None:
    groups = grouped(MIXED, by)
    assert {group.key: group.count for group in groups} == counts
    assert [group.count for group in groups] == sorted(counts.values(), reverse=True)


@pytest.mark.parametrize("by", GROUPINGS)
def test_nothing_failed_makes_no_groups(by: str) -> None:
    assert grouped(view({"only": ["ppp"]}), by) == []


@pytest.mark.parametrize("split", ["held-out", "Held_Out", "heldout", "HOLDOUT", "hold-out", "test", " test "])
def test_held_out_cases_are_left_out_unless_their_split_is_named(split: str) -> None:
    facts = FACTS | {"b": CaseFacts((), split)}
    kept = without_held_out(MIXED, facts)
    assert {row.case for row in kept.trials} == {"a", "c"}
    assert (kept.planned, kept.finished) == (8, False)
    assert {row.case for row in without_held_out(MIXED, facts, [split]).trials} == {"a", "b", "c"}
    assert {row.case for row in without_held_out(MIXED, facts, ["train"]).trials} == {"a", "c"}


@pytest.mark.parametrize("split", ["train", "dev", "tests", "validation", None])
def test_other_splits_are_not_held_out(split: str | None) -> None:
    assert without_held_out(MIXED, {"a": CaseFacts((), split)}) is MIXED


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ({}, "abc"),
        ({"cases": ["b", "a"]}, "ab"),
        ({"tags": ["net"]}, "a"),
        ({"tags": ["net", "slow"]}, "ab"),
        ({"splits": ["train"]}, "a"),
        ({"tags": ["slow"], "splits": ["held-out"]}, "b"),
    ],
    ids=str,
)
def test_selection_keeps_the_plan_of_what_it_selects(wanted: dict[str, Any], left: str) -> None:
    found = select(MIXED, FACTS, **wanted)
    assert {row.case for row in found.trials} == set(left)
    assert found.planned == 4 * len(left)
    assert found.arms == MIXED.arms


@pytest.mark.parametrize(
    "wanted", [{"cases": ["z"]}, {"tags": ["z"]}, {"splits": ["z"]}, {"cases": ["a"], "tags": ["z"]}], ids=str
)
def test_selection_of_nothing_is_an_error(wanted: dict[str, Any]) -> None:
    with pytest.raises(NothingSelected, match="no cases matched: "):
        select(MIXED, FACTS, **wanted)


def snapshot(place: Path, lines: str, document: dict[str, Any] | None = None) -> ExperimentView:
    found = view({"only": ["ppp"]}, place=place)
    folder = found.runs[0].run.snapshot
    folder.mkdir(parents=True)
    (folder / "suite.json").write_text(json.dumps(document or {}))
    (folder / "cases.jsonl").write_text(lines)
    return found


def test_facts_come_from_the_suite_as_it_was_run(tmp_path: Path) -> None:
    lines = '{"id": "a", "tags": ["x", 3], "split": "test"}\n{"id": "b", "tags": "x", "split": 3}\n{"task": "t"}\n7\n'
    facts = facts_of(snapshot(tmp_path, lines))
    assert facts["a"] == CaseFacts(("x",), "test")
    assert facts["b"] == CaseFacts()
    assert len(facts) == 3


@pytest.mark.parametrize(
    ("lines", "document"),
    [
        ("{", None),
        ('{"id": "a"}\n{"id": "a", "id": "b"}', None),
        ("", {"cases": "../x"}),
        ("", {"cases": "no"}),
    ],
    ids=["torn", "torn later", "outside", "absent"],
)
def test_unreadable_suite_is_said_so(tmp_path: Path, lines: str, document: dict[str, Any] | None) -> None:
    with pytest.raises(RunCorrupt, match="does not say what cases"):
        facts_of(snapshot(tmp_path, lines, document))
