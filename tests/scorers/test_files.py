"""file-exists, workspace-diff and exit-code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from evalwright.model import Change, Entry, Manifest, Score
from evalwright_scorers.exit_code import ExitCode
from evalwright_scorers.files import FileExists, WorkspaceDiff
from evalwright_scorers.path_globs import matches

Judge = Callable[..., Score]

TREE = Manifest(
    (
        Entry(path="a", kind="directory"),
        Entry(path="a/b", kind="directory"),
        Entry(path="a/b/c.py", kind="file"),
        Entry(path="a/d.py", kind="file"),
        Entry(path="odd[1].txt", kind="file"),
        Entry(path="link", kind="symlink"),
    )
)


def changes(*paths: str) -> tuple[Change, ...]:
    return tuple(Change(path=path, status="modified", kind="file", sha256_before=None, sha256_after=None) for path in paths)


@pytest.mark.parametrize(
    ("pattern", "path", "matched"),
    [
        ("a/*.py", "a/b.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**", "a/b/c.py", True),
        ("a/**", "a", False),
        ("a/b/", "a/b/c.py", True),
        ("a/b/", "a/b/c/d.py", True),
        ("a/b/", "a/b", False),
        ("a/b/", "a/bc", False),
        ("**/c.py", "c.py", True),
        ("**/c.py", "a/b/c.py", True),
        ("a/**/c.py", "a/c.py", True),
        ("a/**/c.py", "a/x/y/c.py", True),
        ("a/**/c.py", "b/x/c.py", False),
        ("**", "a/b", True),
        ("*", "a/b", False),
        ("a?c", "a/c", False),
        ("a[/]c", "a/c", False),
        ("[ab].py", "b.py", True),
        ("[!ab].py", "b.py", False),
        ("./a/b", "a/b", True),
        ("A.py", "a.py", False),
        ("", "a", False),
    ],
)
def test_a_star_stops_at_a_slash_and_two_cross_it(pattern: str, path: str, matched: bool) -> None:
    assert matches(pattern, path) is matched


def test_fnmatch_patterns_cross_slashes() -> None:
    assert matches("a/*.py", "a/b/c.py", "fnmatch")
    assert not matches("a/b/", "a/b/c.py", "fnmatch")


def test_a_pattern_of_many_stars_does_not_explode() -> None:
    assert not matches("*a" * 40 + "/**/" * 20 + "b", "a" * 200 + "/x" * 200)


@pytest.mark.parametrize(
    ("pattern", "there"),
    [
        ("a/d.py", True),
        ("./a/d.py", True),
        ("a/b", True),
        ("a/b/", True),
        ("a/d.py/", False),
        ("link", True),
        ("a/*.py", True),
        ("*.py", False),
        ("**/*.py", True),
        ("odd[1].txt", True),
        ("a/none", False),
    ],
)
def test_entries_of_any_kind_exist_by_path_or_pattern(judge: Judge, pattern: str, there: bool) -> None:
    score = judge(FileExists, {"files_exist": [pattern]}, after=TREE)

    assert score.findings == (() if there else ({"path": pattern, "why": "expected file missing"},))


@pytest.mark.parametrize(("pattern", "there"), [("./a/d.py", True), ("a", True), ("*.py", True), ("odd[1].txt", True)])
def test_file_exists_in_fnmatch_form(judge: Judge, pattern: str, there: bool) -> None:
    assert judge(FileExists, {"files_exist": [pattern]}, {"globs": "fnmatch"}, after=TREE).ok is there


def test_wanted_changes_come_before_forbidden_ones_in_the_findings(judge: Judge) -> None:
    expect = {"files_changed": ["new.py", "src/*.py"], "files_forbidden": ["tests/", "*.lock"]}

    score = judge(WorkspaceDiff, expect, changes=changes("src/a.py", "tests/x.py", "tests/y/z.py", "u.lock"))

    assert score.findings == (
        {"path": "new.py", "why": "expected change missing"},
        {"path": "tests/", "why": "forbidden path modified"},
        {"path": "tests/", "why": "forbidden path modified"},
        {"path": "*.lock", "why": "forbidden path modified"},
    )


def test_a_forbidden_file_whose_name_is_not_utf8_is_seen(judge: Judge) -> None:
    assert not judge(WorkspaceDiff, {"files_forbidden": ["secret/"]}, changes=changes(r"secret/\xff")).ok


def test_no_change_passes_a_case_that_only_forbids(judge: Judge) -> None:
    assert judge(WorkspaceDiff, {"files_forbidden": ["a"]}).ok


@pytest.mark.parametrize(
    ("expect", "config", "applied"),
    [
        ({}, {}, False),
        ({"files_changed": []}, {}, False),
        ({"files_forbidden": ["x"]}, {}, True),
        ({}, {"always": True}, True),
        ({}, {"files_changed": ["x"]}, True),
    ],
)
def test_workspace_diff_records_only_what_it_can_judge(
    applies: Callable[..., bool], expect: Any, config: Any, applied: bool
) -> None:
    assert applies(WorkspaceDiff, expect, config) is applied


def test_an_exit_status_is_compared(judge: Judge) -> None:
    assert judge(ExitCode, {"exit_code": 3}, exit_code=3).ok
    assert judge(ExitCode, {"exit_code": -9}, exit_code=-9).ok
    assert judge(ExitCode, {}, {"exit_code": 0}, exit_code=0).ok


@pytest.mark.parametrize("actual", [1, None])
def test_another_exit_status_is_shown(judge: Judge, actual: int | None) -> None:
    score = judge(ExitCode, {"exit_code": 0}, exit_code=actual)

    assert score.findings == ({"why": "exit code mismatch", "expected": 0, "actual": actual},)


def test_an_expected_zero_applies(applies: Callable[..., bool]) -> None:
    assert applies(ExitCode, {"exit_code": 0})
    assert not applies(ExitCode, {})


@pytest.mark.parametrize(
    ("scorer", "key", "value"),
    [
        (ExitCode, "exit_code", False),
        (ExitCode, "exit_code", "0"),
        (ExitCode, "exit_code", 1.0),
        (FileExists, "files_exist", "a.py"),
        (WorkspaceDiff, "files_changed", "a.py"),
        (WorkspaceDiff, "files_forbidden", [1]),
    ],
)
def test_values_of_the_wrong_type_are_refused(scorer: Any, key: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        scorer.Expect[key].model_validate(value)
