"""The proxy of a trial against real servers: what passes, how it passes, what is refused, and what is on record."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.loopback_servers import OK, SECONDS, Server, Wire, answering, serving

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline
from evalwright.testing import soon
from evalwright_plugins.network import EgressProxy, ProxyLimits, proxy_environment

Require = Callable[[str], None]


@contextlib.contextmanager
def proxying(*allow: str, **options: Any) -> Generator[tuple[EgressProxy, int]]:
    """Serve a proxy on a port of loopback; yield both."""
    proxy = EgressProxy(allow, **options)
    listener = socket.create_server(("127.0.0.1", 0))
    port: int = listener.getsockname()[1]
    proxy.serve(listener)
    try:
        yield proxy, port
    finally:
        proxy.close(Deadline.after(SECONDS))


def dial(port: int) -> Wire:
    return Wire(socket.create_connection(("127.0.0.1", port), timeout=SECONDS))


def resolving(*answers: list[str]) -> Callable[[str, int], list[str]]:
    """Return a resolver with one answer after the other; asked once more it fails."""
    left: Iterator[list[str]] = iter(answers)
    return lambda host, port: next(left)  # noqa: ARG005 (a resolver's arguments)


def get(host: str, path: str = "/", *fields: str) -> bytes:
    lines = [f"GET http://{host}{path} HTTP/1.1", f"Host: {host}", *fields]
    return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()


def decisions(proxy: EgressProxy) -> list[tuple[Any, ...]]:
    return [(entry["host"], entry["port"], entry["allowed"], entry["count"]) for entry in proxy.record()]


def test_plain_request_reaches_a_listed_host_without_hop_by_hop_fields() -> None:
    seen: list[bytes] = []
    with serving(answering(seen=seen)) as server, proxying(server.host) as (proxy, port), dial(port) as client:
        client.send(get(server.host, "/a?b=c", "Proxy-Connection: keep-alive", "X-Own: 1", "Connection: x-drop", "X-Drop: 2"))
        answer = client.head()

    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert seen[0].split(b"\r\n")[0] == b"GET /a?b=c HTTP/1.1"
    assert f"Host: {server.host}".encode() in seen[0]
    assert b"X-Own: 1" in seen[0]
    assert b"Proxy-Connection" not in seen[0]
    assert b"X-Drop" not in seen[0]
    assert decisions(proxy) == [("127.0.0.1", server.port, True, 1)]


def test_host_that_is_not_listed_is_refused_with_the_cure_and_recorded() -> None:
    with proxying("api.example.com") as (proxy, port), dial(port) as client:
        client.send(get("other.example.com"))
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert b"other.example.com:80 is not in the allow-list" in answer
    assert b'add "other.example.com" to "allow"' in answer
    entry = proxy.record()[0]
    assert (entry["host"], entry["port"], entry["allowed"]) == ("other.example.com", 80, False)
    assert entry["reason"] == "other.example.com:80 is not in the allow-list"


def test_tunnel_to_a_host_that_is_not_listed_is_refused_with_the_cure() -> None:
    with proxying("api.example.com") as (proxy, port), dial(port) as client:
        client.send(b"CONNECT api.example.com:22 HTTP/1.1\r\nHost: api.example.com:22\r\n\r\n")
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b'add "api.example.com:22" to "allow"' in answer
    assert decisions(proxy) == [("api.example.com", 22, False, 1)]


def test_tunnel_carries_bytes_both_ways_and_each_half_closes_by_itself() -> None:
    def handler(wire: Wire) -> None:
        assert wire.rest() == b"question" * 50_000
        wire.send(b"answer" * 50_000)

    with serving(handler) as server, proxying(server.host) as (proxy, port), dial(port) as client:
        client.send(f"CONNECT {server.host} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        assert client.head() == b"HTTP/1.1 200 Connection established\r\n\r\n"
        client.send(b"question" * 50_000)
        client.socket.shutdown(socket.SHUT_WR)
        assert client.rest() == b"answer" * 50_000

    entry = proxy.record()[0]
    assert (entry["bytes_up"], entry["bytes_down"]) == (400_000, 300_000)


def test_requests_of_one_connection_are_counted_under_one_entry() -> None:
    with serving(answering()) as server, proxying(server.host) as (proxy, port), dial(port) as client:
        for _ in range(3):
            client.send(get(server.host))
            client.head()
            assert client.exactly(2) == b"ok"

    assert decisions(proxy) == [("127.0.0.1", server.port, True, 3)]


def test_response_streams_while_the_server_still_writes() -> None:
    acknowledged = threading.Event()

    def handler(wire: Wire) -> None:
        wire.head()
        wire.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"
        )
        assert acknowledged.wait(SECONDS)
        wire.send(b"9\r\ndata: 2\n\n\r\n0\r\n\r\n")

    with serving(handler) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send(get(server.host))
        assert b"Transfer-Encoding: chunked" in client.head()
        assert client.until(b"\n\n\r\n") == b"9\r\ndata: 1\n\n\r\n"
        acknowledged.set()
        assert client.until(b"0\r\n\r\n") == b"9\r\ndata: 2\n\n\r\n0\r\n\r\n"


def test_request_streams_while_the_client_still_writes() -> None:
    acknowledged = threading.Event()

    def handler(wire: Wire) -> None:
        assert b"Transfer-Encoding: chunked" in wire.head()
        assert wire.until(b"one\r\n") == b"3\r\none\r\n"
        acknowledged.set()
        assert wire.until(b"0\r\n\r\n") == b"3\r\ntwo\r\n0\r\n\r\n"
        wire.send(OK)

    with serving(handler) as server, proxying(server.host) as (_, port), dial(port) as client:
        head = f"POST http://{server.host}/ HTTP/1.1\r\nHost: {server.host}\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head.encode() + b"3;x=y\r\none\r\n")
        assert acknowledged.wait(SECONDS)
        client.send(b"3\r\ntwo\r\n0\r\nTrailer: gone\r\n\r\n")
        assert client.head().startswith(b"HTTP/1.1 200 ")
        assert client.exactly(2) == b"ok"


def test_body_with_a_length_passes_in_full_and_the_connection_goes_on() -> None:
    body = os.urandom(300_000)

    def handler(wire: Wire) -> None:
        head = wire.head()
        size = 0 if b"Content-Length" not in head else len(body)
        received = wire.exactly(size)
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(received), received))

    with serving(handler) as server, proxying(server.host) as (_, port), dial(port) as client:
        head = f"POST http://{server.host}/ HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: {len(body)}\r\n\r\n"
        client.send(head.encode() + body)
        assert b"Connection: keep-alive" in client.head()
        assert client.exactly(len(body)) == body
        client.send(get(server.host))
        assert b"Content-Length: 0" in client.head()


def test_client_that_expects_100_continue_waits_for_the_servers_word() -> None:
    def handler(wire: Wire) -> None:
        assert b"Expect: 100-continue" in wire.head()
        wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert wire.exactly(4) == b"body"
        wire.send(OK)

    with serving(handler) as server, proxying(server.host) as (_, port), dial(port) as client:
        head = (
            f"POST http://{server.host}/ HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        )
        client.send(head.encode())
        assert client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"body")
        assert client.head().startswith(b"HTTP/1.1 200 ")


def test_server_that_declines_a_body_is_heard_and_the_connection_ends() -> None:
    with (
        serving(answering(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")) as server,
        proxying(server.host) as (_, port),
        dial(port) as client,
    ):
        head = (
            f"POST http://{server.host}/ HTTP/1.1\r\nHost: {server.host}\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        )
        client.send(head.encode())
        assert client.head().startswith(b"HTTP/1.1 413 ")
        assert client.rest() == b""


@pytest.mark.parametrize("response", [b"HTTP/1.1 200 OK\r\n\r\nto the end", b"HTTP/1.0 200 OK\r\n\r\nto the end"])
def test_response_that_ends_with_its_connection_is_chunked_for_the_client(response: bytes) -> None:
    with serving(answering(response)) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send(get(server.host))
        assert b"Transfer-Encoding: chunked" in client.head()
        assert client.until(b"0\r\n\r\n").split(b"\r\n", 1)[1].startswith(b"to the end")
        client.send(get(server.host))
        client.head()


def test_http_1_0_client_gets_no_chunks_and_no_interim_response() -> None:
    response = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nplain\r\n0\r\n\r\n"
    with serving(answering(response)) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send(f"GET http://{server.host}/ HTTP/1.0\r\n\r\n".encode())
        head, _, body = client.rest().partition(b"\r\n\r\n")

    assert head.startswith(b"HTTP/1.1 200 OK")
    assert b"chunked" not in head
    assert body == b"plain"


def test_response_to_head_has_a_length_and_no_body() -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    with serving(answering(response)) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send(get(server.host).replace(b"GET", b"HEAD"))
        assert b"Content-Length: 5000" in client.head()
        client.send(get(server.host).replace(b"GET", b"HEAD"))
        assert b"Content-Length: 5000" in client.head()


@pytest.mark.parametrize(
    "response",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"",
    ],
)
def test_answer_that_cannot_be_read_is_a_bad_gateway_and_on_record(response: bytes) -> None:
    with serving(answering(response)) as server, proxying(server.host) as (proxy, port), dial(port) as client:
        client.send(get(server.host))
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert proxy.record()[0]["reason"]


@pytest.mark.parametrize("framing", ["Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n", "Content-Length: 9\r\n\r\nfirst"])
def test_response_that_breaks_off_is_not_completed_for_the_client(framing: str) -> None:
    response = f"HTTP/1.1 200 OK\r\n{framing}".encode()
    with serving(answering(response)) as server, proxying(server.host) as (proxy, port), dial(port) as client:
        client.send(get(server.host))
        answer = client.rest()

    assert not answer.endswith(b"0\r\n\r\n")
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert proxy.record()[0]["reason"]


def test_host_that_nobody_listens_on_is_a_bad_gateway_and_on_record() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host = f"127.0.0.1:{taken.getsockname()[1]}"
    with proxying(host) as (proxy, port), dial(port) as client:
        client.send(get(host))
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 502 ")
    assert "cannot connect" in str(proxy.record()[0]["reason"])


def test_name_that_does_not_resolve_is_a_bad_gateway() -> None:
    def resolver(host: str, port: int) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with proxying("no.example.com", resolver=resolver) as (_, port), dial(port) as client:
        client.send(get("no.example.com"))
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"cannot resolve no.example.com" in answer


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "10.0.0.1", "64:ff9b::7f00:1"])
def test_listed_name_that_resolves_to_an_address_of_the_inside_is_refused(address: str) -> None:
    with serving(answering()) as server:
        name = f"rebound.example.com:{server.port}"
        with proxying(name, resolver=resolving([address])) as (proxy, port), dial(port) as client:
            client.send(get(name))
            answer = client.rest()
        assert server.accepted == []

    assert answer.startswith(b"HTTP/1.1 403 ")
    assert f"resolves to {address}".encode() in answer
    assert f'add "[{address}]:{server.port}"'.encode() in answer or f'add "{address}:{server.port}"'.encode() in answer
    assert decisions(proxy) == [("rebound.example.com", server.port, False, 1)]


@pytest.mark.parametrize("also", ["127.0.0.1", "localhost"])
def test_listed_name_may_resolve_to_loopback_when_that_is_listed_too(also: str) -> None:
    with serving(answering()) as server:
        name = f"inside.example.com:{server.port}"
        with (
            proxying(name, f"{also}:{server.port}", resolver=resolving(["10.0.0.1", "127.0.0.1"])) as (_, port),
            dial(port) as client,
        ):
            client.send(get(name))
            assert client.head().startswith(b"HTTP/1.1 200 ")


def test_name_is_resolved_once_so_that_what_was_checked_is_what_is_connected_to() -> None:
    answers = [["127.0.0.1"], ["10.0.0.1"]]
    with serving(answering()) as server:
        name = f"flip.example.com:{server.port}"
        allow = (name, f"127.0.0.1:{server.port}")
        with proxying(*allow, resolver=resolving(*answers)) as (_, port), dial(port) as client:
            client.send(get(name, "/", "Connection: close"))
            assert client.rest().startswith(b"HTTP/1.1 200 ")


def test_websocket_is_refused_with_advice() -> None:
    with serving(answering()) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send(get(server.host, "/", "Connection: Upgrade", "Upgrade: websocket"))
        answer = client.rest()

    assert answer.startswith(b"HTTP/1.1 501 ")
    assert b"CONNECT" in answer


def test_other_upgrades_are_left_out() -> None:
    seen: list[bytes] = []
    with serving(answering(seen=seen)) as server, proxying(server.host) as (_, port), dial(port) as client:
        client.send(get(server.host, "/", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"))
        assert client.head().startswith(b"HTTP/1.1 200 ")

    assert b"h2c" not in seen[0]


def test_connections_beyond_the_limit_are_refused_and_ended_ones_make_room() -> None:
    with serving(answering()) as server, proxying(server.host, limits=ProxyLimits(connections=1)) as (_, port):
        with dial(port) as first:
            first.send(get(server.host))
            first.head()
            first.exactly(2)
            with dial(port) as second:
                assert second.rest().startswith(b"HTTP/1.1 503 ")
            first.send(get(server.host, "/", "Connection: close"))
            first.rest()
        assert any(accepted_now(port, server) for _ in range(1000))


def accepted_now(port: int, server: Server) -> bool:
    with dial(port) as client:
        with contextlib.suppress(OSError):
            client.send(get(server.host, "/", "Connection: close"))
        return client.rest().startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", [b"", b"GET http://127.0.0.1/ HTTP/1.1\r\nX: "])
def test_head_that_does_not_arrive_in_time_ends_the_connection(sent: bytes) -> None:
    with proxying("127.0.0.1", limits=ProxyLimits(head_seconds=0.1)) as (proxy, port), dial(port) as client:
        client.send(sent)
        assert client.rest().startswith(b"HTTP/1.1 408 ")

    assert "in time" in str(proxy.record()[0]["reason"])


def test_several_listeners_and_connected_streams_share_one_record(tmp_path: Path) -> None:
    with serving(answering()) as server, proxying(server.host) as (proxy, _):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        proxy.serve(listener)
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(tmp_path / "s"))
        ours, theirs = socket.socketpair()
        proxy.handle(theirs)
        for wire in (Wire(client), Wire(ours)):
            with wire:
                wire.send(get(server.host))
                assert wire.head().startswith(b"HTTP/1.1 200 ")

    assert decisions(proxy) == [("127.0.0.1", server.port, True, 2)]


def test_listener_that_is_stopped_takes_no_more_connections() -> None:
    proxy = EgressProxy(["127.0.0.1"])
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    stop = proxy.serve(listener)
    dial(port).socket.close()
    stop()

    def refused() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED

    assert any(refused() for _ in range(10_000))
    proxy.close(Deadline.after(SECONDS))


@contextlib.contextmanager
def no_more_descriptors() -> Generator[None]:
    """Let this process open nothing more until the end of the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.ExitStack() as free:
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        while (filler := os.open("/dev/null", os.O_RDONLY)) < highest:
            free.callback(os.close, filler)
        free.callback(os.close, filler)
        resource.setrlimit(resource.RLIMIT_NOFILE, (filler + 1, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connection_that_finds_no_descriptor_free_is_served_later() -> None:
    with serving(answering()) as server, proxying(server.host) as (proxy, port), Wire(socket.socket()) as client:
        before = len(os.listdir("/proc/self/fd"))
        with dial(port) as first:
            first.send(get(server.host))
            first.head()
        assert soon(lambda: len(os.listdir("/proc/self/fd")) == before)  # or its descriptors become free in the block
        with no_more_descriptors():
            client.socket.connect(("127.0.0.1", port))
            assert soon(lambda: not proxy._server._listeners)
        client.send(get(server.host))
        assert client.head().startswith(b"HTTP/1.1 200 ")


def test_proxy_that_finds_no_descriptor_free_says_so_and_closes_what_it_was_given() -> None:
    script = (
        "import resource, socket\n"
        "from evalwright.errors import SandboxError\n"
        "from evalwright_plugins.network import EgressProxy\n"
        "proxy, listener = EgressProxy(['127.0.0.1']), socket.create_server(('127.0.0.1', 0))\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (listener.fileno() + 1, hard))\n"
        "try: proxy.serve(listener)\n"
        "except SandboxError as error: print(error, listener.fileno())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS)

    assert "cannot start: [Errno 24] Too many open files" in done.stdout, done.stderr
    assert done.stdout.endswith(" -1\n")


def test_close_ends_open_tunnels_and_leaves_no_thread_and_no_socket() -> None:
    before = set(threading.enumerate()), set(os.listdir("/proc/self/fd"))
    ended = threading.Event()

    def handler(wire: Wire) -> None:
        wire.rest()
        ended.set()

    with serving(handler) as server:
        with proxying(server.host) as (proxy, port):
            client = dial(port)
            client.send(f"CONNECT {server.host} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            client.head()
        assert ended.wait(SECONDS)
        assert client.rest() == b""
        client.socket.close()

    assert (set(threading.enumerate()), set(os.listdir("/proc/self/fd"))) == before
    with socket.create_server(("127.0.0.1", 0)) as late, pytest.raises(SandboxError, match="closed"):
        proxy.serve(late)


def test_record_is_bounded_and_loses_no_count() -> None:
    with proxying("api.example.com") as (proxy, port):
        for number in range(1005):
            with dial(port) as client:
                client.send(get(f"h{number}.example.org"))
                client.head()
        entries = proxy.record()

    assert len(entries) <= 1000
    assert entries[-1]["host"] == "(others)"
    assert "more than 1,000" in str(entries[-1]["reason"])
    assert sum(int(entry["count"] or 0) for entry in entries) == 1005


def test_curl_and_python_go_through_the_proxy_by_their_environment(require: Require) -> None:
    require("curl")
    seen: list[bytes] = []
    with serving(answering(seen=seen)) as server, proxying(server.host) as (proxy, port):
        environment = {"PATH": os.environ["PATH"], **proxy_environment(port, [server.host])}
        fetch = f"import urllib.request as r; print(r.urlopen('http://{server.host}/python').read().decode())"
        for command in (
            ["curl", "-sS", f"http://{server.host}/curl"],
            ["curl", "-sS", "--proxytunnel", f"http://{server.host}/tunnel"],
            [sys.executable, "-c", fetch],
        ):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True)
            assert done.stdout.strip() == "ok"
        refused = subprocess.run(
            ["curl", "-sS", "http://elsewhere.example.org/"], env=environment, capture_output=True, text=True
        )

    assert 'add "elsewhere.example.org"' in refused.stdout
    assert [head.split(b" ")[1] for head in seen] == [b"/curl", b"/tunnel", b"/python"]
    assert decisions(proxy) == [("127.0.0.1", server.port, True, 3), ("elsewhere.example.org", 80, False, 1)]
