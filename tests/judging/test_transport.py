"""What a server may do to a judge: every kind of trouble has its own error, ends, and shows no key."""

from __future__ import annotations

import json
import socket
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from tests.judging.asking import ask, openai, patient, question
from tests.judging.server import Act, JudgeServer, completion, drip, raw, reply, silence

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable

OK = reply(completion("yes"))
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
QUICK: dict[str, Any] = {"call_timeout_seconds": 0.4, "read_timeout_seconds": 0.2}


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("1", 1.0, 1.0),
        ("0", 0.5, 0.5),
        ("soon", 0.5, 0.5),
        ("-5", 0.5, 0.5),
        ("nan", 0.5, 0.5),
        ("inf", 0.5, 0.5),
        (-86400, 0.5, 0.5),
        (60, 1.0, 61.0),
    ],
)
def test_overload_is_waited_out_as_long_as_the_server_asks(value: str | int, least: float, most: float) -> None:
    """A number stands for an HTTP date so many seconds from now."""
    pauses: list[float] = []
    if isinstance(value, int):
        value = format_datetime(datetime.now(UTC) + timedelta(seconds=value), usegmt=True)
    with JudgeServer([reply({}, 429, {"retry-after": value}), OK]) as server:
        answer = ask(patient(openai(server.url), pauses=pauses), seconds=100)

    assert (answer.text, answer.tries, len(server.requests)) == ("yes", 2, 2)
    assert least <= pauses[0] <= most


def test_wait_beyond_the_deadline_is_not_begun() -> None:
    pauses: list[float] = []
    with JudgeServer([reply({}, 429, {"retry-after": "86400"})]) as server, pytest.raises(JudgeUnavailable) as caught:
        ask(patient(openai(server.url), pauses=pauses))

    assert (caught.value.kind, pauses, len(server.requests)) == ("judge_rate_limited", [], 1)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
