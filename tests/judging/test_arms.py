"""Arms that change a judge: each arm is judged by its own, which is on record and checked before the first trial."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.judging.server import Exchange, JudgeServer, completion, reply
from tests.judging.test_suites import cases, judged, scores

if TYPE_CHECKING:
    from tests.conftest import Project


def by_model(exchange: Exchange) -> None:
    """Answer 0.1 for the model ``m1``, 0.9 for any other."""
    model = json.loads(exchange.body)["model"]
    reply(completion(f'{{"score": {0.1 if model == "m1" else 0.9}}}', usage={}) | {"model": model})(exchange)


def test_each_arm_is_judged_by_its_own_judge(project: Project) -> None:
    with JudgeServer([by_model]) as server:
        suite = judged(server.url, model="m1")
        arms = {"plain": {}, "other": {"judges": {"strict": {**suite["judges"]["strict"], "model": "m2"}}}}
        project.suite(cases=cases(), arms=arms, **suite)
        answer = project.call("run", "demo", "--run-id", "x")
        again = project.call("rescore", "x", "--run-id", "y")

        assert len(server.requests) == 2
    assert (answer.exit_code, again.exit_code) == (0, 0)
    for experiment in ("x", "y"):
        found = {arm: scores(project, f"{experiment}.{arm}.1")[0] for arm in arms}
        assert {arm: (one["score"], one["judge"]["model"]) for arm, one in found.items()} == {
            "plain": (0.1, "m1"),
            "other": (0.9, "m2"),
        }
    tables = json.loads((project.path / "evals/runs/x.other.1/run.json").read_text())["resolved"]["tables"]
    assert tables["judges"]["strict"]["model"] == "m2"


def test_arms_with_different_judges_have_different_identities(project: Project) -> None:
    with JudgeServer([by_model]) as server:
        suite = judged(server.url, model="m1")
        arms = {"plain": {}, "other": {"judges": {"strict": {**suite["judges"]["strict"], "model": "m2"}}}}
        project.suite(cases=cases(), arms=arms, **suite)
        project.call("run", "demo", "--run-id", "x")

    records = [json.loads((project.path / f"evals/runs/x.{arm}.1/run.json").read_text()) for arm in arms]
    assert len({record["suite_identity"]["arm_digest"] for record in records}) == 2


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"strict": {"use": "openai", "model": "m2", "temprature": 1}}, "arms.other.judges.strict"),
    ({"strict": {"use": "nobody"}}, "arms.other.judges.strict"),
    ({"strict": {"use": "openai", "model": "m2", "retries": -1}}, "arms.other.judges.strict"),
]


@pytest.mark.parametrize(("judges", "place"), WRONG)
def test_wrong_judge_of_an_arm_is_refused_by_its_place(project: Project, judges: dict[str, Any], place: str) -> None:
    project.suite(cases=cases(), arms={"plain": {}, "other": {"judges": judges}}, **judged("http://127.0.0.1:1"))

    answer = project.call("validate", "demo")

    assert answer.error_codes == ["E_SCHEMA_VIOLATION"]
    assert place in json.dumps(answer.envelope["errors"])


def test_arm_whose_judge_has_no_key_is_refused_before_any_trial(project: Project) -> None:
    suite = judged("http://127.0.0.1:1")
    own = {"judges": {"strict": {**suite["judges"]["strict"], "api_key_env": "NO_SUCH_KEY"}}}
    project.suite(cases=cases(), arms={"plain": {}, "other": own}, **suite)

    answer = project.call("run", "demo", "--run-id", "x")

    assert answer.exit_code != 0
    assert "NO_SUCH_KEY is not set" in json.dumps(answer.envelope["errors"])
    assert not (project.path / "evals/runs/x.plain.1").exists()
