"""Suite documents and scorer entries that are wrong: every key is checked, and each problem named, before anything runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.suite_records import case, load, records_of, rewritten

from evalwright.errors import SuiteNotFound
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

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
        ("scorers", [7]),
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


@pytest.mark.parametrize("key", ["arms", "repeats", "judges"])
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
