"""Unknown keys inside a table of a table: refused at their own place, with the nearest known name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import Project


@pytest.mark.parametrize(
    ("document", "key", "near"),
    [
        ({"retry": {"agent": 2}}, "retry.agent", None),
        ({"retry": {"infrastructur": 2}}, "retry.infrastructur", "infrastructure"),
        ({"sandbox": {"use": "subprocess", "limits": {"memry": 3}}}, "sandbox.limits.memry", None),
        ({"sandbox": {"use": "subprocess", "limits": {"memory_byte": 3}}}, "sandbox.limits.memory_byte", "memory_bytes"),
        (
            {"sandboxes": {"small": {"use": "subprocess", "limits": {"open_file": 3}}}},
            "sandboxes.small.limits.open_file",
            "open_files",
        ),
    ],
    ids=["retry", "retry, near", "sandbox", "sandbox, near", "named sandbox, near"],
)
def test_unknown_key_inside_a_table_is_refused_with_its_place_and_the_nearest_name(
    project: Project, document: dict[str, Any], key: str, near: str | None
) -> None:
    project.suite(cases=[{"id": "a", "expect": {"exact": "x"}}], **document)

    answer = project.call("validate", "demo", "--json")

    assert (answer.exit_code, answer.error_codes) == (1, ["E_SCHEMA_VIOLATION"])
    (error,) = answer.envelope["errors"]
    assert error["key"] == key
    assert error.get("did_you_mean") == near
    assert error["file"].endswith("suite.json")
    assert error["hint"]


def test_every_unknown_key_at_every_depth_is_told_at_once(project: Project) -> None:
    sandbox = {"use": "subprocess", "limits": {"memry": 3, "proceses": 4}, "netwrk": "host"}
    project.suite(cases=[{"id": "a", "expect": {"exact": "x"}}], sandbox=sandbox, retry={"agent": 2}, tgs=[])

    answer = project.call("validate", "demo", "--json")

    assert set(answer.error_codes) == {"E_SCHEMA_VIOLATION"}
    found = {error["key"]: error.get("did_you_mean") for error in answer.envelope["errors"]}
    assert found == {
        "retry.agent": None,
        "sandbox.limits.memry": None,
        "sandbox.limits.proceses": "processes",
        "sandbox.netwrk": "network",
        "tgs": "tags",
    }
