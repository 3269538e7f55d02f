"""Paths of a suite: gold never lies where the agent sees it, and fixtures hold only plain files and links that stay inside."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.faults.suite_records import case, load, records_of, rewritten

if TYPE_CHECKING:
    from tests.conftest import Project

# gold and what the runner sees


SECRETS = [
    ("hidden", "fixtures/w/tests"),
    ("hidden", "fixtures"),
    ("hidden", "fixtures/w"),
    ("hidden", "./fixtures//w/tests/"),
    ("gold", "fixtures/w/tests"),
    ("gold", "fixtures/w/tests/fix.patch"),
    ("gold", "fixtures"),
]


@pytest.mark.parametrize(("key", "path"), SECRETS)
def test_gold_inside_a_workspace_or_around_it_is_refused(project: Project, key: str, path: str) -> None:
    files = {"fixtures/w/tests/fix.patch": "x"}
    directory = project.suite(cases=[case(id="b"), case(**{key: path})], files=files)
    records = records_of(directory)
    assert any(record.get("line") == 2 and "inside one another" in record["message"] for record in records)


@pytest.mark.parametrize("key", ["hidden", "gold"])
def test_gold_of_one_case_in_the_workspace_of_another_is_refused(project: Project, key: str) -> None:
    cases = [case(id="a", **{key: "other/secret"}), case(id="b", workspace="other")]
    assert records_of(project.suite(cases=cases, files={"other/secret/x": "x"}))


@pytest.mark.parametrize("key", ["hidden", "gold"])
def test_gold_among_the_agents_own_files_is_refused(project: Project, key: str) -> None:
    runner = {"argv": ["true"], "files": ["agent"]}
    assert records_of(project.suite(cases=[case(**{key: "agent/secret"})], runner=runner, files={"agent/secret/x": "x"}))


@pytest.mark.parametrize("key", ["hidden", "gold"])
def test_gold_around_the_agents_own_files_is_refused(project: Project, key: str) -> None:
    runner = {"argv": ["true"], "files": ["secret/agent.py"]}
    assert records_of(project.suite(cases=[case(**{key: "secret"})], runner=runner, files={"secret/agent.py": "x"}))


def test_cases_file_inside_a_workspace_is_refused(project: Project) -> None:
    directory = project.suite(cases=[case()])
    (directory / "cases.jsonl").rename(directory / "fixtures" / "w" / "cases.jsonl")
    assert records_of(rewritten(directory, cases="fixtures/w/cases.jsonl"))


def test_cases_file_among_the_agents_own_files_is_refused(project: Project) -> None:
    assert records_of(project.suite(cases=[case()], runner={"argv": ["true"], "files": ["cases.jsonl"]}))


@pytest.mark.parametrize("key", ["hidden", "gold"])
def test_gold_that_a_link_leads_into_a_workspace_is_refused(project: Project, key: str) -> None:
    directory = project.suite(cases=[case(**{key: "answers"})], files={"fixtures/w/secret/x": "x"})
    (directory / "answers").symlink_to("fixtures/w/secret")
    assert records_of(directory)


@pytest.mark.parametrize("target", [".", "secret", "fixtures/../."])
def test_workspace_that_a_link_leads_around_the_gold_is_refused(project: Project, target: str) -> None:
    directory = project.suite(cases=[case(workspace="link", hidden="secret/tests")], files={"secret/tests/x": "x"})
    (directory / "link").symlink_to(target)
    assert records_of(directory)


def test_agent_files_that_a_link_leads_to_the_gold_are_refused(project: Project) -> None:
    runner = {"argv": ["true"], "files": ["agent"]}
    directory = project.suite(cases=[case(hidden="secret")], runner=runner, files={"secret/x": "x"})
    (directory / "agent").symlink_to("secret")
    assert records_of(directory)


def test_gold_patch_given_to_the_runner_as_its_diff_is_refused(project: Project) -> None:
    files = {"gold/fix.patch": "--- a\n+++ b\n"}
    assert records_of(project.suite(cases=[case(gold="gold/fix.patch", diff="gold/fix.patch")], files=files))


def test_diff_that_lies_in_the_hidden_directory_is_refused(project: Project) -> None:
    files = {"secret/fix.patch": "--- a\n+++ b\n"}
    assert records_of(project.suite(cases=[case(hidden="secret", diff="secret/fix.patch")], files=files))


def test_suite_that_shows_its_gold_on_purpose_warns(project: Project) -> None:
    for number, key in enumerate(("reveal_expect", "reveal_id")):
        checked = load(project.suite(f"s{number}", cases=[case()], runner={"argv": ["true"], key: True}))
        assert [warning["code"] for warning in checked.warnings] == ["W_GOLD_REVEALED"]


# fixtures


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("peek", "../case2/expected.json"),
        ("abs", "/etc/passwd"),
        ("dangling-abs", "/no/such/place"),
        ("loop", "."),
        ("up", ".."),
        ("sub/loop", ".."),
        ("self", "self"),
        ("climb", "sub/../../case2"),
    ],
)
@pytest.mark.parametrize("key", ["workspace", "hidden"])
def test_fixture_link_that_leads_out_or_loops_is_refused_by_name(project: Project, key: str, name: str, target: str) -> None:
    directory = project.suite(
        cases=[case(**{key: "fix"})], files={"fix/data.txt": "x", "fix/sub/x": "x", "case2/expected.json": "x"}
    )
    (directory / "fix" / name).symlink_to(target)
    records = records_of(directory)
    assert all(record["line"] == 1 for record in records)
    assert any(name in record["message"] for record in records)


def test_fixture_links_that_stay_inside_are_fine(project: Project) -> None:
    directory = project.suite(cases=[case()], files={"fixtures/w/sub/x": "x"})
    (directory / "fixtures" / "w" / "ok").symlink_to("./a.txt")
    (directory / "fixtures" / "w" / "sub" / "up").symlink_to("../a.txt")
    (directory / "fixtures" / "w" / "dangling").symlink_to("later.txt")
    assert load(directory).suite.cases


@pytest.mark.parametrize("key", ["workspace", "hidden", "gold"])
@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_fixture_that_holds_no_plain_file_is_refused(
    project: Project, key: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = project.suite(cases=[case(**{key: "fix"})], files={"fix/data.txt": "x"})
    if kind == "fifo":
        os.mkfifo(directory / "fix" / "odd")
    else:
        monkeypatch.chdir(directory / "fix")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("odd")
    records = records_of(directory)
    assert any("odd" in record["message"] and record["line"] == 1 for record in records)


@pytest.mark.parametrize("place", ["odd", "agent/odd", "notes/odd"])
def test_fifo_anywhere_in_a_suite_never_becomes_an_internal_error(project: Project, place: str) -> None:
    runner = {"argv": ["printf", "ok"], "files": ["agent"]}
    directory = project.suite(cases=[case()], runner=runner, files={"agent/x": "x", "notes/x": "x"})
    os.mkfifo(directory / place)
    answer = project.call("run", "demo", "--run-id", "r")
    assert answer.exit_code in {0, 1}
    assert "E_INTERNAL" not in answer.stdout
    if answer.exit_code == 1:
        assert "odd" in answer.envelope["errors"][0]["message"]
        assert not project.run_dir("r").exists()


def test_git_pointer_in_a_fixture_is_refused(project: Project) -> None:
    directory = project.suite(cases=[case()], files={"fixtures/w/.git": "gitdir: /elsewhere\n"})
    assert ".git" in records_of(directory)[0]["message"]


@pytest.mark.parametrize("native", [True, False])
def test_suite_that_is_run_from_inside_its_own_directory_holds_no_results(project: Project, native: bool) -> None:
    inside = replace(project, path=project.suite(cases=[case()], scorers=[{"use": "exact"}], native=native))

    for run_id in ("r", "again"):
        assert inside.call("run", ".", "--run-id", run_id).exit_code == 0
        snapshot = inside.path / "evals" / "runs" / run_id / "suite-snapshot"
        assert {path.name for path in snapshot.iterdir()} == {"suite.json", "cases.jsonl", "fixtures"}
    assert inside.call("rescore", "r", "--suite", ".").exit_code in {0, 6}


def test_leak_test_inside_the_suites_own_directory_leaves_itself_out(project: Project) -> None:
    inside = replace(project, path=project.suite(cases=[case()], scorers=[{"use": "exact"}]))

    for _ in ("without results", "beside results"):
        answer = inside.call("audit", ".", "--leak", "--seconds", "1", env={"EVALWRIGHT_SANDBOX": "subprocess"})
        assert answer.exit_code == 6, answer.stderr
        assert not list(inside.path.rglob(".leak-test"))
        assert inside.call("run", ".").exit_code == 0
