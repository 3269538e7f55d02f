"""Foreign formats in and out, as a user calls them."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

DATA = Path(__file__).parents[1] / "data" / "lastlight"
TRIAGE = DATA / "results" / "triage" / "2026-06-29_160025-74bc10e"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "argv"], "no value"),
        (["--set", "=x"], "no value"),
        (["--set", "markres=true"], "markres"),
        (["--set", "markers=perhaps"], "markers"),
        (["--set", "gold=absent.jsonl"], "absent.jsonl"),
        (["--set", "leaderboard=absent.json"], "absent.json"),
    ],
)
def test_wrong_option_of_a_format_is_named(here: Call, words: list[str], message: str) -> None:
    source = TRIAGE if "leaderboard" in words[1] else DATA / "tiers" / "triage.json"
    code, answer = here("import", "lastlight", str(source), *words)
    assert code in (1, 3)
    assert message in answer["errors"][0]["message"]
    assert answer["errors"][0]["hint"]


def test_imported_experiment_is_read_by_its_own_name(here: Call) -> None:
    code, answer = here("import", "lastlight", str(TRIAGE), "--out", "mine")
    assert (code, answer["data"]["experiment"]) == (0, "mine")
    for verb in ("report", "status", "verify"):
        code, read = here(verb, "mine")
        assert (code, read["data"]["run_id"]) == (0, answer["data"]["runs"][0])
    code, _ = here("import", "lastlight", str(DATA / "band"), "--out", "several")
    code, refused = here("explain", "several", "x")
    assert (code, "several.anthropic" in refused["errors"][0]["hint"]) == (1, True)


def test_people_are_told_what_was_imported(project: Project) -> None:
    text = project.call("import", "lastlight", str(TRIAGE), "--out", "mine", "--format", "text").stdout
    assert text.startswith("mine: 1 trial in 1 run from lastlight · 1 passed\n  mine.anthropic-claude-haiku-4-5.1\n")
    text = project.call("import", "lastlight", str(DATA / "tiers" / "code-fix.json"), "--format", "text").stdout
    assert "  needs: Node.js 22.6 or newer, for tests in TypeScript\nCheck it:  evalwright audit lastlight-code-fix" in text


def test_finished_import_has_nothing_to_resume(here: Call) -> None:
    _, answer = here("import", "lastlight", str(TRIAGE))
    code, resumed = here("run", "--resume", answer["data"]["runs"][0])
    assert (code, [warning["code"] for warning in resumed["warnings"]]) == (0, ["W_RESUME_NOTHING_PENDING"])


def test_junit_export_is_the_junit_report(ran: Project) -> None:
    assert ran.call("export", "junit", "r", "--out", "out/r.xml").exit_code == 0
    exported = (ran.path / "out" / "r.xml").read_text()
    assert exported == ran.call("report", "r", "--format", "junit").stdout
    assert [case.get("name") for case in ET.fromstring(exported).iter("testcase")] == ["a", "b", "c"]


def test_export_names_its_file_after_the_run_and_replaces_nothing(ran: Project) -> None:
    first = ran.call("export", "swebench", "r")
    assert first.data["out"] == "r.swebench.jsonl"
    lines = [json.loads(line) for line in (ran.path / "r.swebench.jsonl").read_text().splitlines()]
    assert [line["instance_id"] for line in lines] == ["a", "b", "c"]
    again = ran.call("export", "swebench", "r")
    assert (again.exit_code, again.error_codes) == (5, ["E_RUN_CONFLICT"])


def test_artifact_that_was_changed_is_not_exported(ran: Project) -> None:
    (ran.path / "evals" / "runs" / "r" / "cases" / "a" / "workspace.diff").write_text("+forged\n")
    answer = ran.call("export", "swebench", "r")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
    assert not (ran.path / "r.swebench.jsonl").exists()


def test_unknown_format_names_the_known_ones(here: Call, ran: Project) -> None:
    code, answer = here("export", "swebnch", "r")
    assert (code, answer["errors"][0]["code"]) == (1, "E_PLUGIN_NOT_FOUND")
    assert "swebench" in json.dumps(answer["errors"][0])
