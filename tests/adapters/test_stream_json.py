"""The stream-JSON parser reproduces published totals, and counts nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.interfaces import JsonLinesReader
from evalwright.model import Total, Transcript, Usage
from evalwright.testing import FakeHost
from evalwright_adapters.stream_json import StreamJsonParser

LASTLIGHT = Path(__file__).parent.parent / "data" / "lastlight"


def parsed(*events: dict[str, Any] | bytes) -> Transcript:
    with FakeHost() as host:
        lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
        return StreamJsonParser(None, host).parse(b"\n".join(lines))


def read(name: str) -> Transcript:
    return parsed((LASTLIGHT / name).read_bytes())


def message(identifier: str | None = None, *blocks: dict[str, Any], tokens: int = 10, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": tokens, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2}
    named = {"id": identifier} if identifier else {}
    return {"type": "assistant", "message": {**named, "model": "m", "content": list(blocks), "usage": usage}, **more}


def call(identifier: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": identifier, "name": "Bash", "input": {}}


def answer(identifier: str, *, failed: bool) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": identifier, "content": "", "is_error": failed}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def test_triage_transcript_tells_the_published_totals() -> None:
    found = read("triage.jsonl")
    usage = found.usage
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output) == (51, 35677, 14752, 2510)
    assert usage.cost == pytest.approx(0.0346087, abs=1e-12)
    assert (usage.turns, usage.tool_calls, usage.tool_errors) == (4, 12, 0)
    assert (usage.total_input, usage.total) == (51 + 50429, 51 + 50429 + 2510)
    assert found.model == "anthropic/claude-haiku-4-5"
    assert (found.final_text or "").startswith("**Triage Complete**")


def test_transcript_of_five_steps_tells_the_published_totals() -> None:
    usage = read("code-fix.jsonl").usage
    assert usage.cost == pytest.approx(0.27458265, abs=1e-12)
    assert (usage.input, (usage.cache_read or 0) + (usage.cache_write or 0), usage.output) == (867, 1131748, 18750)
    assert (usage.turns, usage.tool_calls, usage.tool_errors) == (76, 85, 9)


def test_ten_transcripts_add_up_to_the_published_totals() -> None:
    found = [parsed(line).usage for line in (LASTLIGHT / "pr-review-results.jsonl").read_bytes().splitlines()]
    assert len(found) == 10
    assert Total.over(usage.cost for usage in found).value == pytest.approx(3.2395202, abs=1e-12)
    assert Total.over(usage.input for usage in found) == Total(414, 10, 10)
    cached = Total.over((usage.cache_read or 0) + (usage.cache_write or 0) for usage in found)
    assert (cached.value, Total.over(usage.output for usage in found).value) == (6440549, 100094)


def test_retried_turn_counts_as_the_agent_counts_it() -> None:
    usage = read("pr-review-1.jsonl").usage
    assert (usage.turns, usage.tool_calls, usage.tool_errors, usage.cost) == (26, 30, 3, 0.3832071)


@pytest.mark.parametrize("name", ["triage.jsonl", "code-fix.jsonl", "pr-review-1.jsonl"])
def test_messages_alone_tell_the_tokens_of_a_transcript_that_was_cut(name: str) -> None:
    lines = (LASTLIGHT / name).read_bytes().splitlines()
    cut = parsed(*[line for line in lines if b'"type":"result"' not in line.replace(b'": "', b'":"')]).usage
    whole = read(name).usage
    assert (cut.input, cut.output, cut.cache_read, cut.cache_write) == pytest.approx(
        (whole.input, whole.output, whole.cache_read, whole.cache_write), rel=0.05
    )
    assert (cut.cost, cut.tool_calls, cut.tool_errors) == (None, whole.tool_calls, whole.tool_errors)


def test_message_that_comes_in_blocks_is_counted_once() -> None:
    text = {"type": "text", "text": "I look."}
    found = parsed(message("msg_1", text), message("msg_1", call("t1")), message("msg_1", call("t1")), message("msg_2"))
    assert (found.usage.turns, found.usage.tool_calls, found.usage.output, found.usage.cache_read) == (2, 1, 20, 10)
    assert found.final_text == "I look."


def test_messages_without_ids_are_counted_one_by_one() -> None:
    assert parsed(message(), message()).usage.output == 20


def test_event_that_is_written_twice_is_counted_once() -> None:
    result = {"type": "result", "uuid": "u1", "num_turns": 3, "total_cost_usd": 0.5, "usage": {"input_tokens": 7}}
    usage = parsed(result, result).usage
    assert (usage.turns, usage.cost, usage.input) == (3, 0.5, 7)


def test_message_repeated_after_its_result_is_not_counted_again() -> None:
    result = {"type": "result", "num_turns": 1, "total_cost_usd": 0.5, "usage": message()["message"]["usage"]}
    assert parsed(message("msg_1"), result, message("msg_1")).usage.output == 10


def test_tool_error_that_is_told_twice_is_counted_once() -> None:
    events = [message("m1", call("t1"), call("t2")), answer("t1", failed=True), answer("t1", failed=True)]
    usage = parsed(*events, answer("t2", failed=False)).usage
    assert (usage.tool_calls, usage.tool_errors) == (2, 1)


def test_tokens_of_all_models_count_where_the_result_tells_them() -> None:
    big = {"inputTokens": 100, "outputTokens": 20, "cacheReadInputTokens": 30, "cacheCreationInputTokens": 0, "costUSD": 0.2}
    small = {"inputTokens": 5, "outputTokens": 1, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "costUSD": 0.01}
    usage = {"input_tokens": 100, "output_tokens": 20}
    result = {"type": "result", "num_turns": 2, "total_cost_usd": 0.21, "usage": usage, "modelUsage": {"a": big, "b": small}}
    found = parsed(result).usage
    assert (found.input, found.output, found.cache_read, found.cost) == (105, 21, 30, 0.21)


def test_work_after_the_last_result_is_added_and_its_cost_is_unknown() -> None:
    result = {"type": "result", "num_turns": 1, "total_cost_usd": 0.5, "usage": message()["message"]["usage"]}
    usage = parsed(message("m1"), result, message("m2", tokens=4)).usage
    assert (usage.output, usage.turns, usage.cost) == (14, 2, None)


def test_subagent_is_billed_but_is_no_turn_of_the_agent() -> None:
    said = {"type": "text", "text": "mine"}
    other = {"type": "text", "text": "not mine"}
    found = parsed(message("m1", said), message("m2", other, parent_tool_use_id="t1"))
    assert (found.usage.turns, found.usage.output, found.final_text) == (1, 20, "mine")


def test_message_made_up_by_the_tool_itself_is_not_counted() -> None:
    made_up = message("m2")
    made_up["message"]["model"] = "<synthetic>"
    found = parsed(message("m1"), made_up)
    assert (found.usage.turns, found.model) == (1, "m")


def test_two_models_leave_the_model_unknown() -> None:
    other = message("m2")
    other["message"]["model"] = "n"
    assert parsed(message("m1"), other).model is None


def test_missing_token_count_is_unknown_and_never_zero() -> None:
    bare: dict[str, Any] = {"type": "assistant", "message": {"id": "m1", "content": [], "usage": {"output_tokens": 5}}}
    usage = parsed(bare).usage
    assert (usage.input, usage.output, usage.cost) == (None, 5, None)


def test_torn_last_line_is_left_out_and_a_whole_one_without_its_end_counts() -> None:
    whole = json.dumps(message("m2")).encode()
    assert parsed(message("m1"), whole).usage.output == 20
    assert parsed(message("m1"), whole[:-2]).usage.output == 10


def test_line_beyond_the_bound_is_left_out_and_the_next_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JsonLinesReader, "max_line_bytes", 1000)
    huge = message("m1", {"type": "text", "text": "x" * 2000})
    assert parsed(huge, message("m2")).usage.output == 10


@pytest.mark.parametrize("strange", [-1, 1.5, True, "7", None, [], {}, float("inf"), 10**400])
def test_strange_count_is_unknown(strange: Any) -> None:
    event = message("m1")
    event["message"]["usage"]["input_tokens"] = strange
    result = {"type": "result", "num_turns": strange, "total_cost_usd": None if isinstance(strange, float) else strange}
    usage = parsed(event).usage
    assert (usage.input, usage.output) == (None, 10)
    assert parsed(result).usage.turns is None


def test_transcript_of_other_events_tells_nothing() -> None:
    assert parsed({"type": "system", "subtype": "init"}, {"role": "assistant"}, b"plain text").usage == Usage()
