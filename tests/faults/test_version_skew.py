"""Records of other versions: older and extended ones are read, newer ones are named as such."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project


def write(project: Project, changes: dict[str, Any]) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": "ok"}}], runner={"argv": ["printf", "ok"]}, scorers=[{"use": "exact"}])
    project.call("run", "demo", "--run-id", "r")
    file = project.run_dir("r") / "run.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | changes))


@pytest.mark.parametrize("words", [["report", "r"], ["verify", "r"], ["compare", "r", "r"], ["export", "junit", "r"]])
def test_run_of_a_newer_version_is_refused_as_such_and_never_taken_for_a_foreign_one(
    project: Project, words: list[str]
) -> None:
    write(project, {"format": "evalwright/99"})

    answer = project.call(*words)

    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
    assert "written by a newer version" in answer.envelope["errors"][0]["message"]
    assert project.call("jobs", "list").exit_code == 0


def test_unknown_field_of_a_record_is_kept_and_disturbs_nobody(project: Project) -> None:
    write(project, {"from_the_future": {"a": 1}})

    assert project.call("report", "r").data["run"]["status_counts"]["pass"] == 1
    assert "from_the_future" in json.loads((project.run_dir("r") / "run.json").read_bytes())
