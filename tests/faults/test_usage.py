"""What agents consume: told by a file or a transcript, unknown where it is not, and bounded by limits. Real processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Answer, Project

Shell = Callable[..., dict[str, Any]]
LASTLIGHT = Path(__file__).parent.parent / "data" / "lastlight"
WHOLE = {"input": 3, "cache_read": 11000, "cache_write": 900, "output": 50, "turns": 4, "tool_calls": 2, "tool_errors": 1}
HANG = "sleep 60"
OK = {"exit_code": 0}


def message(number: int, tokens: int) -> str:
    usage = {"input_tokens": 0, "output_tokens": tokens, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    said: dict[str, Any] = {"id": f"m{number}", "model": "claude-haiku-4-5", "content": [], "usage": usage}
    return json.dumps({"type": "assistant", "message": said})


def told(record: dict[str, Any] | str) -> str:
    """Return the shell line that writes a usage file."""
    text = record if isinstance(record, str) else json.dumps(record)
    return f"printf '%s' '{text}' > \"$EVALWRIGHT_USAGE_FILE\""


def carry_out(project: Project, runner: dict[str, Any], *words: str, files: dict[str, str | bytes] | None = None) -> Answer:
    project.suite(runner=runner, cases=[{"id": "a", "expect": {"exit_code": 0}}], scorers=[{"use": "exit-code"}], files=files)
    return project.call("run", "demo", "--run-id", "r", "--json", *words)


def usage_of(project: Project) -> Any:
    return project.record("r", "a", "runner.json")["usage"]


def test_usage_file_is_kept_with_the_trial_in_the_ledger_and_in_the_report(project: Project, shell_runner: Shell) -> None:
    answer = carry_out(project, shell_runner(told(WHOLE | {"cost": 0.02})))

    assert answer.exit_code == 0, answer.stdout
    usage = usage_of(project)
    assert WHOLE.items() <= usage.items()
    assert (usage["cost"], usage["cost_source"], usage["cost_computed"], usage["reasoning"]) == (0.02, "reported", None, None)
    events = [json.loads(line) for line in (project.run_dir("r") / "ledger.jsonl").read_bytes().splitlines()]
    assert [event["data"]["usage"] for event in events if event["type"] == "TRIAL_FINISHED"] == [usage]
    data = project.call("report", "r", "--json").data["usage"]
    assert data["total_input"] == {"value": 11903, "known": 1, "of": 1}
    assert data["total"]["value"] == 11953
    assert data["cost"] == {"value": 0.02, "known": 1, "of": 1}


def test_inclusive_and_exclusive_reports_cost_the_same(project: Project, shell_runner: Shell) -> None:
    (project.path / "prices.toml").write_text("[m]\ninput = 3\noutput = 15\ncache_read = 0.3\n")
    exclusive = {"input": 4000, "cache_read": 16000, "cache_write": 0, "output": 1000, "model": "m"}
    inclusive = {"input": 20000, "cache_read": 16000, "output": 1000, "input_includes_cached": True, "model": "m"}
    line = f'case $(cat "$EVALWRIGHT_TASK_FILE") in inclusive) {told(inclusive)};; *) {told(exclusive)};; esac'
    cases = [{"id": "a", "task": "inclusive", "expect": OK}, {"id": "b", "task": "exclusive", "expect": OK}]
    project.suite(runner=shell_runner(line), cases=cases, scorers=[{"use": "exit-code"}])
    project.call("run", "demo", "--run-id", "r", "--json", env={"EVALWRIGHT_PRICES": "prices.toml"})

    found = [project.record("r", case, "runner.json")["usage"] for case in ("a", "b")]
    assert [usage["cost"] for usage in found] == pytest.approx([0.0318, 0.0318], abs=1e-12)
    assert [usage["cost_source"] for usage in found] == ["computed", "computed"]
    assert found[0] == found[1]


def test_unknown_usage_of_one_case_is_shown_as_unknown_and_never_as_zero(project: Project, shell_runner: Shell) -> None:
    line = f'grep -q tells "$EVALWRIGHT_TASK_FILE" && {told({"cost": 0.02})}; true'
    cases = [{"id": "a", "task": "silent", "expect": OK}, {"id": "b", "task": "tells", "expect": OK}]
    project.suite(runner=shell_runner(line), cases=cases, scorers=[{"use": "exit-code"}])
    project.call("run", "demo", "--run-id", "r", "--json")

    assert usage_of(project) is None
    assert project.call("report", "r", "--json").data["usage"]["cost"] == {"value": 0.02, "known": 1, "of": 2}
    for form in ("text", "markdown"):
        assert "cost >= 0.02 (1 of 2 known) USD" in project.call("report", "r", "--format", form).stdout


def test_usage_is_no_part_of_the_report_hash(project: Project, shell_runner: Shell) -> None:
    line = 'printf \'{"cost": %s}\' "$$" > "$EVALWRIGHT_USAGE_FILE"'
    carry_out(project, shell_runner(line))
    project.call("run", "demo", "--run-id", "s", "--json")

    one, two = (project.call("report", run, "--json").data for run in ("r", "s"))
    assert one["usage"]["cost"]["value"] != two["usage"]["cost"]["value"]
    assert (one["report_hash"], one["content_hash"]) == (two["report_hash"], two["content_hash"])


MALFORMED = {
    "no JSON": "{",
    "an array": "[1]",
    "a negative count": '{"input": -1}',
    "a fraction": '{"turns": 1.5}',
    "a word": '{"input": "7"}',
    "true": '{"input": true}',
    "NaN": '{"cost": NaN}',
    "infinite": '{"cost": 1e999}',
    "unknown key": '{"inputs": 1}',
    "more cached than there is": '{"input": 1, "cache_read": 2, "input_includes_cached": true}',
    "inclusive without cache": '{"input": 1, "input_includes_cached": true}',
    "nested": "[" * 5000,
    "empty": "",
    "a key twice": '{"cost": 5, "cost": 0}',
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_usage_file_is_a_warning_and_the_usage_is_unknown(project: Project, shell_runner: Shell, text: str) -> None:
    answer = carry_out(project, shell_runner(told(text)))

    assert answer.exit_code == 0
    assert "W_USAGE_UNKNOWN" in answer.warning_codes
    assert usage_of(project) is None


HOSTILE = {
    "link": 'ln -s /etc/passwd "$EVALWRIGHT_USAGE_FILE"',
    "FIFO": 'mkfifo "$EVALWRIGHT_USAGE_FILE"',
    "directory": 'mkdir "$EVALWRIGHT_USAGE_FILE"',
    "flood": 'head -c 3000000 /dev/zero > "$EVALWRIGHT_USAGE_FILE"',
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE.keys())
def test_usage_file_that_is_no_small_regular_file_is_not_read(project: Project, shell_runner: Shell, line: str) -> None:
    answer = carry_out(project, shell_runner(line, limits={"turns": 5}))

    assert answer.exit_code == 0
    assert "W_USAGE_UNKNOWN" in answer.warning_codes
    assert "root:" not in answer.stdout
    assert usage_of(project) is None


def test_transcript_on_stdout_is_read_as_a_whole_though_stdout_is_kept_in_part(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner('cat "$EVALWRIGHT_AGENT/code-fix.jsonl"', files=["agent"], transcript={"parser": "stream-json"})
    runner["command"] = 'cat "$EVALWRIGHT_AGENT"/*/code-fix.jsonl "$EVALWRIGHT_AGENT"/code-fix.jsonl 2>/dev/null; true'
    content = (LASTLIGHT / "code-fix.jsonl").read_bytes()
    carry_out(project, runner | {"max_output_bytes": 1000}, files={"agent/code-fix.jsonl": content})

    usage = usage_of(project)
    assert usage["cost"] == pytest.approx(0.27458265, abs=1e-12)
    assert (usage["input"], usage["output"], usage["turns"]) == (867, 18750, 76)
    assert (usage["tool_calls"], usage["tool_errors"], usage["cost_source"]) == (85, 9, "reported")
    assert usage["cost_computed"] == pytest.approx(usage["cost"], abs=1e-9)
    assert project.record("r", "a", "runner.json")["stdout_truncated"]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("log/t.jsonl", "mkdir log; cat a.jsonl > log/t.jsonl"),
        ("$EVALWRIGHT_TRANSCRIPT_FILE", 'cat a.jsonl > "$EVALWRIGHT_TRANSCRIPT_FILE"'),
    ],
)
def test_transcript_in_a_file_is_read_after_the_end(project: Project, shell_runner: Shell, path: str, line: str) -> None:
    runner = shell_runner(line, transcript={"parser": "stream-json", "path": path})
    carry_out(project, runner, files={"fixtures/w/a.jsonl": (LASTLIGHT / "triage.jsonl").read_bytes()})

    usage = usage_of(project)
    assert (usage["input"], usage["cache_read"], usage["cache_write"], usage["output"]) == (51, 35677, 14752, 2510)


@pytest.mark.parametrize("line", ["true", "ln -s /etc/passwd t.jsonl", "mkfifo t.jsonl", "mkdir t.jsonl"])
def test_transcript_that_is_no_regular_file_is_a_warning(project: Project, shell_runner: Shell, line: str) -> None:
    answer = carry_out(project, shell_runner(line, transcript={"parser": "stream-json", "path": "t.jsonl"}))

    assert answer.exit_code == 0
    assert "W_USAGE_UNKNOWN" in answer.warning_codes
    assert usage_of(project) is None


def test_usage_file_counts_more_than_the_transcript(project: Project, shell_runner: Shell) -> None:
    line = f"echo '{message(1, 7)}'; {told({'output': 9})}"
    carry_out(project, shell_runner(line, transcript={"parser": "stream-json"}))
    assert usage_of(project)["output"] == 9


LIVE: list[tuple[dict[str, float], str, float]] = [
    ({"tokens": 1000}, "tokens", 1200),
    ({"turns": 2}, "turns", 3),
    ({"cost_usd": 0.005}, "cost_usd", 0.006),
]


@pytest.mark.parametrize(("limits", "limit", "value"), LIVE)
@pytest.mark.parametrize("way", ["transcript", "file"])
def test_agent_that_exceeds_a_limit_is_stopped_while_it_runs(
    project: Project, shell_runner: Shell, limits: dict[str, float], limit: str, value: float, way: str
) -> None:
    if way == "transcript":
        line = "; ".join(f"echo '{message(number, 400)}'" for number in range(3))
        runner = shell_runner(f"{line}; {HANG}", transcript={"parser": "stream-json"}, limits=limits)
    else:
        line = told({"input": 0, "output": 1200, "cache_read": 0, "cache_write": 0, "turns": 3, "model": "claude-haiku-4-5"})
        runner = shell_runner(f"{line}; {HANG}", limits=limits)
    carry_out(project, runner)

    record = project.record("r", "a", "runner.json")
    score = project.record("r", "a", "score.json")
    assert (score["status"], score["fault"], record["error_code"]) == ("error", "agent", "E_LIMIT")
    error = record["error"]
    assert (error["limit"], error["value"], error["bound"]) == (limit, pytest.approx(value), limits[limit])
    assert limit in error["message"]
    assert f"{limits[limit]:g}" in error["message"]
    assert not record["timed_out"]
    assert record["duration_ms"] < 20_000
    assert record["usage"]["output"] == 1200


def test_limit_that_is_exceeded_at_the_end_is_judged_then_and_scores_zero(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner(
        "cp a.jsonl t.jsonl", transcript={"parser": "stream-json", "path": "t.jsonl"}, limits={"tokens": 5000}
    )
    carry_out(project, runner, files={"fixtures/w/a.jsonl": (LASTLIGHT / "triage.jsonl").read_bytes()})

    record = project.record("r", "a", "runner.json")
    assert (record["exit_code"], record["error_code"]) == (0, "E_LIMIT")
    assert (record["error"]["limit"], record["error"]["value"], record["error"]["bound"]) == ("tokens", 52990, 5000)
    text = project.call("report", "r", "--format", "text").stdout
    assert "1 agent faults" in text
    assert "pass rate 0.00 of 1 scored" in text
    assert "52990 tokens" in text


def test_cached_tokens_count_against_the_limit(project: Project, shell_runner: Shell) -> None:
    carry_out(project, shell_runner(told(WHOLE), limits={"tokens": 5000}))

    error = project.record("r", "a", "runner.json")["error"]
    assert (error["limit"], error["value"], error["bound"]) == ("tokens", 11953, 5000)


def test_limit_that_is_used_up_exactly_is_kept(project: Project, shell_runner: Shell) -> None:
    answer = carry_out(project, shell_runner(told(WHOLE), limits={"tokens": 11953, "turns": 4}))
    assert answer.exit_code == 0
    assert "W_USAGE_UNKNOWN" not in answer.warning_codes


def test_limit_that_nobody_can_check_is_a_warning(project: Project, shell_runner: Shell) -> None:
    answer = carry_out(project, shell_runner("true", limits={"tokens": 5}))
    assert answer.exit_code == 0
    assert "W_USAGE_UNKNOWN" in answer.warning_codes
    (kept,) = project.record("r", "a", "runner.json")["warnings"]
    assert kept["code"] == "W_USAGE_UNKNOWN"
    assert "the limit tokens was not checked" in kept["message"]


def test_each_limit_that_an_agent_does_not_tell_of_is_named(project: Project, shell_runner: Shell) -> None:
    carry_out(project, shell_runner(told({"turns": 3}), limits={"tokens": 5, "turns": 5, "cost_usd": 1}))

    kept = project.record("r", "a", "runner.json")["warnings"]
    assert sorted(one["message"].split()[2] for one in kept) == ["cost_usd", "tokens"]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"limits": {"tokens": 0}}, "runner.limits.tokens"),
    ({"limits": {"cost_usd": -1}}, "runner.limits.cost_usd"),
    ({"limits": {"turn": 1}}, "turns"),
    ({"transcript": {"parser": "stream-jsom"}}, "stream-json"),
    ({"transcript": {"parser": "stream-json", "path": "../x"}}, "runner.transcript.path"),
    ({"transcript": {"parser": "stream-json", "path": "/etc/passwd"}}, "runner.transcript.path"),
    ({"transcript": {"parser": {}}}, "runner.transcript.parser"),
    ({"transcript": {"parser": {"use": "stream-json", "x": 1}}}, "runner.transcript.parser.x"),
    ({"transcript": {}}, "runner.transcript.parser"),
]


@pytest.mark.parametrize(("keys", "place"), BAD)
def test_mistake_in_limits_or_transcript_is_found_by_validate(
    project: Project, shell_runner: Shell, keys: dict[str, Any], place: str
) -> None:
    project.suite(runner=shell_runner("true", **keys), cases=[{"id": "a"}], scorers=[{"use": "exit-code"}])
    answer = project.call("validate", "demo", "--json")
    assert answer.exit_code == 1
    assert place in answer.stdout


def test_parser_of_the_suites_own_that_breaks_is_named_and_the_run_goes_on(project: Project, shell_runner: Shell) -> None:
    code = """
