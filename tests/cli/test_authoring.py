"""``init``, ``suite add``, ``case add``, ``scorer add``: repeatable, checked before they are written, one writer at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

SUITE = ("suite", "add", "demo", "--runner-argv", "python3 'my agent.py'")
CASE = ("case", "add", "demo", "--task", "t", "--workspace", "fixtures/w", "--expect-json", '{"exact": "ok"}')


@pytest.fixture
def suite(here: Call, project: Project) -> Path:
    """Return a native suite with a fixture and no case."""
    assert here(*SUITE, "--native")[0] == 0
    directory = project.path / "evals" / "suites" / "demo"
    (directory / "fixtures" / "w").mkdir()
    (directory / "fixtures" / "w" / "a.txt").write_text("a")
    return directory


@pytest.mark.parametrize("native", [[], ["--native"]], ids=["evalctl", "native"])
def test_suite_is_created_once_and_another_under_its_name_is_a_conflict(here: Call, native: list[str]) -> None:
    assert [here(*SUITE, *native)[1]["data"]["created"] for _ in range(2)] == [True, False]
    code, document = here("suite", "add", "demo", "--runner-argv", "other", *native)
    assert (code, document["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")
    code, document = here(*SUITE, *([] if native else ["--native"]))
    assert (code, document["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")
    assert here("validate", "demo")[1]["data"] == {"suite": "demo", "case_count": 0, "valid": True}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--runner-argv", "a", "--runner-command", "b"],
        ["--runner-command", "b"],
        ["--runner-argv", "a", "--shell"],
        ["--runner-argv", ""],
        ["--runner-argv", "'open"],
        ["--runner-command", "", "--shell"],
    ],
    ids=" ".join,
)
def test_suite_without_one_clear_runner_is_refused(here: Call, project: Project, words: list[str]) -> None:
    assert here("suite", "add", "demo", *words)[0] == 1
    assert not (project.path / "evals" / "suites" / "demo").exists()


def test_case_is_added_once_and_another_under_its_id_is_a_conflict(here: Call, suite: Path) -> None:
    first, second = here(*CASE)[1]["data"], here(*CASE)[1]["data"]
    assert (first["created"], second["created"], first["id"]) == (True, False, second["id"])
    code, document = here(*CASE[:3], "--task", "other", *CASE[5:], "--id", first["id"])
    assert (code, document["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")
    assert len((suite / "cases.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--task", "t"],
        ["--workspace", "fixtures/w"],
        ["--task", "t", "--workspace", "fixtures/nosuch"],
        ["--task", "t", "--workspace", "../../.."],
        ["--task", "t", "--workspace", "fixtures/w", "--id", "../x"],
        ["--task", "t", "--workspace", "fixtures/w", "--diff", "/etc/passwd"],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", "[]"],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", "{"],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", '{"a": NaN}'],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", '{"exact": 1e999}'],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", '{"exact": "a", "exact": "b"}'],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", '{"exacct": "a", "exact": "a"}'],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", r'{"exact": "\ud800"}'],
        ["--task", "t", "--workspace", "fixtures/w", "--expect-json", "[" * 100_000],
        ["--task", "t", "--workspace", "fixtures/w"],
    ],
    ids=range(15),
)
def test_bad_case_is_refused_and_nothing_is_written(here: Call, suite: Path, words: list[str]) -> None:
    here(*CASE, "--id", "first")
    before = (suite / "cases.jsonl").read_bytes()
    code, document = here("case", "add", "demo", *words)
    assert (code, document["errors"][0]["code"]) == (1, "E_CASE_INVALID")
    assert (suite / "cases.jsonl").read_bytes() == before


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_case_is_added_below_whatever_ends_the_file(here: Call, suite: Path, end: str) -> None:
    line = json.dumps({"id": "a", "task": "t", "workspace": "fixtures/w", "expect": {"exact": "ok"}})
    (suite / "cases.jsonl").write_bytes(("\ufeff" + line + end).encode())
    assert here(*CASE, "--id", "b")[0] == 0
    assert here("validate", "demo")[1]["data"]["case_count"] == 2


def test_many_cases_are_added_from_stdin_and_bad_lines_are_named(project: Project, here: Call, suite: Path) -> None:
    good: dict[str, Any] = {"task": "t", "workspace": "fixtures/w", "expect": {"exact": "ok"}}
    lines = [json.dumps(good | {"id": "a"}), "[]", json.dumps(good | {"id": "a"}), "", json.dumps(good | {"id": "A"}), "{"]
    lines += [
        json.dumps(good | {"id": "a", "task": "other"}),
        json.dumps(good | {"id": 7}),
        json.dumps(good | {"id": "é"}),
        json.dumps(good),
    ]
    answer = project.call("case", "add", "demo", "--stdin", stdin="\r\n".join(lines).encode())
    assert (answer.exit_code, answer.error_codes) == (1, [])
    assert answer.data["counts"] == {"added": 2, "skipped": 1, "rejected": 6, "total": 9}
    assert [item["line"] for item in answer.data["rejected"]] == [2, 5, 6, 7, 8, 9]
    assert here("validate", "demo")[1]["data"]["case_count"] == 2


def test_parallel_authors_lose_no_case(project: Project, here: Call, suite: Path) -> None:
    started = [project.start(*CASE, "--id", f"c{number}") for number in range(5)]
    try:
        assert [process.communicate(timeout=120) and process.returncode for process in started] == [0] * 5
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert here("validate", "demo")[1]["data"]["case_count"] == 5


def test_scorer_is_added_once_and_another_under_its_id_is_a_conflict(here: Call, suite: Path) -> None:
    words = ("scorer", "add", "demo", "--name", "command", "--id", "judge", "--argv", "true")
    assert [here(*words)[1]["data"]["created"] for _ in range(2)] == [True, False]
    code, document = here(*words[:-1], "false")
    assert (code, document["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")
    entry = json.loads((suite / "suite.json").read_text())["scorers"]
    assert entry == [{"use": "command", "id": "judge", "required": True, "shell": False, "argv": ["true"]}]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--name", "nosuch"],
        ["--name", "exact", "--id", "../x"],
        ["--name", "exact", "--required", "--advisory"],
        ["--name", "exact", "--argv", "true"],
        ["--name", "exact", "--timeout", "3"],
        ["--name", "command", "--argv", "true"],
        ["--name", "command", "--id", "x"],
        ["--name", "command", "--id", "x", "--command", "true"],
        ["--name", "command", "--id", "x", "--argv", "true", "--shell"],
        ["--name", "command", "--id", "x", "--argv", "'open"],
    ],
    ids=" ".join,
)
def test_bad_scorer_is_refused_and_nothing_is_written(here: Call, suite: Path, words: list[str]) -> None:
    before = (suite / "suite.json").read_bytes()
    assert here("scorer", "add", "demo", *words)[0] == 1
    assert (suite / "suite.json").read_bytes() == before


def test_author_of_a_broken_suite_is_told_what_is_broken(here: Call, suite: Path) -> None:
    for text in ("[]", "null", "{", ""):
        (suite / "suite.json").write_text(text)
        for words in (CASE, ("scorer", "add", "demo", "--name", "exact")):
            code, document = here(*words)
            assert (code, document["errors"][0]["code"]) == (1, "E_SCHEMA_VIOLATION"), (text, words)


def test_init_writes_a_sample_that_gives_the_known_report(project: Project) -> None:
    assert project.call("init").data["suite"] == "code-review"
    assert project.call("validate").data == {"suite": "code-review", "case_count": 2, "valid": True}
    answer = project.call("run", "code-review")
    assert answer.data["run"]["status_counts"] == {"pass": 1, "fail": 1, "error": 0}
    assert answer.data["report_hash"].startswith("sha256:89f6dee9ee25")
    assert answer.data["report_hash"].endswith("bac88e")


def test_init_never_replaces_what_exists_but_the_sample_and_that_only_with_force(here: Call, project: Project) -> None:
    (project.path / "evals" / "suites" / "mine").mkdir(parents=True)
    (project.path / "evals" / "suites" / "mine" / "note").write_text("keep")
    code, document = here("init")
    assert (code, document["errors"][0]["code"]) == (5, "E_RUN_CONFLICT")
    assert here("init", "--force")[0] == 0
    sample = project.path / "evals" / "suites" / "code-review"
    (sample / "extra").write_text("x")
    assert here("init", "--force")[0] == 0
    assert not (sample / "extra").exists()
    assert (project.path / "evals" / "suites" / "mine" / "note").read_text() == "keep"


def test_init_force_follows_no_link_out_of_the_project(here: Call, project: Project) -> None:
    victim = project.path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("keep")
    (project.path / "evals" / "suites").mkdir(parents=True)
    (project.path / "evals" / "suites" / "code-review").symlink_to(victim)
    here("init", "--force")
    assert sorted(path.name for path in victim.iterdir()) == ["precious"]
