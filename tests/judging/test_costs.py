"""What judges cost counts: against the limit of an experiment, in the ledger, on resume."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.judging.server import Act, Exchange, JudgeServer, completion, reply
from tests.judging.test_suites import cases, judged, scores

from evalwright.ledger import read_events

if TYPE_CHECKING:
    from tests.conftest import Project

DOLLAR = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
PRICE = {"input": 1.0, "output": 1.0}


def dear(exchange: Exchange) -> None:
    """Answer for one US dollar."""
    reply(completion('{"score": 1}', usage=DOLLAR))(exchange)


def told(project: Project, run: str) -> list[Any]:
    """Return what the ledger says that judging cost, trial by trial."""
    events = read_events(project.path / "evals/runs" / run / "ledger.jsonl")
    return [event["data"]["judging"] for event in events if event["type"] == "TRIAL_FINISHED"]


def test_judges_count_against_the_limit_of_an_experiment_and_on_resume(project: Project) -> None:
    with JudgeServer([dear]) as server:
        project.suite(cases=cases(4), **judged(server.url, price=PRICE))
        first = project.call("run", "demo", "--run-id", "x", "--jobs", "1", "--max-cost", "1.5")
        asked = len(server.requests)
        again = project.call("run", "--resume", "x", "--jobs", "1")
        unchanged = len(server.requests)
        last = project.call("run", "--resume", "x", "--jobs", "1", "--max-cost", "100")

    assert (first.exit_code, first.envelope["errors"][0]["spent_usd"]) == (4, 2.0)
    assert (first.error_codes, again.error_codes, asked, unchanged) == (["E_COST_LIMIT"], ["E_COST_LIMIT"], 2, 2)
    assert last.data["run"]["status_counts"]["pass"] == 4
    assert told(project, "x") == [{"cost": 1.0, "unknown": 0}] * 4


def test_judges_count_against_the_limit_from_the_first_of_several_runs(project: Project) -> None:
    with JudgeServer([dear]) as server:
        project.suite(cases=cases(2), **judged(server.url, price=PRICE))
        answer = project.call("run", "demo", "--run-id", "x", "--repeats", "3", "--jobs", "4", "--max-cost", "2.5")
        asked = len(server.requests)

    assert answer.error_codes == ["E_COST_LIMIT"]
    assert asked == 3


def test_replies_from_the_cache_cost_nothing(project: Project) -> None:
    with JudgeServer([dear]) as server:
        project.suite(cases=cases(2), **judged(server.url, price=PRICE))
        project.call("run", "demo", "--run-id", "one")
        answer = project.call("run", "demo", "--run-id", "two", "--max-cost", "0.5")

    assert answer.data["run"]["status_counts"]["pass"] == 2
    assert told(project, "two") == [{"cost": 0, "unknown": 0}] * 2


@pytest.mark.parametrize(("price", "unknown"), [(PRICE, 0), (None, 1)])
def test_judge_that_tells_no_cost_is_said_to_be_uncounted(project: Project, price: Any, unknown: int) -> None:
    agent = {"argv": ["sh", "-c", """printf '{"cost": 0.01}' > "$EVALWRIGHT_USAGE_FILE" """]}
    with JudgeServer([dear]) as server:
        project.suite(cases=cases(), runner=agent, **judged(server.url, price=price))
        answer = project.call("run", "demo", "--run-id", "x", "--max-cost", "50")

    assert told(project, "x") == [{"cost": 0 if unknown else 1.0, "unknown": unknown}]
    assert ("W_USAGE_UNKNOWN" in answer.warning_codes) == bool(unknown)


CHARGED: list[tuple[list[Act], str | None, float]] = [
    ([reply(completion("garbage", usage=DOLLAR)), reply(completion('{"score": 1}', usage=DOLLAR))], None, 2.0),
    ([reply(completion("garbage", usage=DOLLAR))], "judge_unreadable", 2.0),
    ([reply(completion('{"score": 1', "length", usage=DOLLAR))], "judge_truncated", 2.0),
    ([reply(completion("no", "content_filter", usage=DOLLAR))], "judge_refused", 1.0),
    ([reply(completion("garbage", usage=DOLLAR)), reply({}, 404)], "judge_failed", 1.0),
    ([reply({}, 503), reply(completion('{"score": 1}', usage=DOLLAR))], None, 1.0),
    ([reply({}, 503)], "judge_unavailable", 0.0),
]


@pytest.mark.parametrize(("script", "kind", "cost"), CHARGED)
def test_reply_that_cannot_be_used_is_paid_for_all_the_same(
    project: Project, script: list[Act], kind: str | None, cost: float
) -> None:
    with JudgeServer(script) as server:
        project.suite(cases=cases(), **judged(server.url, price=PRICE, reasks=1))
        project.call("run", "demo", "--run-id", "x")

    (record,) = scores(project, "x")
    assert [finding.get("kind") for finding in record["findings"]] == ([kind] if kind else [])
    assert record["judge"]["cost"] == cost
    assert told(project, "x") == [{"cost": cost, "unknown": 0}]


def of_two(project: Project, server: JudgeServer) -> None:
    """Make a suite whose judge is a panel of two that must both answer."""
    suite = judged(server.url, price=PRICE, reasks=0)
    table = suite["judges"]["strict"]
    suite["judges"] = {
        "one": {**table, "model": "m1"},
        "two": {**table, "model": "m2"},
        "strict": {"use": "panel", "members": ["one", "two"], "quorum": 2, "reasks": 0, "retries": 0},
    }
    project.suite(cases=cases(), **suite)


def test_panel_costs_what_its_members_do_and_cached_replies_of_them_nothing(project: Project) -> None:
    asked: list[str] = []

    def act(exchange: Exchange) -> None:
        model = json.loads(exchange.body)["model"]
        asked.append(model)
        reply(completion("garbage" if asked.count(model) == 1 and model == "m2" else '{"score": 1}', usage=DOLLAR))(exchange)

    with JudgeServer([act]) as server:
        of_two(project, server)
        project.call("run", "demo", "--run-id", "x")
        project.call("run", "demo", "--run-id", "y")

    assert sorted(asked) == ["m1", "m2", "m2"]
    assert told(project, "x") == [{"cost": 2.0, "unknown": 0}]
    assert told(project, "y") == [{"cost": 1.0, "unknown": 0}]


def test_replayed_reply_costs_nothing_again(project: Project) -> None:
    with JudgeServer([dear]) as server:
        project.suite(cases=cases(), **judged(server.url, price=PRICE))
        project.call("run", "demo", "--run-id", "x")
    recorded = project.path / "evals/runs/x/cases/c0/scorers/judge.replies.jsonl"
    suite = judged("http://127.0.0.1:1")
    suite["judges"]["strict"] = {"use": "replay", "files": ["r.jsonl"]}
    project.suite("again", cases=cases(), files={"r.jsonl": recorded.read_bytes()}, **suite)
    project.call("run", "again", "--run-id", "y")

    assert scores(project, "y")[0]["score"] == 1
    assert told(project, "y") == [{"cost": 0, "unknown": 0}]


def test_run_without_judges_says_that_none_was_asked(project: Project) -> None:
    project.suite(cases=[{**case, "expect": {"exit_code": 0}} for case in cases()])
    project.call("run", "demo", "--run-id", "x")

    assert told(project, "x") == [None]


def test_rescored_run_says_what_judging_again_cost(project: Project) -> None:
    with JudgeServer([dear]) as server:
        project.suite(cases=cases(), **judged(server.url, price=PRICE, cache=False))
        project.call("run", "demo", "--run-id", "x")
        project.call("rescore", "x", "--run-id", "y")

    assert told(project, "y") == [{"cost": 1.0, "unknown": 0}]


@pytest.mark.parametrize(("model", "cost"), [("m1", 3.0), ("m2", None)])
def test_judge_without_a_price_is_priced_by_the_table(project: Project, model: str, cost: float | None) -> None:
    (project.path / "prices.toml").write_text('["m1"]\ninput = 3.0\noutput = 1.0\ncache_read = 0.0\ncache_write = 0.0\n')
    usage = DOLLAR | {"prompt_tokens_details": {"cached_tokens": 0}}
    with JudgeServer([reply(completion('{"score": 1}', usage=usage) | {"model": model})]) as server:
        project.suite(cases=cases(), **judged(server.url))
        project.call("run", "demo", "--run-id", "x", env={"EVALWRIGHT_PRICES": str(project.path / "prices.toml")})

    assert scores(project, "x")[0]["judge"]["cost"] == cost
