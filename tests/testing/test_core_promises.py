"""What the core promises to plugins' authors, shown with the fakes: evidence survives a sandbox that fails at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.interfaces import Deadline, SandboxRequest, Session
from evalwright.testing import FakeSandbox, FakeSession, ScriptedRunner, SmallProject, installed


class LosingSession(FakeSession):
    def collect(self, deadline: Deadline) -> None:
        raise OSError("the machine is gone")


class UnreleasedSession(FakeSession):
    def destroy(self, deadline: Deadline) -> None:
        raise OSError("container c1 is still there")


def sandbox_of(session: type[FakeSession]) -> type[FakeSandbox]:
    class Made(FakeSandbox):
        def open(self, request: SandboxRequest) -> Session:
            return session(request, self.supervisor)

    return Made


@pytest.fixture
def small(tmp_path: Path) -> SmallProject:
    return SmallProject(tmp_path, {"one": ("printf right; exit 0", "right")})


def record(outcome: Any, name: str) -> Any:
    return json.loads((outcome.run.case("one") / name).read_bytes())


def test_failing_collect_is_an_error_that_keeps_the_runner_s_result(small: SmallProject) -> None:
    with installed("sandbox", "losing", sandbox_of(LosingSession)) as name:
        outcome = small.run(sandbox=name)
    runner = record(outcome, "runner.json")
    assert [case.status for case in outcome.report.cases] == ["error"]
    assert (runner["exit_code"], runner["error"]["kind"]) == (0, "sandbox_lost")
    assert (outcome.run.case("one") / "output.txt").read_text() == "right"


def test_failing_destroy_is_a_warning_and_no_status(small: SmallProject) -> None:
    with installed("sandbox", "unreleased", sandbox_of(UnreleasedSession)) as name:
        outcome = small.run(sandbox=name)
    assert [case.status for case in outcome.report.cases] == ["pass"]
    assert [code for code, message in small.warnings if "container c1" in message] == ["W_SANDBOX_LEFT"]


def test_core_ends_a_session_in_the_promised_order(tmp_path: Path, small: SmallProject) -> None:
    made: list[FakeSandbox] = []

    class Remembering(FakeSandbox):
        def open(self, request: SandboxRequest) -> Session:
            made.append(self)
            return super().open(request)

    with installed("sandbox", "remembering", Remembering) as name:
        small.run(sandbox=name)
    assert [session.steps for session in made[0].sessions] == [["kill", "collect", "destroy"]]


def test_scripted_runner_and_fake_sandbox_carry_a_whole_run(tmp_path: Path) -> None:
    with installed("runner", "scripted", ScriptedRunner), installed("sandbox", "fake", FakeSandbox, distribution="fakes"):
        runner = {"use": "scripted", "answer": "42", "writes": {"new": "x\n"}}
        outcome = SmallProject(tmp_path, {"one": ("ask", "42")}, runner=runner).run(sandbox="fake")
    assert outcome.report.ok
    assert record(outcome, "workspace-diff.json")["changed_paths"][0]["path"] == "new"
