"""What an agent writes: odd bytes, odd files, and secrets, which must be nowhere in a finished run directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.coordinate import RunOutcome, RunRequest, Stop, run_suite
from evalwright.hooks import Observers
from evalwright.report import Projection
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.suite import load_suite
from evalwright.testing import within

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
SECRET = "sk-live-ABCDEFGHIJKLMNOPQR"


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


def carry_out(project: Project, suite: Path, **settings: Any) -> Projection:
    """Run a suite in this process."""
    evals = project.path / "evals"
    request = RunRequest(
        checked=load_suite(suite),
        layout=Layout(evals, evals / "runs"),
        settings=Settings(evals=evals, jobs=4, **settings),
        run_id="r",
    )

    def run() -> RunOutcome:
        return run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=ignored)

    return within(20, run, "the run").report


def statuses(report: Projection) -> Mapping[str, str]:
    return {case.id: case.status for case in report.cases}


def places_of(secret: bytes, run: Path) -> list[str]:
    """Return where a run directory holds the secret: in a file, a file's name or a link's target."""
    found: list[str] = []
    for directory, names, files in os.walk(run):
        for name in (*names, *files):
            path = Path(directory, name)
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            if secret in content or secret in os.fsencode(name):
                found.append(str(path.relative_to(run)))
    return found


def test_output_that_is_not_utf8_keeps_its_case_its_exit_code_and_its_bytes(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner("printf '\\377\\376PASS\\n'; exit 0")
    suite = project.suite(
        runner=runner, scorers=[{"use": "contains"}], cases=[{"id": "a", "expect": {"text_contains": ["PASS"]}}]
    )

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "pass"}
    assert project.record("r", "a", "runner.json")["exit_code"] == 0
    assert project.artifact("r", "a", "output.txt").read_text(encoding="utf-8") == "\ufffd\ufffdPASS\n"
    assert project.artifact("r", "a", "runner.stdout.raw").read_bytes() == b"\xff\xfePASS\n"


def test_raw_bytes_are_kept_while_a_redactor_is_at_work_and_finds_nothing(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner("printf '\\377\\376PASS\\n'", redact_patterns=["never-there"])
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"text_contains": ["PASS"]}}])

    carry_out(project, suite)

    assert project.artifact("r", "a", "runner.stdout.raw").read_bytes() == b"\xff\xfePASS\n"


def test_raw_bytes_are_not_kept_when_they_hold_a_secret(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner(f"printf '\\377{SECRET}\\n'", redact_patterns=["sk-live-[A-Z]+"])
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"text_contains": ["REDACTED"]}}])

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "pass"}
    assert not project.artifact("r", "a", "runner.stdout.raw").exists()


@pytest.mark.parametrize("name", ["stdout", "file"])
def test_line_ends_and_odd_characters_arrive_as_written(project: Project, shell_runner: Shell, name: str) -> None:
    target = "" if name == "stdout" else ' > "$EVALWRIGHT_OUTPUT_FILE"'
    answer = "a\r\nb\rc\u2028\x00\ufeff"
    line = f"printf 'a\\r\\nb\\rc\\342\\200\\250\\000\\357\\273\\277'{target}"
    suite = project.suite(runner=shell_runner(line), cases=[{"id": "a", "expect": {"exact": answer}}])

    assert statuses(carry_out(project, suite)) == {"a": "pass"}
    assert project.artifact("r", "a", "output.txt").read_bytes() == answer.encode()


@pytest.mark.parametrize(
    "line",
    [
        'ln -s {outside} "$EVALWRIGHT_OUTPUT_FILE"',
        'mkfifo "$EVALWRIGHT_OUTPUT_FILE"',
        'mkdir "$EVALWRIGHT_OUTPUT_FILE"',
        'ln -s nowhere "$EVALWRIGHT_OUTPUT_FILE"',
        'ln -s output.txt "$EVALWRIGHT_OUTPUT_FILE"',
        'ln -s /dev/zero "$EVALWRIGHT_OUTPUT_FILE"',
        "python3 -c \"import os, socket; os.chdir('$EXCHANGE'); socket.socket(socket.AF_UNIX).bind('output.txt')\"",
    ],
    ids=["link", "fifo", "directory", "dangling", "loop", "device", "socket"],
)
def test_answer_file_that_is_no_regular_file_is_the_agents_error(project: Project, shell_runner: Shell, line: str) -> None:
    outside = project.path / "outside.txt"
    outside.write_text(f"untouched {SECRET}")
    there = 'EXCHANGE=$(dirname "$EVALWRIGHT_OUTPUT_FILE"); '
    runner = shell_runner(there + line.format(outside=outside) + "; echo out", redact_patterns=["sk-live-[A-Z]+"])
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"text_contains": ["out"]}}])

    report = carry_out(project, suite)

    assert [(case.status, case.fault) for case in report.cases] == [("error", "agent")]
    assert outside.read_text() == f"untouched {SECRET}"
    assert "untouched" not in project.artifact("r", "a", "output.txt").read_text()


@pytest.mark.parametrize(
    "line",
    [
        'rm "$EVALWRIGHT_DIFF_FILE"',
        'rm "$EVALWRIGHT_DIFF_FILE"; mkfifo "$EVALWRIGHT_DIFF_FILE"',
        'rm "$EVALWRIGHT_DIFF_FILE"; ln -s {outside} "$EVALWRIGHT_DIFF_FILE"',
        'echo forged > "$EVALWRIGHT_DIFF_FILE"',
        'rm -rf "$(dirname "$EVALWRIGHT_TASK_FILE")"',
    ],
    ids=["removed", "fifo", "link", "rewritten", "exchange removed"],
)
def test_agent_that_damages_its_input_files_changes_no_evidence(project: Project, shell_runner: Shell, line: str) -> None:
    outside = project.path / "outside.txt"
    outside.write_text("host file")
    runner = shell_runner(line.format(outside=outside) + "; echo ok")
    cases = [{"id": "a", "diff": "in.diff", "expect": {"exact": "ok\n"}}]
    suite = project.suite(runner=runner, cases=cases, files={"in.diff": "the diff\n"})

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "pass"}
    assert project.artifact("r", "a", "input.diff").read_bytes() == b"the diff\n"
    assert project.artifact("r", "a", "task.txt").read_bytes() == b"t"


@pytest.mark.parametrize("before", [990, 980, 999, 1000])
@pytest.mark.parametrize("name", ["stdout", "stderr", "file"])
def test_secret_at_the_truncation_border_leaves_no_part_of_itself(
    project: Project, shell_runner: Shell, name: str, before: int
) -> None:
    target = {"stdout": "", "stderr": ">&2", "file": '> "$EVALWRIGHT_OUTPUT_FILE"'}[name]
    line = f"(head -c {before} /dev/zero | tr '\\0' .; printf %s $EXTRA_TOKEN; head -c 9000 /dev/zero | tr '\\0' .) {target}"
    runner = shell_runner(line, max_output_bytes=1000, env={"EXTRA_TOKEN": SECRET})
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"text_contains": [""]}}])

    carry_out(project, suite)

    run = project.run_dir("r")
    assert places_of(SECRET[:3].encode(), run / "cases" / "a") == []
    artifact = {"stdout": "runner.stdout.txt", "stderr": "runner.stderr.txt", "file": "output.txt"}[name]
    assert project.artifact("r", "a", artifact).read_bytes() == (b"." * before + b"[REDACTED]" + b"." * 1000)[:1000]


def test_answer_file_of_many_secrets_longer_than_the_cap_leaks_none_and_says_that_it_was_cut(
    project: Project, shell_runner: Shell
) -> None:
    line = 'yes $EXTRA_TOKEN | head -c 600000 > "$EVALWRIGHT_OUTPUT_FILE"'
    runner = shell_runner(line, max_output_bytes=200_000, env={"EXTRA_TOKEN": SECRET})
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"text_contains": [""]}}])

    carry_out(project, suite)

    text = project.artifact("r", "a", "output.txt").read_text()
    assert set(text.split("\n")) <= {"[REDACTED]", "", *("[REDACTED]"[:n] for n in range(10))}
    record = project.record("r", "a", "runner.json")
    assert (record["output_bytes"], record["output_truncated"]) == (600_000, True)


SPILL = """
printf '%s\\n' "$EXTRA_TOKEN"
printf '%s\\n' "$EXTRA_TOKEN" >&2
printf '%s\\n' "$EXTRA_TOKEN" > leak.txt
printf 'old %s\\n' "$EXTRA_TOKEN" > a.txt
printf '%s\\n' "$EXTRA_TOKEN" > "$EVALWRIGHT_OUTPUT_FILE"
"""
TELLING = """
import json, os
secret = os.environ["EXTRA_TOKEN"]
finding = {"why": secret, secret: [secret]}
print(json.dumps({"ok": False, "score": 0.5, "label": secret, "findings": [secret, finding]}))
"""


def test_secret_spilled_everywhere_is_nowhere_in_the_run_directory(project: Project, shell_runner: Shell) -> None:
    os.environ["EXTRA_TOKEN"] = SECRET
    try:
        scorer = {"use": "command", "id": "teller", "argv": ["/usr/bin/python3", "-c", TELLING]}
        runner = shell_runner(SPILL, env_allowlist=["PATH", "EXTRA_TOKEN"])
        suite = project.suite(runner=runner, scorers=[scorer, {"use": "exact"}], cases=[{"id": "a", "expect": {"exact": "no"}}])
        carry_out(project, suite)
    finally:
        del os.environ["EXTRA_TOKEN"]

    assert places_of(SECRET.encode(), project.run_dir("r")) == []
    assert b"[REDACTED]" in project.artifact("r", "a", "workspace.diff").read_bytes()
    assert project.record("r", "a", "runner.json")["output_redacted"]


def test_secret_in_a_file_name_or_link_is_nowhere_in_the_run_directory(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner('touch "$EXTRA_TOKEN"; ln -s "to-$EXTRA_TOKEN" link', env={"EXTRA_TOKEN": SECRET})
    suite = project.suite(runner=runner, scorers=[{"use": "exact"}], cases=[{"id": "a", "expect": {"exact": ""}}])

    carry_out(project, suite)

    assert places_of(SECRET.encode(), project.run_dir("r") / "cases") == []


def test_secret_of_several_lines_is_not_in_the_diff(project: Project, shell_runner: Shell) -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----"
    runner = shell_runner('printf "%s\\n" "$DEPLOY_KEY" > id_rsa; printf "%s" "$DEPLOY_KEY"', env={"DEPLOY_KEY": key})
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "[REDACTED]"}}])

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "pass"}
    assert places_of(b"hkiG9w0BAQEFAASC", project.run_dir("r") / "cases") == []


def test_secret_in_a_kept_workspace_is_redacted_or_not_kept(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner('printf "%s\\n" "$EXTRA_TOKEN" > leak.txt', env={"EXTRA_TOKEN": SECRET})
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": ""}}])

    carry_out(project, suite, keep_workspace="all")

    assert project.artifact("r", "a", "workspace").is_dir()
    assert places_of(SECRET.encode(), project.run_dir("r") / "cases") == []


def test_message_of_a_program_that_cannot_start_holds_no_secret(project: Project) -> None:
    runner = {"argv": [f"/no/{SECRET}"], "redact_patterns": ["sk-live-[A-Z]+"]}
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": ""}}])

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "error"}
    assert project.record("r", "a", "runner.json")["spawn_failed"]
    assert places_of(SECRET.encode(), project.run_dir("r") / "cases") == []


CHATTY = """
import os
from evalwright.interfaces import Command, Runner
from evalwright.model import Completed, RunnerResult

