"""Suites that are wrong, or mean two things: every problem is named at once, with file and line, before anything runs."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.errors import SuiteError, SuiteNotFound
from evalwright.suite import CheckedSuite, load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

JUDGED = {"exact": "ok"}


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "expect": JUDGED} | fields


def load(directory: Path) -> CheckedSuite:
    return load_suite(directory)


def records_of(directory: Path) -> list[dict[str, Any]]:
    with pytest.raises(SuiteError) as caught:
        load_suite(directory)
    return caught.value.records()


def rewritten(directory: Path, **document: Any) -> Path:
    """Write keys of ``suite.json`` anew; ``None`` removes one."""
    whole = json.loads((directory / "suite.json").read_text()) | document
    (directory / "suite.json").write_text(json.dumps({key: value for key, value in whole.items() if value is not None}))
    return directory


# suite.json


@pytest.mark.parametrize(
    "text", ["[]", "null", "7", '"demo"', "true", "", "{", "{'name': 1}", '{"name": "demo"} x', "[" * 100_000]
)
def test_suite_document_that_is_no_object_is_one_clear_problem(project: Project, text: str) -> None:
    directory = project.suite(cases=[case()])
    (directory / "suite.json").write_text(text)
    records = records_of(directory)
    assert [(record["code"], record["file"]) for record in records] == [("E_SCHEMA_VIOLATION", str(directory / "suite.json"))]
    assert records[0]["hint"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("runner", None),
        ("runner", "true"),
        ("runner", ["true"]),
        ("scorers", "exact"),
        ("scorers", ["exact"]),
        ("scorers", {"name": "exact"}),
        ("cases", 7),
        ("cases", ""),
        ("cases", ["cases.jsonl"]),
        ("tags", "x"),
        ("tags", [1]),
        ("meta", []),
        ("requires", "x"),
        ("acknowledged_unsandboxed_runner", "yes"),
        ("acknowledged_unsandboxed_runner", 1),
        ("schema_version", 1),
        ("schema_version", 3),
        ("schema_version", "2"),
        ("sandbox", 7),
        ("sandboxes", []),
        ("primary", 7),
        ("primary", "nosuch"),
    ],
)
def test_suite_key_of_the_wrong_type_is_refused(project: Project, key: str, value: Any) -> None:
    records = records_of(rewritten(project.suite(cases=[case()]), **{key: value}))
    assert all(record["code"] == "E_SCHEMA_VIOLATION" and record["exit_code"] == 1 for record in records)
    assert any(str(record.get("key", "")).startswith(key) for record in records)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("timeout_seconds", "abc"),
        ("timeout_seconds", -5),
        ("timeout_seconds", 0),
        ("timeout_seconds", True),
        ("timeout_seconds", None),
        ("max_output_bytes", 0),
        ("max_output_bytes", -5),
        ("max_output_bytes", 1.5),
        ("max_output_bytes", "1"),
        ("argv", [1, 2]),
        ("argv", "true"),
        ("argv", []),
        ("argv", [""]),
        ("argv", ["a\0b"]),
        ("command", "true"),
        ("shell", True),
        ("shell", "yes"),
        ("cwd", 7),
        ("stdin", "file"),
        ("stdin", True),
        ("env_allowlist", "PATH"),
        ("env_allowlist", [1]),
        ("env", []),
        ("env", {"A": 1}),
        ("env", {"A=B": "x"}),
        ("env", {"": "x"}),
        ("env", {"A": "x\0y"}),
        ("env", {"A\0": "x"}),
        ("redact_env_values", "KEY"),
        ("redact_patterns", "x"),
        ("redact_patterns", ["("]),
        ("redact_patterns", [7]),
        ("files", "agent"),
        ("reveal_expect", "no"),
        ("reveal_id", 1),
        ("use", 7),
        ("use", "nosuch"),
        ("use", ""),
    ],
)
def test_runner_key_that_would_break_the_run_is_refused_by_validate(project: Project, key: str, value: Any) -> None:
    directory = project.suite(cases=[case()], runner={"argv": ["true"], key: value})
    records = records_of(directory)
    assert {record["code"] for record in records} == {"E_SCHEMA_VIOLATION"}
    assert all(str(record["key"]).startswith("runner") for record in records)


@pytest.mark.parametrize("value", [0.5, 1, 300, 1e7])
def test_any_positive_time_limit_is_taken_as_it_is(project: Project, value: float) -> None:
    directory = project.suite(cases=[case()], runner={"argv": ["true"], "timeout_seconds": value})
    assert load(directory).suite.agent.timeout == value


@pytest.mark.parametrize(
    ("place", "typo", "meant"),
    [
        ("", "taggs", "tags"),
        ("", "scorer", "scorers"),
        ("", "requirse", "requires"),
        ("runner", "timeout_second", "timeout_seconds"),
        ("runner", "argvv", "argv"),
        ("scorers.0", "requird", "required"),
    ],
)
def test_misspelt_key_names_the_one_that_was_meant(project: Project, place: str, typo: str, meant: str) -> None:
    directory = project.suite(cases=[case()], scorers=[{"use": "exact"}])
    document = json.loads((directory / "suite.json").read_text())
    target = document if not place else document["runner"] if place == "runner" else document["scorers"][0]
    target[typo] = ["x"]
    (directory / "suite.json").write_text(json.dumps(document, indent=1))
    records = [record for record in records_of(directory) if typo in record["message"]]
    assert len(records) == 1
    assert records[0]["did_you_mean"] == meant
    lines = (directory / "suite.json").read_text().splitlines()
    assert typo in lines[records[0]["line"] - 1]


@pytest.mark.parametrize("key", ["arms", "repeats", "judges", "services", "retry"])
def test_key_that_is_not_built_yet_is_refused_and_never_ignored(project: Project, key: str) -> None:
    records = records_of(rewritten(project.suite(cases=[case()]), **{key: {"a": {}}}))
    assert [(record["key"], "not supported" in record["message"]) for record in records] == [(key, True)]


def test_suite_json_with_a_duplicate_key_is_refused(project: Project) -> None:
    directory = project.suite(cases=[case()])
    (directory / "suite.json").write_text('{"name": "demo", "runner": {"argv": ["true"], "argv": ["false"]}}')
    records = records_of(directory)
    assert len(records) == 1
    assert '"argv" stands twice' in records[0]["message"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("file", ["suite.json", "cases.jsonl"])
def test_number_that_json_does_not_have_is_refused(project: Project, file: str, number: str) -> None:
    directory = project.suite(cases=[case(meta={"x": 7001})], meta={"x": 7001})
    (directory / file).write_text((directory / file).read_text().replace("7001", number))
    assert [record["file"] for record in records_of(directory)] == [str(directory / file)]


@pytest.mark.parametrize("value", ["nan", "inf", "2024-01-01", "12:30:45", "2024-01-01T00:00:00Z"])
def test_toml_value_that_json_does_not_have_is_refused(project: Project, value: str) -> None:
    directory = project.suite(cases=[case()])
    (directory / "suite.json").unlink()
    text = f'schema_version = 2\nname = "demo"\n[runner]\nargv = ["true"]\n[meta]\nx = {value}\n'
    (directory / "suite.toml").write_text(text)
    assert [record["file"] for record in records_of(directory)] == [str(directory / "suite.toml")]


def test_toml_suite_means_the_same_as_the_json_one(project: Project) -> None:
    directory = project.suite(cases=[case()], scorers=[{"use": "exact"}], runner={"argv": ["echo"], "timeout_seconds": 5})
    as_json = load(directory).suite
    (directory / "suite.json").unlink()
    text = 'schema_version = 2\nname = "demo"\n[runner]\nargv = ["echo"]\ntimeout_seconds = 5\n[[scorers]]\nuse = "exact"\n'
    (directory / "suite.toml").write_text(text)
    as_toml = load(directory).suite
    assert as_toml.document == as_json.document
    assert as_toml.agent == as_json.agent


def test_broken_toml_is_named_with_its_file(project: Project) -> None:
    directory = project.suite(cases=[case()])
    (directory / "suite.json").unlink()
    (directory / "suite.toml").write_text('name = "demo"\n[runner\n')
    records = records_of(directory)
    assert [record["file"] for record in records] == [str(directory / "suite.toml")]
    assert "line 2" in records[0]["message"]


def test_no_suite_at_all_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(SuiteNotFound):
        load_suite(tmp_path / "nosuch")


# scorers


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"use": 7},
        {"use": ""},
        {"use": "nosuch"},
        {"use": "exact", "id": "../x"},
        {"use": "exact", "id": ""},
        {"use": "exact", "required": "yes"},
        {"use": "exact", "unknown": 1},
        {"use": "command"},
        {"use": "command", "id": "x"},
        {"use": "command", "argv": ["true"]},
        {"use": "command", "id": "../x", "argv": ["true"]},
        {"use": "command", "id": "x", "argv": ["true"], "command": "true"},
        {"use": "command", "id": "x", "command": "true"},
        {"use": "command", "id": "x", "argv": ["true"], "timeout_seconds": 0},
        {"use": "command", "id": "x", "argv": "true"},
        {"use": "regex", "text_regex": ["("]},
        {"use": "json-schema", "json_schema": {"type": "nonsense"}},
    ],
)
@pytest.mark.parametrize("native", [True, False])
def test_scorer_entry_that_would_break_the_run_is_refused_by_validate(
    project: Project, entry: Mapping[str, Any], native: bool
) -> None:
    directory = project.suite(cases=[case()], scorers=[{"use": "exact", "id": "first"}, entry], native=native)
    records = records_of(directory)
    assert any(str(record.get("key", "")).startswith("scorers.1") for record in records)
    assert all(record["file"] == str(directory / "suite.json") for record in records if "scorers" in str(record.get("key")))


@pytest.mark.parametrize(
    "pair",
    [
        [{"use": "exact"}, {"use": "exact"}],
        [{"use": "exact", "id": "q"}, {"use": "contains", "id": "q"}],
        [{"use": "command", "id": "q", "argv": ["true"]}, {"use": "command", "id": "q", "argv": ["false"]}],
    ],
)
def test_two_scorers_with_one_id_are_refused(project: Project, pair: list[dict[str, Any]]) -> None:
    records = records_of(project.suite(cases=[case()], scorers=pair))
    assert any("twice" in record["message"] for record in records)


def test_two_scorers_of_one_kind_keep_their_scores_apart(project: Project) -> None:
    scorers = [{"use": "contains", "id": "one"}, {"use": "contains", "id": "two", "text_contains": ["b"]}]
    directory = project.suite(cases=[case(expect={"text_contains": ["a"]})], scorers=scorers)
    assert [entry.id for entry, _ in load(directory).scorers] == ["one", "two"]


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
        {"repeats": 3},
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


# two forms of a suite


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