from evalwright.interfaces import JsonLinesReader, TranscriptParser
from evalwright.model import Transcript

class Reader(JsonLinesReader):
    def event(self, record):
        raise RuntimeError("broken parser")
    def transcript(self):
        return Transcript()

class Parser(TranscriptParser):
    api = "transcript/1.0"
    def reader(self):
        return Reader()
"""
    runner = shell_runner("echo '{}'; echo '{}'", transcript={"parser": "parser.py:Parser"})
    answer = carry_out(project, runner, files={"parser.py": code})
    assert answer.exit_code == 0
    assert "broken parser" in json.dumps(answer.envelope["warnings"])
    assert usage_of(project) is None
    assert project.artifact("r", "a", "output.txt").read_text() == "{}\n{}\n"


@pytest.mark.parametrize("way", ["file", "transcript"])
def test_secret_in_the_name_of_a_model_is_hidden_and_a_long_name_is_cut(
    project: Project, shell_runner: Shell, way: str
) -> None:
    said: dict[str, Any] = {"type": "assistant", "message": {"model": "hunter2-" + "x" * 5000, "content": []}}
    lines = {"file": told({"model": "hunter2-m", "turns": 1}), "transcript": f"echo '{json.dumps(said)}'"}
    runner = shell_runner(lines[way], transcript={"parser": "stream-json"}, redact_patterns=["hunter2"])
    carry_out(project, runner)

    usage = usage_of(project)
    assert usage["turns"] == 1
    assert len(usage["model"]) <= 200
    for kept in (json.dumps(usage), (project.run_dir("r") / "ledger.jsonl").read_text()):
        assert "hunter2" not in kept


def test_usage_file_that_says_nothing_leaves_the_word_to_the_transcript(project: Project, shell_runner: Shell) -> None:
    line = f"echo '{message(1, 7)}'; {told({'cost': None})}"
    carry_out(project, shell_runner(line, transcript={"parser": "stream-json"}))
    assert usage_of(project)["output"] == 7


def test_explain_shows_what_a_trial_consumed(project: Project, shell_runner: Shell) -> None:
    carry_out(project, shell_runner(told({"turns": 3, "cost": 0.5})))
    assert "usage: cost 0.5, cost_source reported, turns 3" in project.call("explain", "r", "a", "--format", "text").stdout


def test_limit_found_exceeded_at_the_time_limit_is_an_error_though_what_was_left_is_scored(
    project: Project, shell_runner: Shell
) -> None:
    line = f"echo '{message(1, 1200)}' > t.jsonl; exec sleep 60"
    transcript = {"parser": "stream-json", "path": "t.jsonl"}
    more = {"timeout_seconds": 1, "score_on_timeout": True, "limits": {"tokens": 1000}}
    carry_out(project, shell_runner(line, transcript=transcript, **more))

    record = project.record("r", "a", "runner.json")
    assert (record["error_code"], record["error"]["limit"], record["timed_out"]) == ("E_LIMIT", "tokens", True)
    assert "scored_on_timeout" not in record


@pytest.mark.parametrize(("sandbox", "component"), [("bubblewrap", "bwrap"), ("spoolctl", "python:spoolctl")])
@pytest.mark.parametrize("way", ["transcript", "file"])
def test_other_sandboxes_stop_an_agent_that_exceeds_a_limit_too(
    project: Project, shell_runner: Shell, require: Callable[[str], None], sandbox: str, component: str, way: str
) -> None:
    require(component)
    whole = {"input": 0, "output": 1200, "cache_read": 0, "cache_write": 0}
    line = told(whole) if way == "file" else f"echo '{message(1, 1200)}'"
    runner = shell_runner(f"{line}; {HANG}", transcript={"parser": "stream-json"}, limits={"tokens": 1000})
    project.suite(runner=runner, cases=[{"id": "a", "expect": OK}], scorers=[{"use": "exit-code"}], sandbox=sandbox)
    project.call("run", "demo", "--run-id", "r", "--json")

    record = project.record("r", "a", "runner.json")
    assert (record["error_code"], record["error"]["limit"], record["timed_out"]) == ("E_LIMIT", "tokens", False)
    assert record["usage"]["output"] == 1200


FLAKY = """
from pathlib import Path

