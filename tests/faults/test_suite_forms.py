"""The two forms of a suite: what the evalctl form lets pass and the native form refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults.suite_records import case, load, records_of

if TYPE_CHECKING:
    from tests.conftest import Project


@pytest.mark.parametrize(("native", "status"), [(True, "pass"), (False, "fail")])
def test_star_stops_at_a_slash_only_in_native_form(project: Project, native: bool, status: str) -> None:
    project.suite(
        cases=[case(expect={"files_forbidden": ["sub/*"]})],
        runner={"shell": True, "command": "mkdir -p sub/deep; echo x > sub/deep/b.txt"},
        scorers=[{"use": "workspace-diff"}],
        native=native,
    )
    answer = project.call("run", "demo", "--run-id", "r")
    assert answer.exit_code == 0
    changed = [item["path"] for item in project.record("r", "a", "workspace-diff.json")["changed_paths"]]
    assert "sub/deep/b.txt" in changed
    if native:
        # a directory of its own is a change below sub/ too, so only the file pattern tells the forms apart
        project.suite(
            "files",
            cases=[case(expect={"files_forbidden": ["sub/*.txt"]})],
            runner={"shell": True, "command": "mkdir -p sub/deep; echo x > sub/deep/b.txt"},
            scorers=[{"use": "workspace-diff"}],
        )
        assert project.call("run", "files", "--run-id", "f").data["run"]["status_counts"]["pass"] == 1
    else:
        assert answer.data["run"]["status_counts"][status] == 1


@pytest.mark.parametrize(("native", "scorers"), [(True, ["exact"]), (False, ["exact", "workspace-diff"])])
def test_workspace_diff_always_records_only_in_evalctl_form(project: Project, native: bool, scorers: list[str]) -> None:
    project.suite(cases=[case()], runner={"argv": ["printf", "ok"]}, native=native)
    project.call("run", "demo", "--run-id", "r")
    assert [score["scorer"] for score in project.record("r", "a", "score.json")["scores"]] == scorers


@pytest.mark.parametrize(("native", "status"), [(True, "fail"), (False, "pass")])
def test_exit_status_that_no_expectation_names_fails_only_in_native_form(project: Project, native: bool, status: str) -> None:
    project.suite(cases=[case()], runner={"shell": True, "command": "printf ok; exit 3"}, native=native)
    assert project.call("run", "demo").data["run"]["status_counts"][status] == 1


def test_exit_status_that_an_expectation_names_is_data_in_native_form(project: Project) -> None:
    project.suite(cases=[case(expect={"exit_code": 3})], runner={"shell": True, "command": "exit 3"})
    assert project.call("run", "demo").data["run"]["status_counts"]["pass"] == 1


def test_case_that_no_scorer_can_judge_is_refused_only_in_native_form(project: Project) -> None:
    records = records_of(project.suite("native", cases=[case(expect={})]))
    assert [(record["line"], record["key"]) for record in records] == [(1, "expect")]
    assert load(project.suite("evalctl", cases=[case(expect={})], native=False)).suite.cases


COMMAND = {"use": "command", "id": "judge", "argv": ["true"]}


@pytest.mark.parametrize("key", ["rubric", "golden_answer", "topic"])
def test_unclaimed_expectation_passes_only_in_evalctl_form_with_a_command_scorer(project: Project, key: str) -> None:
    cases = [case(expect={key: 1, "exact": "ok"})]
    scorers = [COMMAND, {"use": "exact"}]
    assert load(project.suite("s1", cases=cases, scorers=scorers, native=False)).suite.cases
    assert records_of(project.suite("s2", cases=cases, scorers=[{"use": "exact"}], native=False))
    assert records_of(project.suite("s3", cases=cases, scorers=scorers))


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("exct", "exact"),
        ("exacctt", "exact"),
        ("exyzt", "exact"),
        ("eaxct", "exact"),
        ("exit_cod", "exit_code"),
        ("files_exists", "files_exist"),
    ],
)
def test_unclaimed_expectation_near_a_known_key_is_refused_in_evalctl_form_too(project: Project, key: str, near: str) -> None:
    directory = project.suite(cases=[case(expect={key: 1})], scorers=[COMMAND, {"use": "exact"}], native=False)
    records = records_of(directory)
    assert [record["did_you_mean"] for record in records] == [near]


@pytest.mark.parametrize("key", ["text_contains_all", "exact_value", "json_schema_ref"])
def test_unclaimed_expectation_more_than_two_letters_away_passes_in_evalctl_form(project: Project, key: str) -> None:
    scorers = [COMMAND, {"use": "exact"}]
    assert load(project.suite(cases=[case(expect={key: 1})], scorers=scorers, native=False)).suite.cases


def test_builtin_expectation_without_its_scorer_is_refused_only_in_native_form(project: Project) -> None:
    cases = [case(expect={"exact": "ok", "exit_code": 0})]
    assert records_of(project.suite("s1", cases=cases, scorers=[{"use": "exact"}]))
    assert load(project.suite("s2", cases=cases, scorers=[{"use": "exact"}], native=False)).suite.cases
