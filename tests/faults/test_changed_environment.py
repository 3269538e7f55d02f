"""Runs that go on while the agent's variables hold something else: what was measured under which of them is never silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.faults.test_cache_and_resume import case, cut

from evalwright.coordinate.variables import fingerprints, moved_variables
from evalwright.model import AgentTable

if TYPE_CHECKING:
    from tests.conftest import Answer, Project

CODE = "W_ENVIRONMENT_CHANGED"


def allowed(*names: str, **more: object) -> AgentTable:
    return AgentTable(env_allowlist=names, **more)  # type: ignore[arg-type]  # the keys are those of the table


def told(answer: Answer) -> list[str]:
    return [one["message"] for one in answer.envelope["warnings"] if one["code"] == CODE]


@pytest.fixture
def moded(project: Project) -> Project:
    """Return a project whose agent answers with what the variable MODE holds."""
    runner = {"shell": True, "command": 'printf %s "$MODE"', "env_allowlist": ["MODE", "API_KEY"]}
    project.suite(cases=[case("a"), case("b")], runner=runner)
    return project


def test_run_that_is_resumed_with_other_variables_says_so_for_ever(moded: Project) -> None:
    moded.call("run", "demo", "--run-id", "r", "--jobs", "1", env={"MODE": "ok", "API_KEY": "1" * 20})
    cut(moded, "r", 1)

    resumed = moded.call("run", "--resume", "r", env={"MODE": "no", "API_KEY": "2" * 20})

    assert resumed.data["run"]["status_counts"] == {"pass": 1, "fail": 1, "error": 0}
    assert len(told(resumed)) == 1
    assert "MODE (was " in told(resumed)[0]
    assert "API_KEY" not in told(resumed)[0]
    assert told(moded.call("report", "r", "--format", "json")) == told(resumed)
    assert moded.call("verify", "r").data["ok"] is True


def test_repeat_that_is_added_with_other_variables_says_so_for_ever(moded: Project) -> None:
    moded.call("run", "demo", "--run-id", "x", "--repeats", "2", env={"MODE": "ok"})

    extended = moded.call("run", "--resume", "x", "--repeats", "3", env={})

    assert [message.partition(": ")[0] for message in told(extended)] == ["x.default.3"]
    assert "is unset)" in told(extended)[0]
    assert CODE in moded.call("report", "x", "--format", "markdown").stdout


@pytest.mark.parametrize(("mode", "count"), [("ok", 0), ("no", 1)])
def test_finished_run_that_is_asked_for_with_other_variables_is_not_taken_for_theirs(
    moded: Project, mode: str, count: int
) -> None:
    moded.call("run", "demo", "--run-id", "r", env={"MODE": "ok"})

    again = moded.call("run", "demo", "--run-id", "r", env={"MODE": mode})

    assert (again.data["existing"], len(told(again))) == (True, count)


def test_variables_are_told_apart_without_telling_what_they_hold() -> None:
    agent = allowed("MODE", "EMPTY", "GONE", "MY_TOKEN", "PIN", "SET", env={"SET": "x"}, redact_env_values=("PIN",))
    held = {"MODE": "a", "EMPTY": "", "MY_TOKEN": "12345678", "PIN": "1234", "SET": "y", "OTHER": "z"}

    found = fingerprints(agent, held)

    assert list(found) == ["EMPTY", "GONE", "MODE"]
    assert found["GONE"] == "unset" != found["EMPTY"]
    assert all(len(digits) == 4 for name, digits in found.items() if name != "GONE")


@pytest.mark.parametrize(
    ("now", "changed"),
    [({"MODE": "a"}, 0), ({"MODE": "b"}, 1), ({"MODE": ""}, 1), ({}, 1), ({"MODE": "a", "OTHER": "b"}, 0)],
)
def test_any_change_of_an_allowed_variable_is_one(now: dict[str, str], changed: int) -> None:
    agent = allowed("MODE")
    record = {"run_id": "r", "provenance": {"env_digests": fingerprints(agent, {"MODE": "a"})}}

    assert len(moved_variables(record, agent, now)) == changed


@pytest.mark.parametrize("record", [{}, {"provenance": None}, {"provenance": {}}, {"provenance": {"env_digests": []}}])
def test_record_that_tells_of_no_variables_accuses_none(record: dict[str, object]) -> None:
    assert moved_variables(record, allowed("MODE"), {"MODE": "a"}) == []
