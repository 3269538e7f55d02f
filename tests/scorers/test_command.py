"""The command scorer: how it runs, and what it takes as a verdict."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from evalwright.model import Score
from evalwright_scorers.command import CommandConfig, CommandScorer
from evalwright_scorers.commands import render, seconds
from evalwright_scorers.verdict import read_verdict

if TYPE_CHECKING:
    from tests.scorers.conftest import Bench

GOOD = '{"ok": true, "score": 0.5, "findings": []}'


def python(code: str) -> dict[str, Any]:
    return {"argv": [sys.executable, "-c", code]}


def shell(command: str, **table: Any) -> dict[str, Any]:
    return {"command": command, "shell": True, **table}


def why(score: Score) -> str:
    assert (score.ok, score.score, score.label, score.error) == (False, 0.0, "error", True)
    return score.findings[0]["why"]


def test_the_verdict_on_stdout_is_the_score(bench: Bench) -> None:
    verdict = {"ok": False, "score": 0.25, "label": "partial", "findings": ["one", {"why": "two", "at": 3}]}

    score = bench.score(CommandScorer, python(f"print({json.dumps(verdict)!r})"))

    assert score == Score(ok=False, score=0.25, label="partial", findings=({"why": "one"}, {"why": "two", "at": 3}))


def test_both_streams_are_kept_beside_the_score(bench: Bench) -> None:
    bench.score(CommandScorer, shell(f"echo '{GOOD}'; echo note >&2"))

    assert bench.kept == {"stdout.txt": GOOD.encode() + b"\n", "stderr.txt": b"note\n"}


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (shell("exit 9"), "command scorer exited 9"),
        (shell("kill -9 $$"), "command scorer exited -9"),
        (shell("exec sleep 30", timeout_seconds=0.2), "command scorer timed out after 0.2s"),
        (shell("echo no"), "invalid command scorer JSON: Expecting value"),
        (shell("true"), "invalid command scorer JSON: Expecting value"),
        (shell(f"echo '{GOOD}'; exit 1"), "command scorer exited 1"),
        (shell("printf %10001d 1", max_output_bytes=10000), "command scorer output truncated at 10000 bytes"),
        (shell(f"echo '{GOOD}'; echo tail", max_output_bytes=43), "command scorer output truncated at 43 bytes"),
    ],
)
def test_a_command_that_fails_makes_an_error(bench: Bench, table: dict[str, Any], expected: str) -> None:
    assert why(bench.score(CommandScorer, table)) == expected


def test_a_command_that_does_not_exist_makes_an_error(bench: Bench) -> None:
    assert why(bench.score(CommandScorer, {"argv": ["/no/such"]})).startswith("command scorer spawn failed: ")


@pytest.mark.parametrize(("timeout", "text"), [(30, "30s"), (30.0, "30s"), (0.5, "0.5s"), (1e6, "1000000s")])
def test_a_time_is_worded_as_an_integer_when_it_is_one(timeout: float, text: str) -> None:
    assert seconds(timeout) == text


def test_the_trials_variables_come_by_environment_and_in_arguments(bench: Bench) -> None:
    code = (
        "import json, os, sys; same = sys.argv[1] == os.environ['EVALWRIGHT_OUTPUT_FILE']; "
        "print(json.dumps({'ok': same, 'score': 1, 'findings': sys.argv[2:]}))"
    )
    table = {"argv": [sys.executable, "-c", code, "${EVALCTL_OUTPUT_FILE}", "$HOME", "$EVALWRIGHT_WORKSPACE_X"]}

    score = bench.score(CommandScorer, table)

    assert score.ok
    assert score.findings == ({"why": "$HOME"}, {"why": "$EVALWRIGHT_WORKSPACE_X"})


def test_a_shell_gets_its_text_as_written(bench: Bench) -> None:
    bench.score(CommandScorer, shell("echo $EVALWRIGHT_WORKSPACE"))

    assert list(bench.sessions[0].commands[0].argv) == ["/bin/sh", "-c", "echo $EVALWRIGHT_WORKSPACE"]


def test_a_variable_is_replaced_by_whole_word_and_only_once() -> None:
    env = {"EVALWRIGHT_A": "$EVALWRIGHT_B", "EVALWRIGHT_B": "b", "PATH": "/bin"}

    assert render(["$EVALWRIGHT_A/x", "${EVALWRIGHT_B}C", "$EVALWRIGHT_BC", "$PATH", "$$"], env) == [
        "$EVALWRIGHT_B/x",
        "bC",
        "$EVALWRIGHT_BC",
        "$PATH",
        "$$",
    ]


@pytest.mark.parametrize("cwd", ["workspace", "empty"])
def test_a_module_that_the_agent_planted_is_not_imported(bench: Bench, cwd: str) -> None:
    planted = 'print(\'{"ok": true, "score": 1, "findings": []}\'); import os; os._exit(0)'
    (bench.final / "json.py").write_text(planted)

    score = bench.score(
        CommandScorer,
        python("import json; print(json.dumps({'ok': False, 'score': 0, 'findings': []}))") | {"cwd": cwd},
    )

    assert (score.ok, score.error) == (False, False)


def test_the_command_works_in_a_clone_of_the_workspace_or_in_an_empty_directory(bench: Bench) -> None:
    (bench.final / "made.txt").write_text("x")
    code = "import json, os; print(json.dumps({'ok': True, 'score': 1, 'findings': os.listdir()}))"

    assert bench.score(CommandScorer, python(code) | {"cwd": "workspace"}).findings == ({"why": "made.txt"},)
    assert bench.score(CommandScorer, python(code)).findings == ()


def test_an_old_result_file_of_the_agent_changes_nothing(bench: Bench) -> None:
    (bench.final / "result.json").write_text('{"score": 1.0}')

    assert why(bench.score(CommandScorer, shell("exit 3", cwd="workspace"))) == "command scorer exited 3"


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "-0.5", "1.5", "true", '"1"', "null", "1e999"])
def test_a_score_that_is_no_number_from_0_to_1_is_an_error(value: str) -> None:
    expected = "command scorer verdict requires finite numeric score in 0.0..1.0"

    assert why(read_verdict(f'{{"ok": true, "score": {value}, "findings": []}}')) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[]", "command scorer stdout must be one JSON object"),
        ("{}", "command scorer verdict requires boolean ok"),
        ('{"ok": "true"}', "command scorer verdict requires boolean ok"),
        ('{"ok": 1, "score": 1}', "command scorer verdict requires boolean ok"),
        ('{"ok": true}', "command scorer verdict requires finite numeric score in 0.0..1.0"),
        ('{"ok": true, "score": 1, "label": 3}', "command scorer verdict label must be a string"),
        ('{"ok": true, "score": 1}', "command scorer verdict requires findings list"),
        ('{"ok": true, "score": 1, "findings": "x"}', "command scorer verdict requires findings list"),
        ('{"ok": true, "score": 1, "findings": [1]}', "command scorer findings must be objects or strings"),
        (f"{GOOD} {GOOD}", "invalid command scorer JSON: Extra data"),
        ("{" + '"a":{' * 100_000, "invalid command scorer JSON: nested too deeply"),
    ],
)
def test_a_verdict_that_breaks_the_contract_is_an_error(text: str, expected: str) -> None:
    assert why(read_verdict(text)) == expected


@pytest.mark.parametrize("finding", ['{"x": NaN}', '{"x": [Infinity]}', r'"\ud800"', '{"x": 1e999}'])
def test_findings_that_no_strict_json_file_can_hold_are_an_error(finding: str) -> None:
    text = f'{{"ok": true, "score": 1, "findings": [{finding}]}}'

    assert why(read_verdict(text)).startswith("command scorer findings cannot be stored as JSON: ")


def test_a_missing_or_empty_label_follows_ok() -> None:
    assert read_verdict(GOOD).label == "pass"
    assert read_verdict('{"ok": false, "score": 0, "label": "", "findings": []}').label == "fail"


def test_a_verdict_that_calls_itself_an_error_keeps_its_findings() -> None:
    score = read_verdict('{"ok": true, "score": 1, "label": "fine", "findings": ["db is down"], "error": true}')

    assert why(score) == "db is down"


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"argv": []},
        {"argv": [1]},
        {"argv": "ls"},
        {"command": "ls"},
        {"shell": True},
        {"argv": ["ls"], "shell": True},
        {"argv": ["ls"], "command": "ls"},
        {"argv": ["ls"], "timeout_seconds": 0},
        {"argv": ["ls"], "timeout_seconds": float("inf")},
        {"argv": ["ls"], "timeout_seconds": "30"},
        {"argv": ["ls"], "max_output_bytes": 0},
        {"argv": ["ls"], "cwd": "/"},
        {"argv": ["ls"], "env": {}},
    ],
)
def test_a_command_that_could_not_run_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CommandConfig.model_validate(table)