class Chatty(Runner[None]):
    api = "runner/1.0"

    def run(self, trial, context):
        secret = os.environ["EXTRA_TOKEN"]
        context.emit("said", {"text": secret, secret: [1, secret]})
        context.artifact("note.txt", f"x{secret}".encode())
        if trial.task == "raise":
            raise RuntimeError(f"failed with {secret}")
        return RunnerResult(output=f"x {secret} y", completed=Completed(exit_code=0), details={"note": secret})
"""


def test_secret_told_by_a_runner_plugin_is_nowhere_in_the_run_directory(project: Project) -> None:
    cases = [{"id": "a", "expect": {"exact": "x [REDACTED] y"}}, {"id": "b", "task": "raise", "expect": {"exact": ""}}]
    suite = project.suite(runner={"use": "agent.py:Chatty"}, cases=cases, files={"agent.py": CHATTY})
    os.environ["EXTRA_TOKEN"] = SECRET
    try:
        report = carry_out(project, suite)
    finally:
        del os.environ["EXTRA_TOKEN"]

    assert statuses(report) == {"a": "pass", "b": "error"}
    assert project.artifact("r", "a", "artifacts/note.txt").read_bytes() == b"x[REDACTED]"
    assert places_of(SECRET.encode(), project.run_dir("r")) == []


def test_ten_thousand_and_one_bytes_are_called_truncated_and_a_json_scorer_does_not_score_them(
    project: Project, shell_runner: Shell
) -> None:
    line = "python3 -c \"import json; print(json.dumps({'ok': True, 'score': 1, 'findings': [], 'x': 'y' * 10000}))\""
    scorer = {"use": "command", "id": "big", "shell": True, "command": line, "max_output_bytes": 10_000}
    suite = project.suite(runner=shell_runner("true"), scorers=[scorer], cases=[{"id": "a"}])

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "error"}
    assert "truncated" in str(report.cases[0].scores)


def test_output_exactly_as_long_as_the_cap_is_not_truncated(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner("printf 12345", max_output_bytes=5)
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "12345"}}])

    report = carry_out(project, suite)

    assert statuses(report) == {"a": "pass"}
    record = project.record("r", "a", "runner.json")
    assert (record["stdout_truncated"], record["output_truncated"], record["stdout_bytes"]) == (False, False, 5)
