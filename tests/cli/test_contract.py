"""The machine contract: every verb's envelope fits its schema, help has no side effect, words are checked."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from evalwright.canonical import digest_json, stable_json
from evalwright.cli.codes import CODES
from evalwright.cli.contract import GLOBAL_FLAGS, VERBS
from evalwright.cli.schemas import DEFINITIONS, ENVELOPE, SCHEMAS

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

ELSEWHERE = {"audit", "compare", "doctor", "import", "judge", "new", "rescore", "worker"}
TRIAGE = Path(__file__).parents[1] / "data" / "lastlight" / "results" / "triage" / "2026-06-29_160025-74bc10e"
WORDS: dict[str, list[str]] = {
    "init": ["init", "--force"],
    "validate": ["validate", "demo"],
    "plan": ["plan", "demo"],
    "run": ["run", "demo", "--run-id", "fresh"],
    "status": ["status", "r"],
    "report": ["report", "r"],
    "explain": ["explain", "r", "a"],
    "verify": ["verify", "r"],
    "replay": ["replay", "--failed", "r", "--run-id", "again"],
    "export": ["export", "junit", "r"],
    "jobs": ["jobs", "list"],
    "suite": ["suite", "add", "new", "--runner-argv", "true"],
    "case": [
        "case",
        "add",
        "demo",
        "--task",
        "t",
        "--workspace",
        "fixtures/w",
        "--id",
        "x",
        "--expect-json",
        '{"exact": "ok"}',
    ],
    "scorer": ["scorer", "add", "demo", "--name", "contains"],
    "plugins": ["plugins", "list"],
    "capabilities": ["capabilities", "--plugins"],
    "schema": ["schema"],
    "band": ["band", "r"],
    "robot-docs": ["robot-docs", "guide", "--json"],
}
MORE = [
    ["run", "demo", "--run-id", "r"],
    ["run", "--resume", "r"],
    ["jobs", "get", "r"],
    ["import", "lastlight", str(TRIAGE), "--out", "triaged"],
    ["jobs", "prune"],
    ["plugins", "check"],
    ["report", "r", "--failures", "--limit", "1"],
    ["status", "--run-dir", "evals/runs/r"],
]


def test_every_verb_is_called_by_some_test() -> None:
    assert set(WORDS) | ELSEWHERE == set(VERBS)
    assert set(VERBS) - set(SCHEMAS) == {"robot-docs"}


@pytest.mark.parametrize("words", [*WORDS.values(), *MORE], ids=" ".join)
def test_envelope_of_every_verb_fits_the_published_schema(ran: Project, words: list[str]) -> None:
    answer = ran.call(*words)
    document = answer.envelope
    assert (answer.exit_code, answer.stdout.count("\n")) == (0, 1)
    Draft202012Validator(ENVELOPE).validate(document)
    if words[0] in SCHEMAS:
        Draft202012Validator(SCHEMAS[words[0]]).validate(document["data"])
    assert stable_json(document) == answer.stdout.rstrip("\n")
    assert document["meta"]["data_hash"] == digest_json(document["data"])
    assert re.fullmatch("req_[0-9a-f]{20}", document["meta"]["request_id"])
    assert all(code in CODES for code in answer.warning_codes)
    for entry in document["commands"]:
        program, verb, *_ = shlex.split(entry["command"])
        assert (program, verb in VERBS) == ("evalwright", True)


@pytest.mark.parametrize("words", [["validate", "nosuch"], ["run", "--nosuch"], ["nosuch"], ["report", "nosuch"]], ids=" ".join)
def test_envelope_of_an_error_fits_the_published_schema(ran: Project, words: list[str]) -> None:
    answer = ran.call(*words)
    document = answer.envelope
    Draft202012Validator(ENVELOPE).validate(document)
    assert (document["ok"], document["data"], document["meta"]["data_hash"]) == (False, None, None)
    assert all(CODES[code]["exit"] == answer.exit_code for code in answer.error_codes)


def test_schemas_are_schemas_and_those_of_files_fit_real_files(ran: Project) -> None:
    for schema in (ENVELOPE, *SCHEMAS.values(), *DEFINITIONS.values()):
        Draft202012Validator.check_schema(schema)
    snapshot = ran.run_dir("r") / "suite-snapshot"
    Draft202012Validator(DEFINITIONS["suite.json"]).validate(json.loads((snapshot / "suite.json").read_text()))
    for line in (snapshot / "cases.jsonl").read_text().splitlines():
        Draft202012Validator(DEFINITIONS["cases.jsonl"]).validate(json.loads(line))
    for line in (ran.run_dir("r") / "ledger.jsonl").read_text().splitlines():
        Draft202012Validator(DEFINITIONS["ledger.jsonl"]).validate(json.loads(line))
    Draft202012Validator(DEFINITIONS["score.json"]).validate(ran.record("r", "c", "score.json"))


def test_suite_schema_knows_every_key_that_a_suite_may_have() -> None:
    from evalwright.suite.shape import CaseShape, SuiteShape

    assert set(DEFINITIONS["suite.json"]["properties"]) == set(SuiteShape.model_fields)
    assert set(DEFINITIONS["cases.jsonl"]["properties"]) == set(CaseShape.model_fields)


def test_capabilities_name_every_flag_code_and_variable(here: Call) -> None:
    _, document = here("capabilities")
    data = document["data"]
    assert set(data) == {
        "tool_name",
        "contract_version",
        "features",
        "verbs",
        "global_flags",
        "exit_codes",
        "error_codes",
        "env_vars",
        "integrations",
        "schemas_uri",
        "robot_docs_uri",
    }
    assert set(data["verbs"]) == set(VERBS)
    for entry in data["verbs"].values():
        assert set(entry) == {"description", "json", "mutates", "args", "flags", "exit_codes"}
        assert set(map(str, entry["exit_codes"])) <= set(data["exit_codes"])


def tree(root: Path) -> list[str]:
    return sorted(str(path) for path in root.rglob("*"))


@pytest.mark.parametrize("flag", ["--help", "-h"])
@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_no_side_effect(
    here: Call, project: Project, capsys: pytest.CaptureFixture[str], verb: str, flag: str
) -> None:
    from evalwright.cli import main

    capsys.readouterr()
    assert main([verb, "add", "x", "--force", "--yes", flag]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"evalwright {verb}: ")
    assert all(flag.name in shown for flag in VERBS[verb].flags)
    assert tree(project.path) == []


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"], ["--version"]], ids=" ".join)
def test_overview_and_version_have_no_side_effect(project: Project, words: list[str]) -> None:
    answer = project.call(*words)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert tree(project.path) == []


@pytest.mark.parametrize(
    "words",
    [["validate", "demo"], ["plan", "demo"], ["capabilities"], ["schema"], ["plugins", "list"], ["jobs", "prune"]],
    ids=" ".join,
)
def test_verb_that_changes_nothing_changes_nothing(here: Call, project: Project, words: list[str]) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": "ok"}}])
    before = tree(project.path)
    assert here(*words)[0] == 0
    assert tree(project.path) == before


# words


@pytest.mark.parametrize("form", [["--format=text"], ["--format", "text"]], ids=len)
def test_value_of_a_flag_comes_after_a_sign_or_a_space(ran: Project, form: list[str]) -> None:
    answer = ran.call("report", "r", *form)
    assert answer.exit_code == 0
    assert answer.stdout.startswith("demo · fail · 2 of 3 passed")


@pytest.mark.parametrize("form", [["--run-id=f5"], ["--run-id", "f5"]], ids=len)
def test_run_id_is_taken_in_both_forms(ran: Project, form: list[str]) -> None:
    assert ran.call("run", "demo", *form).data["run_id"] == "f5"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "demo", "--run-id", "--json"],
        ["run", "demo", "--run-id"],
        ["run", "demo", "--timeout"],
        ["report", "r", "--format"],
        ["report", "r", "--format", "bogus"],
        ["report", "r", "--format="],
        ["run", "demo", "--jobs", "1.5"],
        ["run", "demo", "--jobs", "-1"],
        ["run", "demo", "--jobs", "1_0"],
        ["run", "demo", "--timeout", "nan"],
        ["run", "demo", "--timeout", "inf"],
        ["run", "demo", "--timeout", "-1"],
        ["run", "demo", "--timeout", "0"],
        ["run", "demo", "--timeout", "1e400"],
        ["run", "demo", "--keep-workspace", "some"],
        ["run", "demo", "--max-cases", "0"],
        ["jobs", "list", "--limit", "0"],
        ["jobs"],
        ["suite", "add"],
        ["suite", "remove", "x"],
        ["explain", "r"],
        ["case", "add", "demo", "--stdin", "--task", "x"],
        ["robot-docs"],
    ],
    ids=" ".join,
)
def test_missing_or_wrong_value_is_a_usage_error_that_names_the_flag(here: Call, project: Project, words: list[str]) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": "ok"}}])
    code, document = here(*words)
    assert (code, document["errors"][0]["code"]) == (1, "E_CASE_INVALID")
    named = [word.partition("=")[0] for word in words if word.startswith("--") and word != "--json"]
    assert not named or named[0] in document["errors"][0]["message"]
    assert document["errors"][0]["hint"]
    assert not (project.path / "evals" / "runs").exists()


@pytest.mark.parametrize("form", [["--format", "text"], ["--format=text"], ["--format", "json", "--format", "text"]], ids=len)
@pytest.mark.parametrize("words", [["report", "r", "--nope"], ["run"], ["rnu", "demo"]], ids=" ".join)
def test_usage_error_is_told_as_text_where_text_is_asked_for(project: Project, words: list[str], form: list[str]) -> None:
    answer = project.call(*words, *form)
    assert (answer.exit_code, answer.stdout) == (1, "")
    assert "(E_" in answer.stderr
    assert project.call(*words, *form, "--json").error_codes


@pytest.mark.parametrize(
    ("words", "meant", "corrected"),
    [
        (["run", "demo", "--job", "3"], "--jobs", ["run", "demo", "--jobs", "3"]),
        (["run", "demo", "--job=3"], "--jobs", ["run", "demo", "--jobs=3"]),
        (["run", "--job", "3", "demo"], "--jobs", ["run", "--jobs", "3", "demo"]),
        (["report", "r", "--formt", "text"], "--format", ["report", "r", "--format", "text"]),
        (["case", "add", "demo", "--tas", "a b", "--id", "x"], "--task", ["case", "add", "demo", "--task", "a b", "--id", "x"]),
        (["case", "add", "demo", "--tas", "say --tas"], "--task", ["case", "add", "demo", "--task", "say --tas"]),
    ],
    ids=range(6),
)
def test_unknown_flag_names_the_nearest_and_the_corrected_command(
    here: Call, words: list[str], meant: str, corrected: list[str]
) -> None:
    code, document = here(*words)
    record = document["errors"][0]
    assert (code, record["code"], record["did_you_mean"]) == (1, "E_UNKNOWN_FLAG", meant)
    assert meant in record["valid_values"]
    assert shlex.split(record["corrected_command"])[1:] in (corrected, [*corrected, "--json"])


@pytest.mark.parametrize(
    ("verb", "meant"), [("rnu", "run"), ("reprot", "report"), ("valdate", "validate"), ("statuss", "status")]
)
def test_unknown_verb_names_the_nearest_and_the_corrected_command(here: Call, verb: str, meant: str) -> None:
    code, document = here(verb, "my suite")
    record = document["errors"][0]
    assert (code, record["code"], record["did_you_mean"]) == (1, "E_UNKNOWN_COMMAND", meant)
    assert shlex.split(record["corrected_command"]) == ["evalwright", meant, "my suite", "--json"]


@pytest.mark.parametrize("verb", ["", "zzzzzz", "--json", "-x", "../run", "run.py", "__init__", "os"])
def test_verb_that_is_like_none_is_an_unknown_command(here: Call, verb: str) -> None:
    code, document = here(verb)
    assert (code, document["errors"][0]["code"]) == (1, "E_UNKNOWN_COMMAND")


def test_flag_may_not_be_abbreviated(here: Call) -> None:
    code, document = here("run", "demo", "--time", "3")
    assert (code, document["errors"][0]["did_you_mean"]) == (1, "--timeout")


@pytest.mark.parametrize("flag", GLOBAL_FLAGS)
def test_flag_of_every_verb_is_known_to_a_verb(project: Project, flag: str) -> None:
    words = [flag, "json"] if flag == "--format" else [flag]
    assert project.call("capabilities", *words).exit_code == 0


def test_double_dash_ends_the_flags(ran: Project) -> None:
    answer = ran.call("explain", "r", "--", "--help")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_NOT_FOUND"])


def test_command_to_paste_quotes_what_a_shell_would_split(ran: Project) -> None:
    place = ran.path / "sp ace;touch INJ"
    ran.run_dir("r").rename(place)
    for verb in ("report", "status"):
        document = ran.call(verb, "--run-dir", str(place)).envelope
        words = [shlex.split(entry["command"]) for entry in document["commands"]]
        assert any(str(place) in entry for entry in words), verb


# output


def test_json_flag_beats_the_format(ran: Project) -> None:
    assert ran.call("report", "r", "--format", "text", "--json").envelope["ok"] is True
    assert ran.call("report", "r", "--format", "json").envelope["ok"] is True


def test_person_at_a_terminal_gets_text(ran: Project) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "evalwright", "report", "r"], cwd=ran.path, stdout=follower, stdin=subprocess.DEVNULL
    )
    os.close(follower)
    shown = os.read(leader, 65536).decode()
    assert process.wait(timeout=120) == 0
    os.close(leader)
    assert shown.startswith("demo · fail")


PRINTING = [
    ["report", "r", "--format", "text"],
    ["report", "r"],
    ["schema"],
    ["capabilities"],
    ["--help"],
    ["--version"],
    ["run", "--help"],
    ["robot-docs", "guide"],
    ["jobs", "list"],
    ["nosuch"],
]


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_closed_pipe_ends_quietly(ran: Project, words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "evalwright", *words],
        cwd=ran.path,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert b"E_INTERNAL" not in done.stderr
    if words != ["nosuch"]:
        assert (done.returncode, done.stderr) == (0, b"")


def test_report_into_head_is_quiet(ran: Project) -> None:
    line = f"{shlex.quote(sys.executable)} -m evalwright schema | head -c 10"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=ran.path, capture_output=True, timeout=120, check=True)
    assert (len(done.stdout), done.stderr) == (10, b"")


@pytest.mark.parametrize("words", [["report", "r", "--format", "text"], ["schema"], ["--help"], ["--version"]], ids=" ".join)
def test_full_disk_behind_stdout_is_an_error_and_no_traceback(ran: Project, words: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "evalwright", *words],
            cwd=ran.path,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr


def data_of(document: dict[str, Any]) -> Any:
    return document["data"]


@pytest.mark.parametrize("verb", [["report", "r"], ["status", "r"], ["plan", "demo"]], ids=lambda words: words[0])
def test_pages_of_cases_join_to_the_whole(here: Call, ran: Project, verb: list[str]) -> None:
    _, whole = here(*verb)
    assert "pagination" not in whole["meta"]
    seen: list[Any] = []
    cursor: list[str] = []
    for _ in range(3):
        _, document = here(*verb, "--limit", "1", *cursor)
        seen += data_of(document)["cases"]
        assert data_of(document)["total_count"] == 3
        page = document["meta"]["pagination"]
        assert page["limit"] == 1
        cursor = ["--cursor", page["next_cursor"]] if page["has_more"] else []
    assert cursor == []
    assert seen == data_of(whole)["cases"]


def test_total_count_of_a_page_of_failures_is_that_of_the_list(here: Call, ran: Project) -> None:
    _, document = here("report", "r", "--failures")
    assert len(data_of(document)["failures"]) == 1
    assert data_of(document)["run"]["case_count"] == 3