def test_trouble_without_end_is_given_up_after_four_calls(status: int) -> None:
    pauses: list[float] = []
    with JudgeServer([reply({}, status)]) as server, pytest.raises(JudgeUnavailable, match="4 tries"):
        ask(patient(openai(server.url), pauses=pauses))

    assert (len(server.requests), pauses) == (4, [0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (silence(), "judge_timeout"),
        (silence(HEAD + b"content-length: 100\r\n\r\n"), "judge_timeout"),
        (silence(HEAD + b"content-length: 100\r\n\r\n{"), "judge_timeout"),
        (drip(HEAD, b"x-filler: 1\r\n"), "judge_timeout"),
        (drip(HEAD + b"content-length: 100000\r\n\r\n", b" "), "judge_timeout"),
        (drip(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"), "judge_timeout"),
        (raw(b""), "judge_unavailable"),
        (raw(b"garbage\r\n\r\n"), "judge_unavailable"),
        (raw(HEAD + b"content-length: 100\r\n\r\n{}"), "judge_unavailable"),
        (raw(HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n"), "judge_unavailable"),
        (raw(HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\n{}"), "judge_unavailable"),
        (raw(HEAD + b"content-length: ten\r\n\r\n{}"), "judge_unavailable"),
    ],
    ids=[
        "silence",
        "no body",
        "half a body",
        "endless headers",
        "endless body",
        "endless chunks",
        "nothing",
        "no HTTP",
        "short body",
        "garbage chunk",
        "short chunk",
        "odd length",
    ],
)
def test_silence_drip_and_broken_bodies_end_as_unavailable(act: Act, kind: str) -> None:
    with JudgeServer([act]) as server, pytest.raises(JudgeUnavailable) as caught:
        ask(patient(openai(server.url, **QUICK), retries=1))

    assert (caught.value.kind, len(server.requests)) == (kind, 2)


def test_connection_that_nobody_accepts_is_unavailable() -> None:
    with JudgeServer([OK]) as server:
        url = server.url

    with pytest.raises(JudgeUnavailable, match="4 tries"):
        ask(patient(openai(url)))


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (reply(b"<html>{}</html>", kind="text/html"), JudgeUnreadable),
        (reply(json.dumps(completion("yes")).encode(), kind="text/html"), JudgeUnreadable),
        (reply(b" " * (5 << 20)), JudgeUnreadable),
        (reply(b"[]"), JudgeUnreadable),
        (reply(b"\xff\xfe"), JudgeUnreadable),
        (reply(b"{" * 100_000), JudgeUnreadable),
        (reply(completion("yes"), headers={"content-encoding": "gzip"}), JudgeUnreadable),
        (reply(completion("yes", "length")), JudgeUnreadable),
        (reply(completion("yes", "content_filter")), JudgeRefused),
        (reply(completion(None)), JudgeUnreadable),
        (reply({"choices": []}), JudgeUnreadable),
        (reply({"choices": completion("yes")["choices"] * 2}), JudgeUnreadable),
        (reply({}, 401), JudgeError),
        (reply({}, 404), JudgeError),
        (reply({}, 400), JudgeError),
    ],
    ids=[
        "page",
        "JSON called page",
        "huge",
        "list",
        "not UTF-8",
        "deep",
        "gzip",
        "cut",
        "filtered",
        "no content",
        "no choice",
        "two choices",
        "401",
        "404",
        "400",
    ],
)
def test_answer_that_is_none_has_its_own_error(act: Act, error: type[JudgeError]) -> None:
    with JudgeServer([act]) as server, pytest.raises(JudgeError) as caught:
        ask(openai(server.url))

    assert type(caught.value) is error


def test_redirect_is_not_followed_and_the_key_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-test-123456")
    with JudgeServer([OK]) as elsewhere, JudgeServer([reply({}, 307, {"location": elsewhere.url})]) as server:
        with pytest.raises(JudgeError, match="points elsewhere"):
            ask(openai(server.url, api_key_env="JUDGE_KEY"))

        assert server.requests[0].headers["authorization"] == "Bearer sk-test-123456"
        assert elsewhere.requests == []


@pytest.mark.parametrize("status", [401, 422, 503])
def test_key_that_a_server_echoes_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-test-123456")
    echo = {"error": {"message": f"{'x' * 190}sk-test-123456"}}
    with JudgeServer([reply(echo, status)]) as server, pytest.raises(JudgeError) as caught:
        ask(openai(server.url, headers={"x-key": "Token ${JUDGE_KEY}"}))

    assert server.requests[0].headers["x-key"] == "Token sk-test-123456"
    assert "sk-test" not in f"{caught.value!r} {caught.value.hint} {caught.value.details}"


@pytest.mark.parametrize("key", ["sk-test\n123456", "sk-tést-123456"])
def test_key_that_is_no_header_is_named_and_not_shown(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("JUDGE_KEY", key)

    with JudgeServer([OK]) as server, pytest.raises(JudgeError, match="JUDGE_KEY") as caught:
        ask(openai(server.url, api_key_env="JUDGE_KEY"))

    assert "sk-t" not in repr(caught.value)


def test_missing_key_is_named_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_KEY", raising=False)

    with JudgeServer([OK]) as server:
        judge = openai(server.url, api_key_env="JUDGE_KEY")
        with pytest.raises(JudgeError, match="JUDGE_KEY is not set"):
            ask(judge)

        assert [problem.message for problem in judge.check("coordinator")] == ["JUDGE_KEY is not set"]
        assert server.requests == []


def test_parameters_that_a_server_refuses_are_dropped_once() -> None:
    def refuse(name: str) -> Act:
        return reply({"error": {"message": f"Unsupported parameter: '{name}'", "param": name}}, 400)

    with JudgeServer([refuse("temperature"), refuse("max_tokens"), OK]) as server:
        judge = openai(server.url, temperature=0.0, max_tokens=7)
        ask(judge)
        ask(judge)

        sent = [{key: body[key] for key in body if key.startswith(("temp", "max"))} for body in bodies(server)]
    assert sent == [
        {"temperature": 0.0, "max_tokens": 7},
        {"max_tokens": 7},
        {"max_completion_tokens": 7},
        {"max_completion_tokens": 7},
    ]


def test_further_keys_of_the_table_are_sent() -> None:
    with JudgeServer([OK]) as server:
        ask(openai(server.url, body={"seed": 7, "response_format": {"type": "json_object"}}))

        (sent,) = bodies(server)
    assert (sent["seed"], sent["response_format"], sent["model"]) == (7, {"type": "json_object"}, "m1")


@pytest.mark.parametrize("key", ["model", "messages", "stream"])
def test_keys_that_the_judge_itself_sends_are_refused(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        openai("http://127.0.0.1:1", body={key: 1})


def test_proxy_of_the_environment_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer([reply({}, 500)]) as proxy, JudgeServer([OK]) as server:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")

        assert ask(openai(server.url)).text == "yes"
        assert proxy.requests == []


def test_proxy_of_the_environment_is_asked_for_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    with JudgeServer([OK]) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)

        assert ask(openai("http://judge.invalid/v1")).text == "yes"
        assert proxy.requests[0].line.startswith("POST http://judge.invalid/v1/chat/completions")


def test_connections_are_kept_for_the_next_question() -> None:
    with JudgeServer([OK]) as server:
        judge = openai(server.url)
        for number in range(5):
            ask(judge, question(str(number)))

        assert len({exchange.socket for exchange in server.requests}) == 1


def test_head_and_body_of_a_small_question_come_as_one() -> None:
    answer = json.dumps(completion("yes")).encode()
    pieces: list[bytes] = []

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            pieces.append(connection.recv(1 << 16))
            connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(answer) + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        text = ask(openai(f"http://127.0.0.1:{listener.getsockname()[1]}")).text
        server.join()

    assert text == "yes"
    assert json.loads(pieces[0].partition(b"\r\n\r\n")[2])["model"] == "m1"


@pytest.mark.parametrize("size", [1 << 15, 1 << 16, 1 << 20])
def test_question_of_any_size_arrives_whole_and_so_does_the_next(size: int) -> None:
    with JudgeServer([OK]) as server:
        judge = openai(server.url)
        for text in ("x" * size, "small"):
            assert ask(judge, question(text)).text == "yes"

    assert [body["messages"][0]["content"] for body in bodies(server)] == ["x" * size, "small"]


def test_usage_counts_cached_tokens_once_and_price_makes_the_cost() -> None:
    usage = {"prompt_tokens": 20000, "completion_tokens": 1000, "prompt_tokens_details": {"cached_tokens": 16000}}
    price = {"input": 3.0, "output": 15.0, "cache_read": 0.3}
    with JudgeServer([reply(completion("yes", usage=usage))]) as server:
        answer = ask(openai(server.url, price=price))

    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.output) == (4000, 16000, 1000)
    assert answer.cost == pytest.approx(0.0318)


def bodies(server: JudgeServer) -> list[dict[str, Any]]:
    return [exchange.document for exchange in server.requests]
