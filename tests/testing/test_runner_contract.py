"""Every check of the runner contract fails on a runner that is broken in that way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from evalwright.interfaces import Host, RunnerContext
from evalwright.model import Completed, RunnerResult, TrialView
from evalwright.testing import RunnerContract, ScriptedConfig, ScriptedRunner

Act = Callable[[TrialView, RunnerContext], RunnerResult]


class TestScriptedRunner(RunnerContract):
    def make(self, host: Host) -> ScriptedRunner:
        return ScriptedRunner(None, host)

    def make_failing(self, host: Host) -> ScriptedRunner:
        return ScriptedRunner(ScriptedConfig(exit_code=3), host)

    def make_hanging(self, host: Host) -> ScriptedRunner:
        return ScriptedRunner(ScriptedConfig(hangs=True), host)


def contract(act: Act) -> type[RunnerContract]:
    class Broken(RunnerContract):
        def make(self, host: Host) -> ScriptedRunner:
            return ScriptedRunner(None, host, act=act)

        make_failing = make_hanging = make

    return Broken


def answers(text: str) -> RunnerResult:
    return RunnerResult(completed=Completed(exit_code=0), output=text)


def nothing(trial: TrialView, context: RunnerContext) -> Any:
    return "no result"


def raises(trial: TrialView, context: RunnerContext) -> RunnerResult:
    raise RuntimeError("the agent exited with 3")


def never_looks(trial: TrialView, context: RunnerContext) -> RunnerResult:
    threading.Event().wait(2)
    return answers("at last")


def forgets() -> Act:
    last: list[str] = []

    def act(trial: TrialView, context: RunnerContext) -> RunnerResult:
        last[:] = [trial.task]
        threading.Event().wait(0.02)
        return answers(last[0])

    return act


VERBATIM = "test_task_reaches_the_agent_verbatim"
BROKEN: list[tuple[str, Act]] = [
    (VERBATIM, lambda trial, _: answers(trial.task.strip())),
    (VERBATIM, lambda trial, _: answers(trial.task.replace("$HOME", "/root"))),
    (VERBATIM, lambda trial, _: answers(trial.task.encode("ascii", "replace").decode())),
    ("test_result_can_be_recorded", nothing),
    ("test_result_can_be_recorded", lambda trial, _: RunnerResult(details={"when": object(), "task": trial.task})),
    ("test_exit_status_other_than_zero_is_a_result", raises),
    ("test_exit_status_other_than_zero_is_a_result", lambda trial, _: answers(trial.task)),
    ("test_deadline_is_kept", never_looks),
    ("test_cancellation_is_noticed", never_looks),
    ("test_eight_trials_at_once", forgets()),
]


@pytest.mark.parametrize(("check", "act"), BROKEN, ids=[f"{number}-{check}" for number, (check, _) in enumerate(BROKEN)])
def test_check_fails_on_its_broken_runner(check: str, act: Act, prove: Any) -> None:
    prove(contract(act), check)


def test_every_check_has_a_broken_runner(checks: Any) -> None:
    assert checks(RunnerContract) == {check for check, _ in BROKEN}
