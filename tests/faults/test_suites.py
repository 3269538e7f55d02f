"""Cases that are wrong, problems of several files, suites of one name: every problem is named at once, with file and line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.suite_records import JUDGED, case, load, records_of, rewritten

if TYPE_CHECKING:
    from tests.conftest import Project

# cases.jsonl


@pytest.mark.parametrize(
    "line", ["[]", "[1, 2]", '"text"', "null", "7", "true", "{", "not json", '{"a": 1} {"b": 2}', "[" * 100_000]
)
def test_line_that_is_no_object_is_named_and_the_others_are_still_checked(project: Project, line: str) -> None:
    lines = [json.dumps({"id": "a", "task": "t", "workspace": "fixtures/w", "expect": JUDGED}), line, '{"id": "b"}']
    directory = project.suite(cases="\n".join(lines) + "\n")
    records = records_of(directory)
    assert {record["line"] for record in records} == {2, 3}
    assert {record["code"] for record in records} == {"E_CASE_INVALID"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task", 123),
        ("task", None),
        ("task", ["t"]),
        ("workspace", None),
        ("workspace", 7),
        ("expect", []),
        ("expect", None),
        ("expect", "ok"),
        ("expect", {"exact": 7}),
        ("expect", {"exact": ["ok"]}),
        ("expect", {"text_contains": "ok"}),
        ("expect", {"text_regex": "ok"}),
        ("expect", {"text_regex": ["("]}),
        ("expect", {"exit_code": False}),
        ("expect", {"exit_code": "0"}),
        ("expect", {"files_exist": "a.txt"}),
        ("expect", {"files_forbidden": [1]}),
        ("expect", {"json_schema": {"type": "nonsense"}}),
        ("expect", {"json_schema": []}),
        ("expect", {"numeric_threshold": {}}),
        ("expect", {"numeric_threshold": {"lt": 3, "path": 7}}),
        ("expect", {"numeric_threshold": {"path": "x", "ltt": 3}}),
        ("timeout_seconds", 0),
        ("timeout_seconds", -1),
        ("timeout_seconds", "1"),
        ("tags", "x"),
        ("split", 7),
        ("gold", 7),
        ("gold", {"out": "x"}),
        ("gold", {"output": 7}),
        ("meta", []),
        ("sandbox", {"image": "x"}),
        ("expectt", JUDGED),
        ("hiden", "x"),
    ],
)
@pytest.mark.parametrize("native", [True, False])
def test_case_that_would_break_or_pass_vacuously_is_refused(project: Project, native: bool, key: str, value: Any) -> None:
    records = records_of(project.suite(cases=[case(id="fine"), case(**{key: value})], native=native))
    assert {(record["code"], record["line"]) for record in records} == {("E_CASE_INVALID", 2)}
    assert any(str(record.get("key", "")).startswith(key) for record in records)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"meta": {"x": 1, "x": 1}}'])
def test_duplicate_key_in_a_case_is_refused_with_its_line(project: Project, text: str) -> None:
    good = json.dumps(case(task="t", workspace="fixtures/w"))
    records = records_of(project.suite(cases=f"{good}\n\n{text}\n"))
    assert [record["line"] for record in records] == [3]
    assert "stands twice" in records[0]["message"]


@pytest.mark.parametrize(("typo", "meant"), [("exacct", "exact"), ("exitcode", "exit_code"), ("text_contain", "text_contains")])
def test_misspelt_expectation_names_file_line_and_the_meant_one(project: Project, typo: str, meant: str) -> None:
    directory = project.suite(cases=[case(id="fine"), case(expect={typo: 0, "exact": "ok"})])
    records = records_of(directory)
    assert len(records) == 1
    assert (records[0]["file"], records[0]["line"]) == (str(directory / "cases.jsonl"), 2)
    assert records[0]["key"] == f"expect.{typo}"
    assert records[0]["did_you_mean"] == meant
    assert f"{directory / 'cases.jsonl'}:2" in records[0]["message"]


def test_blank_lines_are_skipped_and_still_counted(project: Project) -> None:
    good = json.dumps(case(task="t", workspace="fixtures/w"))
    records = records_of(project.suite(cases=f"\n  \n{good}\n\n{{}}\n\n"))
    assert {record["line"] for record in records} == {5}


def test_last_line_needs_no_line_feed(project: Project) -> None:
    assert len(load(project.suite(cases=json.dumps(case(task="t", workspace="fixtures/w")))).suite.cases) == 1


# all problems at once


@pytest.mark.parametrize(
    "wrong",
    [
        {"runner": {"argv": [1]}},
        {"taggs": ["x"]},
        {"tags": "x"},
        {"repeats": 0},
        {"name": "../x"},
        {"scorers": [{"use": "exact"}, {"use": "nosuch"}]},
        {"sandbox": "nosuch"},
        {"primary": "nosuch"},
        {"requires": 7},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_problems_of_both_files_come_at_once(project: Project, wrong: Mapping[str, Any]) -> None:
    cases = [case(id="a b"), case(id="c", task=7, tags="x"), case(id="d", expect={"exacct": "ok", "exact": "ok"})]
    directory = rewritten(project.suite(cases=cases, scorers=[{"use": "exact"}]), **wrong)
    records = records_of(directory)
    assert {Path(record["file"]).name for record in records} == {"suite.json", "cases.jsonl"}
    lines = [record["line"] for record in records if record["file"].endswith("cases.jsonl")]
    assert sorted(lines) == [1, 2, 2, 3]


def test_validate_prints_one_error_per_problem(project: Project) -> None:
    project.suite(cases=[case(id="a b"), case(id="b", task=7)], runner={"argv": [1]})
    answer = project.call("validate", "demo")
    assert answer.exit_code == 1
    assert len(answer.error_codes) == 3
    assert all({"code", "message", "hint", "exit_code", "file"} <= set(record) for record in answer.envelope["errors"])


# names


def test_suite_name_wins_over_a_directory_of_that_name_with_a_notice(project: Project) -> None:
    project.suite("smoke", cases=[case()])
    twin = project.path / "smoke"
    twin.mkdir()
    (twin / "suite.json").write_text(json.dumps({"name": "twin", "runner": {"argv": ["true"]}}))
    (twin / "cases.jsonl").write_text("")
    by_name = project.call("validate", "smoke")
    assert by_name.data == {"case_count": 1, "suite": "smoke", "valid": True}
    assert by_name.warning_codes == ["W_SUITE_SHADOWED"]
    by_path = project.call("validate", "./smoke")
    assert by_path.data == {"case_count": 0, "suite": "twin", "valid": True}
    assert by_path.warning_codes == []


def test_unknown_suite_names_the_nearest(project: Project) -> None:
    project.suite("smoke", cases=[case()])
    answer = project.call("run", "smok")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_SUITE_NOT_FOUND"])
    assert answer.envelope["errors"][0]["did_you_mean"] == "smoke"
