"""Requests that two readers could take differently, or that are none: each is refused, and nothing reaches a server."""

from __future__ import annotations

import pytest
from tests.plugins.loopback_servers import SECONDS, Wire, answering, serving
from tests.plugins.test_network_proxy import dial, get, proxying

GET = "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n"
POST = "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\n"
SECOND = "0\r\n\r\nGET http://{host}/second HTTP/1.1\r\nHost: {host}\r\n\r\n"


def test_the_well_formed_request_next_to_these_passes() -> None:
    with serving(answering()) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send((GET + "X: a b\t c\xe9\r\nY:\r\n\r\n").format(host=server.host).encode("latin-1"))
        assert client.head().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("status", "request_text"),
    [
        (400, POST + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
        (400, POST + "Content-Length: 5, 5\r\n\r\nhello"),
        (400, POST + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + SECOND),
        (400, POST + "Content-Length: +5\r\n\r\nhello"),
        (400, POST + "Content-Length: 0x5\r\n\r\nhello"),
        (400, POST + "Content-Length:\r\n\r\nhello"),
        (400, POST + "Content-Length : 5\r\n\r\nhello"),
        (501, POST + "Transfer-Encoding: chunked, identity\r\n\r\n" + SECOND),
        (501, POST + "Transfer-Encoding: identity\r\n\r\n" + SECOND),
        (501, POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + SECOND),
        (501, POST + "Transfer-Encoding: xchunked\r\n\r\n" + SECOND),
        (400, POST + "Transfer-Encoding: \x0bchunked\r\n\r\n" + SECOND),
        (400, POST.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n\r\n" + SECOND),
        (400, GET + "X: a\r\n folded\r\n\r\n"),
        (400, GET + "X: a\r\n\tfolded\r\n\r\n"),
        (400, "GET http://{host}/ HTTP/1.1\nHost: {host}\n\n"),
        (400, GET + "X: a\nY: b\r\n\r\n"),
        (400, GET + "X: a\rY: b\r\n\r\n"),
        (400, GET + "X: a\0b\r\n\r\n"),
        (400, GET + "X\0: a\r\n\r\n"),
        (400, GET + ": a\r\n\r\n"),
        (400, GET + "no colon\r\n\r\n"),
        (400, GET + "Host: {host}\r\n\r\n"),
        (400, GET + "Host: elsewhere.example.com\r\n\r\n"),
        (400, "GET http://{host}/ HTTP/1.1\r\nHost: elsewhere.example.com\r\n\r\n"),
        (400, "GET http://{host}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        (400, "GET http://{host}/ HTTP/1.1\r\n\r\n"),
        (400, "\r\n" + GET + "\r\n"),
        (400, " " + GET + "\r\n"),
        (400, "GET  http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://{host}/a b HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://{host}/\x7f HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://{host}/ HTTP/2.0\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://{host}/\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://{host}/#f HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://u:p@{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET http:///x HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET http://{host}x/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET https://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET ftp://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (405, "TRACE http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "CONNECT {host} HTTP/1.1\r\nHost: elsewhere.example.com\r\n\r\n"),
        (400, "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1\r\n\r\nx"),
        (400, "CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
        (400, "CONNECT 127.0.0.1:0 HTTP/1.1\r\nHost: 127.0.0.1:0\r\n\r\n"),
        (400, "CONNECT 127.0.0.1:99999 HTTP/1.1\r\nHost: 127.0.0.1:99999\r\n\r\n"),
        (400, "CONNECT http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        (400, "CONNECT 127.1:80 HTTP/1.1\r\nHost: 127.1:80\r\n\r\n"),
        (400, "CONNECT 2130706433:80 HTTP/1.1\r\nHost: 2130706433:80\r\n\r\n"),
        (403, "CONNECT [::ffff:127.0.0.1]:80 HTTP/1.1\r\nHost: [::ffff:127.0.0.1]:80\r\n\r\n"),
        (431, GET + "X: " + "a" * 40_000 + "\r\n\r\n"),
        (431, GET + "X: 1\r\n" * 300 + "\r\n"),
        (431, GET + ("X: " + "a" * 1000 + "\r\n") * 40 + "\r\n"),
        (431, "GET http://{host}/" + "a" * 100_000 + " HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    ],
)
def test_request_is_refused_and_the_connection_closed(status: int, request_text: str) -> None:
    with serving(answering()) as server:
        with proxying(server.host) as (proxy, port), dial(port) as client:
            client.send(request_text.replace("{host}", server.host).encode("latin-1"))
            answer = client.rest()
        assert server.accepted == []

    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert [entry["allowed"] for entry in proxy.record()] == [False]
    assert proxy.record()[0]["reason"]


@pytest.mark.parametrize(
    "chunks",
    [
        "5\nhello\r\n0\r\n\r\n",
        "g\r\nhello\r\n",
        "-5\r\nhello\r\n",
        "5\r\nhelloXX0\r\n\r\n",
        "\r\n",
        " 5\r\nhello\r\n",
        "0x5\r\nhello\r\n",
    ],
)
def test_chunked_body_that_is_malformed_is_refused(chunks: str) -> None:
    def handler(wire: Wire) -> None:
        wire.rest()

    with serving(handler) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send((POST + "Transfer-Encoding: chunked\r\n\r\n" + chunks).replace("{host}", server.host).encode())
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 400 ")


def test_request_that_breaks_off_reaches_the_server_as_broken() -> None:
    received: list[bytes] = []

    def handler(wire: Wire) -> None:
        received.append(wire.rest())

    with serving(handler) as server, proxying(server.host) as (_, port):
        with dial(port) as client:
            client.send((POST + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").replace("{host}", server.host).encode())
        for thread in server.threads:
            thread.join(SECONDS)

    assert not any(part.endswith(b"0\r\n\r\n") for part in received)


def test_what_follows_a_refused_request_is_not_read_as_another() -> None:
    with serving(answering()) as server:
        with proxying(server.host) as (_, port), dial(port) as client:
            client.send(get("elsewhere.example.com") + get(server.host))
            answer = client.rest()
        assert server.accepted == []

    assert answer.count(b"HTTP/1.1 ") == 1
