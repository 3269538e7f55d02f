"""Which versions of plugins a workflow was done with, and where it cannot be done at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.workflow.toy import Toy, waits

from evalwright.registry import Registry
from evalwright.testing import installed
from evalwright.worker import lock_of
from evalwright_plugins.runners.command import CommandRunner
from evalwright_plugins.workflow.drive.runs import Runs

if TYPE_CHECKING:
    from tests.conftest import Project

WORKFLOW: dict[str, Any] = {
    "use": "workflow",
    "workflow": {"name": "w", "steps": [{"id": "build"}], "terminal": ["end"]},
    "workers": {"build": {"shell": True, "command": "true"}},
}


def lines(toy: Toy) -> dict[str, Any]:
    """Return a workflow whose verification is done by a package's runner, and counted."""
    verifier = {"use": "agent", "shell": True, "command": f"echo x >> {toy.path.parent / 'count'}"}
    workflow = {"name": "w", "steps": [{"id": "verify", "worker": "verifier", "reusable": True}], "terminal": ["end"]}
    return {"workflow": workflow, "workers": {"verifier": verifier}}


def verified(toy: Toy) -> int:
    return (toy.path.parent / "count").read_text().count("x")


def test_verification_by_another_version_is_not_used_again(toy: Toy) -> None:
    for version, count in (("1.0", 1), ("1.0", 1), ("2.0", 2)):
        with installed("runner", "agent", CommandRunner, version=version):
            toy.start(**lines(toy))
        assert verified(toy) == count

    assert toy.data("RUN_CREATED", "W-3")[0]["plugins"]["runner agent"] == "evalwright-test-plugin 2.0"


def test_resume_with_other_versions_goes_on_and_says_so(toy: Toy) -> None:
    said: list[tuple[str, str]] = []
    runs = Runs(toy.runs.repository, lambda code, text: said.append((code, text)))
    with installed("runner", "agent", CommandRunner, version="1.0"):
        toy.start(**lines(toy), stop_at=["verify"])
        runs.resume(toy.run(), waits, lambda: False)
        assert said == []

    with installed("runner", "agent", CommandRunner, version="2.0"):
        runs.resume(toy.run(), waits, lambda: False)

    ((code, text),) = said
    assert code == "W_PLUGIN_DRIFT"
    assert text.endswith("other versions: runner agent (evalwright-test-plugin 1.0, now evalwright-test-plugin 2.0)")


def test_versions_of_workers_are_locked_with_a_run_of_a_suite() -> None:
    tables = {"runner": {"use": "workflow"}, "sandbox": {"use": "subprocess"}, "scorers": [], "agent": {}, "workers": ["agent"]}
    locks: list[str] = []
    for version in ("1.0", "1.0", "2.0"):
        with installed("runner", "agent", CommandRunner, version=version):
            locks.append(lock_of(tables, Registry()))

    assert locks[0] == locks[1] != locks[2]


def test_workers_are_planned_with_the_runner(project: Project) -> None:
    project.suite(runner=WORKFLOW, cases=[{"id": "c", "expect": {"exit_code": 0}}])

    plugins = project.call("plan", "demo").data["plugins"]

    assert [one["name"] for one in plugins if one["group"] == "evalwright.runners"] == ["workflow", "command"]


@pytest.mark.parametrize("verb", ["plan", "run"])
def test_sandbox_that_keeps_the_workspace_elsewhere_is_refused_before_the_first_trial(project: Project, verb: str) -> None:
    project.suite(runner=WORKFLOW, cases=[{"id": "c", "expect": {"exit_code": 0}}], sandbox="vm")

    answer = project.call(verb, "demo")

    assert (answer.exit_code, answer.error_codes) == (2, ["E_CAPABILITY_MISSING"])
    assert "the sandbox vm keeps it elsewhere" in answer.envelope["errors"][0]["message"]
    assert not (project.path / "evals" / "runs").exists()
