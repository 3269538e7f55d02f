"""Ids and paths that would leave the project's own directories: refused at load, and nothing outside is made or deleted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.errors import RunCorrupt, SuiteError, UsageError
from evalwright.report import project as project_run
from evalwright.rundir import Layout, RunDirectory, check_id, find_run, runs_in
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

OUTSIDE = ("../../evil", "../../../../victim", "a/b", "/tmp/evil", "..", ".", "a..b", "", "a\0b", "a b", "a\n", "é", "x" * 101)
JUDGED = {"exact": "ok"}


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "expect": JUDGED} | fields


def records_of(directory: Path) -> list[dict[str, Any]]:
    with pytest.raises(SuiteError) as caught:
        load_suite(directory)
    return caught.value.records()


def picture(root: Path) -> dict[str, bytes | str | None]:
    """Return every path below ``root`` with what it holds."""
    found: dict[str, bytes | str | None] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


def make_victim(project: Project) -> Path:
    victim = project.path / "victim"
    (victim / "cases").mkdir(parents=True)
    (victim / "precious.txt").write_text("precious")
    (victim / "manifest.json").write_text("{}")
    (victim / "run.json").write_text("{}")
    return victim


@pytest.mark.parametrize("case_id", [*OUTSIDE, 123, 1.5, True, ["a"], {"a": 1}])
def test_unsafe_case_id_is_refused_at_load_with_its_line(project: Project, case_id: Any) -> None:
    directory = project.suite(cases=[case(id="fine"), case(id=case_id)])
    records = records_of(directory)
    assert [(record["code"], record["line"], record["exit_code"]) for record in records] == [("E_CASE_INVALID", 2, 1)]
    assert records[0]["key"] == "id"
    assert str(directory / "cases.jsonl") in records[0]["message"]


@pytest.mark.parametrize("case_id", ["a", "A-b_c.d", "x" * 100, "-", "0", ".hidden", "a.b.c"])
def test_safe_case_id_is_accepted(project: Project, case_id: str) -> None:
    checked = load_suite(project.suite(cases=[case(id=case_id)]))
    assert [case.id for case in checked.suite.cases] == [case_id]


def test_case_ids_may_not_differ_only_by_letter_case(project: Project) -> None:
    records = records_of(project.suite(cases=[case(id="Case"), case(id="other"), case(id="cASE")]))
    assert [record["line"] for record in records] == [3]
    assert "Case" in records[0]["message"]
    assert "line 1" in records[0]["message"]


def test_duplicate_case_id_names_both_lines(project: Project) -> None:
    records = records_of(project.suite(cases=[case(id="b"), case(id="b"), case(id="b")]))
    assert [record["line"] for record in records] == [2, 3]
    assert all("first on line 1" in record["message"] for record in records)


def test_missing_case_id_is_12_hex_of_the_stable_json(project: Project) -> None:
    import hashlib

    line = {"workspace": "fixtures/w", "task": "é", "expect": JUDGED}
    suite = load_suite(project.suite(cases=[line])).suite
    text = json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert suite.cases[0].id == hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize("verb", ["validate", "plan", "run"])
@pytest.mark.parametrize("place", ["absolute", "../../../../victim"])
def test_case_id_that_is_a_path_never_reaches_that_path(project: Project, verb: str, place: str) -> None:
    victim = make_victim(project)
    project.suite(cases=[case(id=str(victim) if place == "absolute" else place)], runner={"argv": ["echo", "ok"]})
    before = picture(project.path)
    answer = project.call(verb, "demo")
    assert answer.exit_code == 1
    assert answer.error_codes == ["E_CASE_INVALID"]
    assert picture(project.path) == before


BAD_RUN_IDS = ("../../escaped", "../x", "/tmp/evil", "a/b", ".", "..", ".hidden", "-x", "a b", "a..b", "é", "x" * 201, "")


@pytest.mark.parametrize("run_id", [*BAD_RUN_IDS, "a\n", "a\0"])
def test_unsafe_run_id_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(UsageError):
        check_id(run_id)
    with pytest.raises(UsageError):
        Layout(tmp_path / "evals", tmp_path / "runs").run(run_id)
    with pytest.raises(UsageError):
        find_run(Layout(tmp_path / "evals", tmp_path / "runs"), run_id, None)


@pytest.mark.parametrize("run_id", ["a", "2024-01-01T000000Z-demo", "x" * 200, "a.b_c-d", "9"])
def test_safe_run_id_is_returned(run_id: str) -> None:
    assert check_id(run_id) == run_id


@pytest.mark.parametrize("run_id", ["../../escaped", "absolute", ""])
@pytest.mark.parametrize("words", [["run", "demo"], ["plan", "demo"]])
def test_unsafe_run_id_makes_nothing(project: Project, words: list[str], run_id: str) -> None:
    victim = make_victim(project)
    project.suite(cases=[case()], runner={"argv": ["printf", "ok"]})
    before = picture(project.path)
    answer = project.call(*words, f"--run-id={victim / 'new' if run_id == 'absolute' else run_id}")
    assert answer.exit_code == 1
    assert picture(project.path) == before


def test_replay_force_never_removes_what_a_path_names(project: Project) -> None:
    victim = make_victim(project)
    project.suite(cases=[case()], runner={"argv": ["printf", "no"]})
    assert project.call("run", "demo", "--run-id", "r").exit_code == 0
    before = picture(project.path)
    for run_id in ("../../victim", str(victim), ""):
        answer = project.call("replay", "--failed", "r", "--force", f"--run-id={run_id}")
        assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"]), run_id
    assert picture(project.path) == before


@pytest.mark.parametrize(
    "words",
    [
        ["status", "../suites"],
        ["report", "../../victim"],
        ["verify", "../../victim"],
        ["explain", "../../victim", "a"],
        ["jobs", "get", "../suites"],
        ["replay", "--failed", "../../victim"],
        ["run", "--resume", "../../victim"],
    ],
    ids=lambda words: words[0],
)
def test_no_verb_takes_a_path_for_a_run_id(project: Project, words: list[str]) -> None:
    make_victim(project)
    project.suite(cases=[case()])
    (project.path / "evals" / "runs").mkdir()
    before = picture(project.path)
    answer = project.call(*words)
    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert picture(project.path) == before


@pytest.mark.parametrize("name", ["../../../pwn", "/tmp/pwn", "a/b", ".", "..", "", "a b", "x" * 101, 7, None])
def test_unsafe_suite_name_is_refused(project: Project, name: Any) -> None:
    directory = project.suite(cases=[case()], native=False)
    document = json.loads((directory / "suite.json").read_text()) | {"name": name}
    (directory / "suite.json").write_text(json.dumps(document))
    records = records_of(directory)
    assert [(record["code"], record["key"]) for record in records] == [("E_SCHEMA_VIOLATION", "name")]


@pytest.mark.parametrize("name", ["../pwn", "/tmp/pwn", "a/b", "..", "", ".x"])
def test_suite_add_takes_no_path(project: Project, name: str) -> None:
    (project.path / "evals" / "suites").mkdir(parents=True)
    before = picture(project.path)
    answer = project.call("suite", "add", "--runner-argv", "true", "--", name)
    assert answer.exit_code == 1
    assert picture(project.path) == before


BAD_PATHS = (
    "/etc",
    "..",
    "../..",
    "fixtures/../..",
    ".",
    "",
    "fixtures\\w",
    "fixtures/w\0",
    "no/such",
    "fixtures/../fixtures/w",
)


@pytest.mark.parametrize("path", BAD_PATHS)
@pytest.mark.parametrize("key", ["workspace", "hidden", "gold", "diff"])
def test_path_that_leaves_the_suite_is_refused(project: Project, key: str, path: str) -> None:
    records = records_of(project.suite(cases=[case(**{key: path})]))
    assert {record["code"] for record in records} == {"E_CASE_INVALID"}
    assert any((record.get("key"), record.get("line")) == (key, 1) for record in records)


@pytest.mark.parametrize("path", [*BAD_PATHS, "fixtures"])
def test_cases_path_that_leaves_the_suite_is_refused(project: Project, path: str) -> None:
    (project.path / "outside.jsonl").write_text("")
    records = records_of(_with(project, cases=path))
    assert any(record.get("key") == "cases" for record in records)


@pytest.mark.parametrize("path", BAD_PATHS)
def test_agent_file_that_leaves_the_suite_is_refused(project: Project, path: str) -> None:
    directory = project.suite(cases=[case()], runner={"argv": ["true"], "files": [path]})
    assert "runner.files" in [record.get("key") for record in records_of(directory)]


@pytest.mark.parametrize(
    ("key", "path"), [("workspace", "a.file"), ("hidden", "a.file"), ("gold", "a.file"), ("diff", "fixtures/w")]
)
def test_file_for_a_directory_and_the_reverse_are_refused(project: Project, key: str, path: str) -> None:
    records = records_of(project.suite(cases=[case(**{key: path})], files={"a.file": "x"}))
    assert any(record.get("key") == key and record["line"] == 1 for record in records)


@pytest.mark.parametrize("key", ["workspace", "hidden", "gold"])
def test_directory_reached_through_a_link_out_of_the_suite_is_refused(project: Project, key: str) -> None:
    directory = project.suite(cases=[case(**{key: "link"})])
    (project.path / "elsewhere").mkdir()
    (directory / "link").symlink_to(project.path / "elsewhere")
    assert any(record.get("key") == key for record in records_of(directory))


def test_cases_file_that_is_a_link_out_of_the_suite_is_refused(project: Project) -> None:
    directory = project.suite(cases=[case()])
    (directory / "cases.jsonl").rename(project.path / "outside.jsonl")
    (directory / "cases.jsonl").symlink_to(project.path / "outside.jsonl")
    assert any(record.get("key") == "cases" for record in records_of(directory))


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "a\0b"])
def test_bundle_of_an_edited_case_id_is_never_outside_its_run(tmp_path: Path, name: str) -> None:
    with pytest.raises((UsageError, RunCorrupt)):
        RunDirectory(tmp_path).case(name)


@pytest.mark.parametrize("name", ["../../x", "/etc", "a/b", "..", "", "a\0b", "a\x01b", 7, None, ["a"]])
def test_report_of_a_foreign_manifest_with_an_unsafe_case_id_is_corrupt(project: Project, name: Any) -> None:
    run = RunDirectory(_foreign(project, {"cases": [{"id": name, "status": "pass", "scores": []}]}))
    with pytest.raises(RunCorrupt):
        project_run(run)


def test_replay_never_follows_a_path_in_a_foreign_manifest_to_another_suite(project: Project) -> None:
    project.suite(cases=[case()], runner={"argv": ["printf", "no"]})
    project.call("run", "demo", "--run-id", "r")
    evil = project.suite("evil", cases=[case()], runner={"shell": True, "command": f"touch {project.path}/ran"})
    manifest = json.loads((project.run_dir("r") / "manifest.json").read_text())
    manifest["suite"]["name"] = f"./{evil.relative_to(project.path)}"
    (project.run_dir("r") / "manifest.json").write_text(json.dumps(manifest))
    answer = project.call("replay", "--failed", "r")
    assert answer.exit_code == 1
    assert not (project.path / "ran").exists()


def test_links_and_foreign_directories_under_runs_are_no_runs(project: Project) -> None:
    runs = project.path / "evals" / "runs"
    (runs / "my-notes").mkdir(parents=True)
    (runs / "my-notes" / "note.txt").write_text("keep")
    (runs / "link").symlink_to(make_victim(project))
    (runs / ".new-x").mkdir()
    (runs / ".new-x" / "run.json").write_text("{}")
    assert list(runs_in(Layout(project.path / "evals", runs))) == []
    before = picture(project.path)
    answer = project.call("jobs", "prune", "--yes")
    assert answer.exit_code == 0
    assert answer.data["removed"] == {"reservations": [], "runs": [], "experiments": []}
    assert picture(project.path) == before


@pytest.mark.parametrize("inside", ["my-notes", "file"])
def test_run_id_taken_by_something_that_is_no_run_is_a_conflict_and_is_left_alone(project: Project, inside: str) -> None:
    project.suite(cases=[case()])
    place = project.path / "evals" / "runs" / "taken"
    place.parent.mkdir()
    if inside == "file":
        place.write_text("keep")
    else:
        place.mkdir()
        (place / "note.txt").write_text("keep")
    before = picture(place.parent)
    answer = project.call("run", "demo", "--run-id", "taken")
    assert (answer.exit_code, answer.error_codes) == (5, ["E_RUN_CONFLICT"])
    after = {name: held for name, held in picture(place.parent).items() if not name.startswith(".")}
    assert after == before


def _with(project: Project, **document: Any) -> Path:
    directory = project.suite(cases=[case()])
    whole = json.loads((directory / "suite.json").read_text()) | document
    (directory / "suite.json").write_text(json.dumps(whole))
    return directory


def _foreign(project: Project, manifest: Mapping[str, Any]) -> Path:
    """Write the least of a run directory that another tool might have left."""
    place = project.path / "evals" / "runs" / "foreign"
    (place / "suite-snapshot").mkdir(parents=True)
    suite = {"name": "demo", "runner": {"argv": ["true"]}, "scorers": [{"name": "exact"}]}
    (place / "suite-snapshot" / "suite.json").write_text(json.dumps(suite))
    whole = {"run_id": "foreign", "suite": {"name": "demo", "hash": "sha256:0", "case_count": 1}, **manifest}
    (place / "manifest.json").write_text(json.dumps(whole))
    (place / "run.json").write_text(json.dumps({"run_id": "foreign"}))
    return place
