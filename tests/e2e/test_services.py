"""The example suite with a fake GitHub: the same verdicts in every sandbox, and no pass for an agent that does nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Project, shell

EXAMPLE = Path(__file__).parents[2] / "examples" / "services"
WGET = """
number=$(tr -dc 0-9 < "$EVALWRIGHT_TASK_FILE")
url="$GITHUB_API_URL/repos/acme/widget/issues/$number"
head="Authorization: Bearer $GITHUB_TOKEN"
wget -q -O - --header "$head" "$url" | grep -q 'Steps to reproduce' || exit 3
wget -q -O - --header "$head" --post-data '{"labels": ["bug"]}' "$url/labels"
"""


def example(project: Project, **document: Any) -> None:
    place = project.path / "evals" / "suites" / "services"
    shutil.copytree(EXAMPLE, place)
    whole = json.loads((place / "suite.json").read_text()) | document
    (place / "suite.json").write_text(json.dumps(whole))


def outcome(project: Project, run_id: str, *words: str) -> tuple[str, dict[str, int]]:
    answer = project.call("run", "services", "--run-id", run_id, "--json", *words, timeout=240)
    assert not [code for code in answer.warning_codes if code.startswith("W_SERVICE")], answer.stdout
    counts = answer.data["run"]["status_counts"]
    return answer.data["report_hash"], {status: count for status, count in counts.items() if count}


def test_example_passes_in_a_process_of_its_own_and_in_a_sandbox_without_network(
    project: Project, require: Callable[[str], None]
) -> None:
    require("bwrap")
    example(project)
    plain = outcome(project, "plain", "--jobs", "4")
    assert plain[1] == {"pass": 5}
    assert outcome(project, "apart", "--sandbox", "bubblewrap") == plain
    assert project.call("report", "apart", "--json").data["report_hash"] == plain[0]


def test_agent_that_does_nothing_passes_no_case(project: Project) -> None:
    example(project)
    answer = project.call("audit", "services", "--json", timeout=60)
    assert answer.data["noop"]["pass"] == 0
    assert not [problem for problem in answer.data["problems"] if problem["kind"] in ("noop-passes", "weak", "cannot-fail")]


def test_wrong_agent_is_told_what_was_seen(project: Project) -> None:
    command = 'curl -sS -H "Authorization: token $GITHUB_TOKEN" "$GITHUB_API_URL/repos/acme/widget/labels" > /dev/null'
    example(project, runner=shell(command))
    assert outcome(project, "wrong", "--case", "crash")[1] == {"fail": 1}
    (score,) = project.record("wrong", "crash", "score.json")["scores"]
    assert score["findings"] == [
        {"service": "github", "assertion": "labels_added", "why": "label was not added", "value": "bug", "labels": []}
    ]


@pytest.mark.acceptance
@pytest.mark.usefixtures("vm_image")
def test_virtual_machine_reaches_the_service_and_nothing_else(project: Project) -> None:
    example(project, sandbox={"use": "vm", "root": "busybox"}, runner=shell(WGET))
    assert outcome(project, "guest", "--case", "crash")[1] == {"pass": 1}