from evalwright.errors import TrialError
from evalwright.interfaces import Scorer
from evalwright.model import Score

MARK = Path({mark!r})

class Flaky(Scorer):
    api = "scorer/1.0"
    def score(self, trial, context):
        if MARK.exists():
            return Score(ok=True, score=1.0)
        MARK.touch()
        raise TrialError("busy", "try again", transient=True)
"""


def test_attempt_that_was_made_again_is_paid_for_too(project: Project, shell_runner: Shell) -> None:
    project.suite(
        runner=shell_runner(told({"cost": 0.02})),
        cases=[{"id": "a"}],
        scorers=[{"use": "flaky.py:Flaky", "id": "flaky"}],
        files={"flaky.py": FLAKY.format(mark=str(project.path / "mark"))},
        retry={"infrastructure": 1, "backoff_seconds": 0.01},
    )
    assert project.call("run", "demo", "--run-id", "r", "--json").data["run"]["ok"]
    assert project.call("report", "r", "--json").data["usage"]["cost"] == {"value": 0.04, "known": 2, "of": 2}


def test_file_of_prices_that_cannot_be_used_refuses_the_run_before_it_begins(project: Project, shell_runner: Shell) -> None:
    (project.path / "evalwright.toml").write_text('prices = "prices.toml"\n')
    (project.path / "prices.toml").write_text("[m]\ninput = 1\n")
    answer = carry_out(project, shell_runner("true"))
    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert "prices.toml: m.output" in answer.stdout
    assert not project.run_dir("r").exists()


def test_prices_are_no_part_of_a_runs_identity(project: Project, shell_runner: Shell) -> None:
    carry_out(project, shell_runner(told({"input": 1, "output": 0, "cache_read": 0, "cache_write": 0, "model": "m"})))
    (project.path / "prices.toml").write_text("[m]\ninput = 1\noutput = 1\n")
    again = project.call("run", "demo", "--run-id", "r", "--json", env={"EVALWRIGHT_PRICES": "prices.toml"})
    assert again.data["existing"]
    assert usage_of(project)["cost"] is None


TELLING = {
    "usage file": ('{"model": "m%s", "input": 1}', "> $EVALWRIGHT_USAGE_FILE"),
    "transcript": ('{"type": "assistant", "message": {"model": "m%s", "usage": {"input_tokens": 1}}}', ""),
}


@pytest.mark.parametrize(("record", "where"), TELLING.values(), ids=TELLING.keys())
def test_model_whose_name_has_no_encoding_loses_no_trial(
    project: Project, shell_runner: Shell, record: str, where: str
) -> None:
    text = record % r"\ud800"

    carry_out(project, shell_runner(f"cat <<'END' {where}\n{text}\nEND", transcript={"parser": "stream-json"}))

    assert project.record("r", "a", "score.json")["status"] == "pass"
    usage = usage_of(project)
    assert usage is not None
    assert (usage["model"], usage["input"]) == ("m\ufffd", 1)


def test_event_that_is_too_long_to_read_is_told_of(project: Project, shell_runner: Shell) -> None:
    lines = [
        """echo '{"type": "assistant", "message": {"id": "a", "usage": {"input_tokens": 1}}}'""",
        """printf '{"type": "assistant", "message": {"id": "b", "usage": {"input_tokens": 7}, "content": "'""",
        """head -c 5000000 /dev/zero | tr '\\0' x; echo '"}}'""",
    ]

    carry_out(project, shell_runner("; ".join(lines), transcript={"parser": "stream-json"}))

    kept = [one["message"] for one in project.record("r", "a", "runner.json")["warnings"]]
    assert "events of the transcript that are too long to be counted: 1" in kept
    usage = usage_of(project)
    assert usage is not None
    assert usage["input"] == 1
