"""What the core does around a judge: cache, limits, further tries, secrets."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.judging.asking import ask, openai, patient, question
from tests.judging.server import Exchange, JudgeServer, completion, reply

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import GradeForm, JsonForm, JudgeReply
from evalwright.judging import Limits, ReplyCache, Tally
from evalwright.model import Usage
from evalwright.testing import CannedConfig, CannedJudge, FakeHost
from evalwright_plugins.judges.panel import PanelConfig, PanelJudge

LABEL = JsonForm(schema={"required": ["label"], "properties": {"label": {"enum": ["a", "b", "c"]}}}, decides=("label",))
SCORE = JsonForm(schema={"required": ["score"], "properties": {"score": {"type": "number"}}}, decides=("score",))
GRADES = GradeForm(grades=("C", "I"))


def counting(exchange: Exchange) -> None:
    reply(completion(f"answer {exchange.number}"))(exchange)


def test_repeats_and_samples_are_never_answered_by_one_reply(tmp_path: Path) -> None:
    questions = [question(sample=sample, repeat=repeat) for sample in (1, 2) for repeat in (1, 2, 3, 4, 5)]
    with JudgeServer([counting]) as server:
        judge = patient(openai(server.url), cache=tmp_path)
        first = [ask(judge, each) for each in questions]
        second = [ask(judge, each) for each in questions]

    assert len({each.text for each in first}) == 10
    assert [each.text for each in second] == [each.text for each in first]
    assert ([each.cached for each in first], [each.cached for each in second]) == ([False] * 10, [True] * 10)
    assert len(server.requests) == 10


@pytest.mark.parametrize(
    "other",
    [{"model": "m2"}, {"temperature": 1.0}, {"max_tokens": 5}, {"headers": {"x-a": "b"}}],
    ids=str,
)
def test_everything_that_is_sent_is_part_of_the_key(tmp_path: Path, other: dict[str, Any]) -> None:
    with JudgeServer([counting]) as server:
        judges = [openai(server.url, **change) for change in ({}, other)]
        replies = [ask(patient(judge, cache=tmp_path)) for judge in judges]
        texts = [ask(patient(judges[0], cache=tmp_path), question("other")).text, *(each.text for each in replies)]

    assert len(set(texts)) == 3


@pytest.mark.parametrize("status", [500, 400, 401])
def test_failure_is_never_kept(tmp_path: Path, status: int) -> None:
    with JudgeServer([reply({}, status), counting]) as server:
        judge = patient(openai(server.url), cache=tmp_path, retries=0)
        with pytest.raises(JudgeError):
            ask(judge)

        assert ask(judge).text == "answer 1"


def test_reply_without_a_verdict_is_asked_again_and_never_kept(tmp_path: Path) -> None:
    with JudgeServer([reply(completion("garbage")), reply(completion("GRADE: C"))]) as server:
        answer = ask(patient(openai(server.url), cache=tmp_path), question(form=GRADES))

    assert (answer.verdict, answer.tries) == ("C", 2)
    with JudgeServer([reply(completion("garbage"))]) as server:
        judge = patient(openai(server.url), cache=tmp_path)
        for _ in range(2):
            with pytest.raises(JudgeUnreadable):
                ask(judge, question("again", form=GRADES))

    assert len(server.requests) == 4


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b"[]", b"null", b'{"format": 1}', b"\xff", b"[" * 100_000],
)
def test_damaged_entry_counts_as_absent(tmp_path: Path, damage: bytes) -> None:
    with JudgeServer([counting]) as server:
        judge = patient(openai(server.url), cache=tmp_path)
        ask(judge)
        (entry,) = tmp_path.rglob("*.json")
        whole = entry.read_bytes()
        entry.write_bytes(damage)

        assert not ask(judge).cached
        entry.write_bytes(whole.replace(b"answer 0", b"answer 9"))
        assert not ask(judge).cached


def test_writers_at_once_leave_a_whole_entry(tmp_path: Path) -> None:
    cache = ReplyCache(tmp_path)
    key = "sha256:" + "0" * 64

    def write(number: int) -> None:
        cache.put(key, JudgeReply(text=str(number) * 100_000))
        found = cache.get(key)
        assert found is not None
        assert len(set(found.text)) == 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, [number % 10 for number in range(64)]))
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


def test_cache_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("no directory")
    with JudgeServer([counting]) as server:
        judge = patient(openai(server.url), cache=place)

        assert [ask(judge).cached, ask(judge).cached] == [False, False]


@pytest.mark.parametrize("widths", [{"max_in_flight": 3}, {"provider_max_in_flight": 3}])
def test_no_more_questions_are_in_flight_than_allowed(widths: dict[str, int]) -> None:
    full = threading.Barrier(3)
    lock = threading.Lock()
    now, most = 0, 0

    def act(exchange: Exchange) -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        full.wait(20)
        with lock:
            now -= 1
        reply(completion("yes"))(exchange)

    limits = Limits()
    with JudgeServer([act]) as server, ThreadPoolExecutor(12) as pool:
        table: dict[str, Any] = dict(widths)
        judges = [patient(openai(server.url), limits=limits, **table) for _ in range(2)]

        def asked(number: int) -> str:
            return ask(judges[number % 2], question(str(number))).text

        assert list(pool.map(asked, range(12))) == ["yes"] * 12

    assert most == 3


def test_waiting_for_a_place_ends_with_the_deadline() -> None:
    limits = Limits()
    judge = patient(CannedJudge(), limits=limits, max_in_flight=1)

    class Held(CannedJudge):
        def ask(self, request: Any, deadline: Any) -> JudgeReply:
            with pytest.raises(JudgeUnavailable, match="in flight"):
                ask(judge, seconds=0.05)
            return super().ask(request, deadline)

    assert ask(patient(Held(), limits=limits, max_in_flight=1)).text == "yes"


def test_secret_in_a_reply_or_an_error_is_hidden(tmp_path: Path) -> None:
    secrets = ("sk-test-123456",)
    canned = CannedJudge(CannedConfig(answer="the key is sk-test-123456"))

    class Broken(CannedJudge):
        def ask(self, request: Any, deadline: Any) -> JudgeReply:
            raise ValueError("sk-test-123456")

    assert ask(patient(canned, secrets=secrets, cache=tmp_path)).text == "the key is [REDACTED]"
    assert not [path for path in tmp_path.rglob("*.json") if b"sk-test" in path.read_bytes()]
    with pytest.raises(JudgeError, match="ValueError") as caught:
        ask(patient(Broken(), secrets=secrets))
    assert "sk-test" not in repr(caught.value)


def test_refusal_is_not_asked_again() -> None:
    canned = CannedJudge(CannedConfig(finish="refusal"))

    with pytest.raises(JudgeRefused):
        ask(patient(canned))

    assert len(canned.asked) == 1


def members(*answers: str | int) -> dict[str, Any]:
    configs = [CannedConfig(answer=answer) if isinstance(answer, str) else CannedConfig(status=answer) for answer in answers]
    return {f"judges.m{number}": patient(CannedJudge(config)) for number, config in enumerate(configs)}


def panel(*answers: str | int, quorum: int | None = None) -> Any:
    made = members(*answers)
    names = [name.removeprefix("judges.") for name in made]
    return patient(PanelJudge(PanelConfig(members=names, quorum=quorum), FakeHost(made)))


def test_panel_gives_the_majority_and_says_who_disagreed() -> None:
    answer = ask(panel('{"label": "a", "why": "x"}', '{"label": "b"}', '{"label": "a"}'), question(form=LABEL))

    assert answer.verdict["label"] == "a"
    assert answer.details["agreed"] is False
    assert [vote["said"] for vote in answer.details["votes"]] == [{"label": "a"}, {"label": "b"}, {"label": "a"}]


def test_panel_without_quorum_or_majority_gives_no_verdict() -> None:
    with pytest.raises(JudgeUnavailable) as short:
        ask(panel('{"label": "a"}', 500, 500, quorum=3), question(form=LABEL))
    with pytest.raises(JudgeUnreadable) as split:
        ask(panel('{"label": "a"}', '{"label": "b"}'), question(form=LABEL))
    with pytest.raises(JudgeUnreadable) as garbage:
        ask(panel('{"label": "a"}', "?", "?"), question(form=LABEL))

    kinds = [caught.value.kind for caught in (short, split, garbage)]
    assert kinds == ["judge_no_quorum", "judge_no_majority", "judge_no_quorum"]


def test_panel_of_scores_gives_the_median() -> None:
    answer = ask(panel('{"score": 0.1}', '{"score": 0.9}', '{"score": 0.6}'), question(form=SCORE))

    assert answer.verdict["score"] == 0.6


def test_tally_knows_no_cost_as_soon_as_one_reply_does_not_say() -> None:
    tally = Tally()
    assert tally.record() is None
    tally.answered(JudgeReply(text="a", model="m1", usage=Usage(input=3, output=1), cost=0.5))
    tally.answered(JudgeReply(text="b", model="m1", usage=Usage(input=9, output=9), cost=9.0, cached=True))
    known = tally.record()
    tally.failed(0.25)
    failed = tally.record()
    tally.answered(JudgeReply(text="c", model="m1"))
    unknown = tally.record()

    assert known is not None
    assert unknown is not None
    assert failed is not None
    assert (known["calls"], known["cached"], known["cost"], known["model"]) == (2, 1, 0.5, "m1")
    assert (known["usage"]["input"], known["usage"]["reasoning"], failed["cost"]) == (3, None, 0.75)
    assert (unknown["calls"], unknown["failed"], unknown["cost"], unknown["usage"]["input"]) == (4, 1, None, None)
