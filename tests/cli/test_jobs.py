"""``jobs list|get|prune``: one broken run disables nothing, pages join, and prune removes what it says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project


def copies(project: Project, *names: str) -> None:
    for name in names:
        shutil.copytree(project.run_dir("r"), project.run_dir(name))


def test_pages_join_to_the_whole_and_survive_a_vanished_cursor(here: Call, ran: Project) -> None:
    copies(ran, "a", "b", "z")
    _, first = here("jobs", "list", "--limit", "2")
    assert [run["run_id"] for run in first["data"]["runs"]] == ["a", "b"]
    assert first["meta"]["pagination"] == {"limit": 2, "cursor": None, "next_cursor": "b", "has_more": True}
    assert first["data"]["total_count"] == 4
    shutil.rmtree(ran.run_dir("b"))
    _, second = here("jobs", "list", "--limit", "2", "--cursor", "b")
    assert [run["run_id"] for run in second["data"]["runs"]] == ["r", "z"]
    assert second["meta"]["pagination"]["has_more"] is False


def test_fifty_runs_are_a_page_without_asking(here: Call, ran: Project) -> None:
    for number in range(60):
        place = ran.run_dir(f"x{number:02}")
        place.mkdir()
        shutil.copy(ran.run_dir("r") / "run.json", place)
    _, document = here("jobs", "list")
    assert (document["data"]["count"], document["data"]["total_count"]) == (50, 61)
    assert document["meta"]["pagination"]["has_more"] is True


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", '{"cases": 7}', '{"cases": [7]}', '{"cases": [{"id": "a"}]}', "{}"]
)
@pytest.mark.parametrize("file", ["manifest.json", "run.json"])
def test_one_broken_run_is_listed_as_damaged_and_disables_nothing(here: Call, ran: Project, file: str, text: str) -> None:
    copies(ran, "broken")
    if file == "run.json":
        (ran.run_dir("broken") / "manifest.json").unlink()
    (ran.run_dir("broken") / file).write_text(text)
    code, document = here("jobs", "list")
    assert code == 0
    states = {run["run_id"]: "damaged" in run for run in document["data"]["runs"]}
    assert states["r"] is False
    assert states["broken"] is True
    assert here("report", "r")[0] == 0
    assert here("jobs", "prune")[0] == 0
    code, document = here("report", "broken")
    assert (code, document["errors"][0]["code"]) == (1, "E_RUN_CORRUPT")
    code, document = here("status", "broken")
    assert (code, document["errors"][0]["code"]) == (1, "E_RUN_CORRUPT")
    assert (ran.run_dir("broken") / file).read_text() == text


@pytest.mark.parametrize("change", ["empty", "garbage", "null", "list", "key missing", "wrong digest", "wrong type", "absent"])
def test_index_is_never_trusted_over_a_manifest(here: Call, ran: Project, change: str) -> None:
    index = ran.path / "evals" / "runs" / ".index.jsonl"
    _, before = here("jobs", "get", "r")
    summary = json.loads(index.read_text().splitlines()[-1])
    digest = summary["manifest_digest"]
    lines = {
        "empty": "",
        "garbage": "\x00\xff{",
        "null": "null",
        "list": "[]",
        "key missing": json.dumps({"run_id": "r", "manifest_digest": digest}),
        "wrong digest": json.dumps(summary | {"manifest_digest": "sha256:0", "run": {"ok": True}}),
        "wrong type": json.dumps(summary | {"run_id": ["r"]}),
        "absent": "",
    }
    index.write_text(lines[change])
    if change == "absent":
        index.unlink()
    _, after = here("jobs", "get", "r")
    assert after["data"] == before["data"]
    assert after["data"]["run"]["status_counts"] == {"pass": 2, "fail": 1, "error": 0}


def orphan(project: Project, name: str) -> Path:
    """Leave an unfinished run of another tool, which nobody can resume."""
    copies(project, name)
    place = project.run_dir(name)
    (place / "manifest.json").unlink()
    record = json.loads((place / "run.json").read_text())
    del record["format"]
    (place / "run.json").write_text(json.dumps(record))
    return place


def test_prune_is_a_dry_run_without_yes(here: Call, ran: Project) -> None:
    place = orphan(ran, "left")
    _, document = here("jobs", "prune")
    assert document["data"]["candidates"]["orphaned_runs"] == ["left"]
    assert document["data"]["removed"] == {"reservations": [], "runs": [], "experiments": []}
    assert place.is_dir()


def test_prune_removes_orphans_and_neither_finished_nor_resumable_runs(here: Call, ran: Project) -> None:
    place = orphan(ran, "left")
    copies(ran, "cut")
    (ran.run_dir("cut") / "manifest.json").unlink()
    _, document = here("jobs", "prune", "--yes")
    assert document["data"]["removed"]["runs"] == ["left"]
    assert not place.exists()
    assert ran.run_dir("cut").is_dir()
    assert ran.run_dir("r").is_dir()
    assert {(item["run_id"], item["state"]) for item in document["data"]["refused"]} == {("cut", "stale"), ("r", "completed")}


def test_runs_of_no_project_are_an_empty_list(here: Call) -> None:
    code, document = here("jobs", "list")
    assert (code, document["data"]) == (0, {"runs": [], "count": 0, "total_count": 0})


@pytest.mark.parametrize("words", [["list", "r"], ["prune", "r"]], ids=lambda words: words[0])
def test_action_that_takes_no_run_refuses_one(here: Call, words: list[str]) -> None:
    assert here("jobs", *words)[0] == 1
