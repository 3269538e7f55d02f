"""``status`` and ``jobs`` tell a finished run's verdicts from what is sealed, and only from that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.coordinate import sealed_state
from evalwright.rundir import RunDirectory, read_summaries

if TYPE_CHECKING:
    from tests.conftest import Project

TOLD = ("run", "report_hash", "cases", "progress", "run_id", "state", "total_count")


def told(ran: Project) -> dict[str, Any]:
    data = ran.call("status", "r", "--json").data
    return {key: data[key] for key in TOLD}


def sealed(ran: Project) -> dict[str, Any] | None:
    summary = read_summaries(ran.path / "evals" / "runs" / ".index.jsonl").get("r", {})
    return sealed_state(RunDirectory(ran.run_dir("r")), summary)


def replace_in(path: Path, old: bytes, new: bytes) -> None:
    """Change a file in place; its size stays."""
    content = path.read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))


def test_status_says_the_same_whether_the_artifacts_are_read_or_not(ran: Project) -> None:
    assert sealed(ran) is not None
    short = told(ran)
    (ran.path / "evals" / "runs" / ".index.jsonl").unlink()
    assert sealed(ran) is None
    assert told(ran) == short


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("manifest.json", b'"status": "pass"', b'"status": "fail"'),
        ("ledger.jsonl", b'"type":"RUN_FINISHED"', b'"type":"RUN_FINISHEX"'),
        ("ledger.jsonl", b'"manifest_digest":"sha256:', b'"manifest_digest":"sha256;'),
        ("ledger.head.json", b'"seq": ', b'"seq": 9'),
    ],
)
def test_what_is_not_what_was_sealed_is_told(ran: Project, file: str, old: bytes, new: bytes) -> None:
    replace_in(ran.run_dir("r") / file, old, new)

    assert sealed(ran) is None
    assert "W_ARTIFACT_TAMPERED" in ran.call("status", "r", "--json").warning_codes


def test_ledger_without_its_last_event_vouches_for_nothing(ran: Project) -> None:
    path = ran.run_dir("r") / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))

    assert sealed(ran) is None
    assert "W_ARTIFACT_TAMPERED" in ran.call("status", "r", "--json").warning_codes


def test_changed_manifest_is_noticed_by_the_list_of_runs(ran: Project) -> None:
    before = ran.call("jobs", "get", "r", "--json").data
    replace_in(ran.run_dir("r") / "manifest.json", b'"status": "pass"', b'"status": "fail"')

    after = ran.call("jobs", "get", "r", "--json").data

    assert after["run"] != before["run"]
    assert after["run"]["status_counts"]["error"] == before["run"]["case_count"]


def test_warnings_of_the_plan_are_told_with_the_state(ran: Project) -> None:
    path = ran.run_dir("r") / "run.json"
    record = json.loads(path.read_bytes())
    path.write_text(json.dumps(record | {"warnings": [{"code": "W_SELF_JUDGE", "message": "the agent judges itself"}]}))

    answer = ran.call("status", "r", "--json")

    assert answer.warning_codes == ["W_SELF_JUDGE"]
    assert answer.data["state"] == "completed"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"cases": 7}', '{"cases": [7]}', '{"cases": [{"id": "a"}]}'])
@pytest.mark.parametrize("file", ["manifest.json", "run.json", "ledger.jsonl", "ledger.head.json"])
def test_file_that_cannot_be_read_seals_nothing(ran: Project, file: str, text: str) -> None:
    (ran.run_dir("r") / file).write_text(text)

    assert sealed(ran) is None
