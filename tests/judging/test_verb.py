"""``judge check`` and ``judge calibrate``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from tests.judging.server import Exchange, JudgeServer, completion, reply
from tests.judging.test_suites import cases, judged

from evalwright.cli.schemas import SCHEMAS
from evalwright.judging.calibration import Answer, calibration, cohen_kappa

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Project


def test_check_shows_what_each_judge_answers_and_fails_when_one_does_not(project: Project) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 1}
    with JudgeServer([reply(completion("ready", usage=usage))]) as server:
        suite = judged(server.url, price={"input": 1.0, "output": 10.0})
        suite["judges"]["absent"] = {"use": "openai", "base_url": server.url, "model": "m2", "api_key_env": "ABSENT_KEY"}
        project.suite(cases=cases(), **suite)
        both = project.call("judge", "check", "demo")
        one = project.call("judge", "check", "demo", "--judge", "strict")

    absent, strict = both.data["judges"]
    assert (both.exit_code, one.exit_code) == (3, 0)
    assert (absent["ok"], absent["error"]["message"]) == (False, "ABSENT_KEY is not set")
    assert (strict["ok"], strict["reply"], strict["cost"], strict["tries"]) == (True, "ready", pytest.approx(0.00002), 1)
    assert strict["latency_ms"] >= 0
    Draft202012Validator(SCHEMAS["judge"]).validate(both.data)
    assert project.call("judge", "check", "demo", "--judge", "nosuch").exit_code == 1


def longer_or_polite(exchange: Exchange) -> None:
    content = exchange.document["messages"][1]["content"]
    reply(completion('{"score": 1}' if "please" in content else '{"score": 0}'))(exchange)


def items(path: Path, *rows: tuple[str, str]) -> str:
    path.write_text("".join(json.dumps({"output": output, "label": label}) + "\n" for output, label in rows))
    return str(path)


def test_calibrate_compares_a_judge_with_people(project: Project) -> None:
    rows = [("yes please", "pass"), ("please 2", "pass"), ("no", "fail"), ("please", "fail"), ("nope", "pass"), ("nay", "fail")]
    with JudgeServer([longer_or_polite]) as server:
        project.suite(cases=cases(), **judged(server.url))
        answer = project.call("judge", "calibrate", "demo", "--items", items(project.path / "items.jsonl", *rows))

    data = answer.data
    assert answer.exit_code == 0
    assert (data["items"], data["judged"], data["errors"]) == (6, 6, {})
    assert data["accuracy"] == pytest.approx(4 / 6)
    assert data["kappa"] == pytest.approx(1 / 3)
    assert data["confusion"] == {"fail": {"fail": 2, "pass": 1}, "pass": {"fail": 1, "pass": 2}}
    assert (data["leniency"], data["repeatability"], data["position_bias"]) == (0.0, 1.0, None)
    Draft202012Validator(SCHEMAS["judge"]).validate(data)


def test_calibrate_shows_position_bias_and_items_that_could_not_be_judged(project: Project) -> None:
    def first(exchange: Exchange) -> None:
        broken = "gibberish" in exchange.document["messages"][1]["content"]
        reply(completion("?" if broken else '{"winner": "first"}'))(exchange)

    rows = [{"output": word, "label": "win", "expect": {"pairwise": {"reference": "x"}}} for word in ("a", "b", "gibberish")]
    file = project.path / "items.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with JudgeServer([first]) as server:
        suite = judged(server.url)
        suite["scorers"] = [{"use": "pairwise", "judge": "strict"}]
        project.suite(cases=[{**case, "expect": {"pairwise": {"reference": "x"}}} for case in cases()], **suite)
        data = project.call("judge", "calibrate", "demo", "--items", str(file)).data

    assert (data["items"], data["judged"], data["errors"]) == (3, 2, {"judge_unreadable": 1})
    assert (data["position_bias"], data["first_chosen"], data["accuracy"]) == (1.0, 1.0, 0.0)


@pytest.mark.parametrize("text", ["", "{", '{"output": "x"}', '{"output": "x", "label": "pass", "lable": 1}', "[]"])
def test_wrong_items_are_named_with_their_line(project: Project, text: str) -> None:
    project.suite(cases=cases(), **judged("http://127.0.0.1:1"))
    file = project.path / "items.jsonl"
    file.write_text(f"\n{text}\n")
    answer = project.call("judge", "calibrate", "demo", "--items", str(file))

    assert answer.exit_code == 1
    assert "items.jsonl:2" in answer.stdout if text else "holds no item" in answer.stdout


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15, 0.4),
        ([("y", "y")] * 45 + [("y", "n")] * 15 + [("n", "y")] * 25 + [("n", "n")] * 15, 0.1304),
        ([("y", "y"), ("n", "n")], 1.0),
        ([("y", "n"), ("n", "y")], -1.0),
    ],
)
def test_kappa_of_textbook_tables(pairs: list[tuple[str, str]], expected: float) -> None:
    kappa, low, high = cohen_kappa(pairs)

    assert kappa is not None
    assert low is not None
    assert high is not None
    assert kappa == pytest.approx(expected, abs=5e-5)
    assert low <= kappa <= high


def test_kappa_of_one_label_and_calibration_of_nothing_are_unknown() -> None:
    unknown: Any = (None, None, None)

    assert cohen_kappa([("y", "y")] * 5) == unknown
    assert cohen_kappa([]) == unknown
    nothing = calibration([Answer(human="y", error="judge_timeout")])
    assert (nothing["accuracy"], nothing["kappa"], nothing["judged"], nothing["errors"]) == (
        None,
        None,
        0,
        {"judge_timeout": 1},
    )


def test_repeatability_is_the_share_of_items_judged_alike_every_time() -> None:
    answers = [Answer(human="a", labels=("a", "a")), Answer(human="a", labels=("a", "b")), Answer(human="a", labels=("a",))]

    assert calibration(answers)["repeatability"] == 0.5
