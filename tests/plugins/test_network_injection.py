"""Credentials that the agent never holds: where they go, where they do not, and TLS on the way."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.plugins.loopback_servers import SECONDS, Wire, answering, make_certificate, serving
from tests.plugins.test_network_proxy import dial, get, proxying

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline
from evalwright_plugins.network import EgressProxy, Injection, ProxyLimits, proxy_environment

SECRET = "s3cret-5f0a9c77d1"
ENVIRONMENT = {"API_KEY": SECRET}
Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


@pytest.fixture
def contexts(tmp_path: Path, require: Callable[[str], None]) -> Contexts:
    """Return the TLS contexts of a server on loopback and of those who trust it."""
    require("openssl")
    return make_certificate(tmp_path, "127.0.0.1", "api.example.com")


def bearer(host: str, **more: Any) -> Injection:
    return Injection(host=host, header="Authorization", env="API_KEY", format="Bearer {value}", **more)


def speaking_for(proxy: EgressProxy, upstream: str) -> Wire:
    """Return a connection to a proxy that takes it as meant for one upstream."""
    ours, theirs = socket.socketpair()
    proxy.handle(theirs, upstream=upstream)
    return Wire(ours)


def test_plain_request_gets_the_header_and_goes_on_over_tls(contexts: Contexts) -> None:
    seen: list[bytes] = []
    with serving(answering(seen=seen), tls=contexts[0]) as server:
        options = {"inject": [bearer(server.host)], "environment": ENVIRONMENT, "tls": contexts[1]}
        with proxying(server.host, **options) as (proxy, port), dial(port) as client:
            client.send(get(server.host, "/v1", "Authorization: Bearer own", "authorization: again"))
            assert client.head().startswith(b"HTTP/1.1 200 ")

    assert [line for line in seen[0].split(b"\r\n") if line.lower().startswith(b"authorization")] == [
        f"Authorization: Bearer {SECRET}".encode()
    ]
    assert SECRET not in repr(proxy.record())


def test_named_host_is_spoken_to_at_the_port_of_https_under_its_own_name(contexts: Contexts) -> None:
    seen: list[bytes] = []
    asked: list[tuple[str, int]] = []
    with serving(answering(seen=seen), tls=contexts[0]) as server:

        def resolver(host: str, port: int) -> list[str]:
            asked.append((host, port))
            return ["127.0.0.1"]

        name = f"api.example.com:{server.port}"
        options = {"inject": [bearer(name)], "environment": ENVIRONMENT, "tls": contexts[1], "resolver": resolver}
        with proxying(name, server.host, **options) as (_, port), dial(port) as client:
            client.send(get(name))
            assert client.head().startswith(b"HTTP/1.1 200 ")
        with proxying("api.example.com", **options | {"inject": [bearer("api.example.com")]}) as (proxy, port):
            with dial(port) as client:
                client.send(get("api.example.com"))
                assert client.rest().startswith(b"HTTP/1.1 403 ")
            assert proxy.record()[0]["port"] == 443

    assert asked == [("api.example.com", server.port), ("api.example.com", 443)]
    assert f"Host: {name}".encode() in seen[0]


def test_certificate_of_another_host_or_authority_is_refused_and_gets_no_credential(tmp_path: Path, contexts: Contexts) -> None:
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other", "other.example.com")
    for trusted in (other[1], contexts[1]):
        seen: list[bytes] = []
        with serving(answering(seen=seen), tls=other[0]) as server:
            options = {"inject": [bearer(server.host)], "environment": ENVIRONMENT, "tls": trusted}
            with proxying(server.host, **options) as (proxy, port), dial(port) as client:
                client.send(get(server.host))
                answer = client.rest()
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert b"certificate" in answer
        assert SECRET.encode() not in answer
        assert SECRET not in repr(proxy.record())
        assert seen == []


def test_server_that_never_greets_is_given_up_and_holds_up_no_end(contexts: Contexts) -> None:
    arrived = threading.Semaphore(0)

    def handler(wire: Wire) -> None:
        arrived.release()
        wire.rest()

    with serving(handler) as server:
        options = {"inject": [bearer(server.host)], "environment": ENVIRONMENT, "tls": contexts[1]}
        with proxying(server.host, limits=ProxyLimits(connect_seconds=0.1), **options) as (_, port), dial(port) as client:
            client.send(get(server.host))
            assert b"no answer within 0.1 s" in client.rest()
        arrived.acquire()
        with proxying(server.host, **options) as (_, port):
            client = dial(port)
            client.send(get(server.host))
            assert arrived.acquire(timeout=SECONDS)
        with client:
            assert client.rest() == b""


def test_other_hosts_get_no_credential() -> None:
    seen: list[bytes] = []
    with serving(answering()) as meant, serving(answering(seen=seen)) as other:
        options = {"inject": [bearer(meant.host, tls=False)], "environment": ENVIRONMENT}
        with proxying(meant.host, other.host, **options) as (_, port), dial(port) as client:
            client.send(get(other.host, "/", "Authorization: Bearer own"))
            client.head()

    assert b"Authorization: Bearer own" in seen[0]
    assert SECRET.encode() not in seen[0]


def test_tunnel_to_the_host_gets_no_credential() -> None:
    seen: list[bytes] = []
    with serving(answering(seen=seen)) as server:
        options = {"inject": [bearer(server.host, tls=False)], "environment": ENVIRONMENT}
        with proxying(server.host, **options) as (_, port), dial(port) as client:
            client.send(f"CONNECT {server.host} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
            client.head()
            client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            client.rest()

    assert SECRET.encode() not in seen[0]


def test_redirect_is_handed_on_and_not_followed() -> None:
    with serving(answering()) as elsewhere:
        moved = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{elsewhere.host}/\r\nContent-Length: 0\r\n\r\n".encode()
        with serving(answering(moved)) as server:
            options = {"inject": [bearer(server.host, tls=False)], "environment": ENVIRONMENT}
            with proxying(server.host, elsewhere.host, **options) as (_, port), dial(port) as client:
                client.send(get(server.host))
                assert f"Location: http://{elsewhere.host}/".encode() in client.head()
        assert elsewhere.accepted == []


def test_listener_with_an_upstream_takes_requests_for_that_host_alone(contexts: Contexts) -> None:
    acknowledged, seen = threading.Event(), list[bytes]()

    def handler(wire: Wire) -> None:
        seen.append(wire.head())
        assert wire.exactly(4) == b"{  }"
        wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        assert acknowledged.wait(SECONDS)
        wire.send(b"6\r\nsecond\r\n0\r\n\r\n")

    with serving(handler, tls=contexts[0]) as server:
        proxy = EgressProxy([server.host], [bearer(server.host)], environment=ENVIRONMENT, tls=contexts[1])
        with speaking_for(proxy, f"https://{server.host}") as client:
            client.send(b"POST /v1/chat?x=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Length: 4\r\n\r\n{  }")
            client.until(b"first\r\n")
            acknowledged.set()
            client.until(b"second\r\n0\r\n\r\n")
        proxy.close(Deadline.after(SECONDS))

    assert seen[0].startswith(b"POST /v1/chat?x=1 HTTP/1.1\r\n")
    assert f"Host: {server.host}".encode() in seen[0]
    assert f"Authorization: Bearer {SECRET}".encode() in seen[0]


def test_listener_with_an_upstream_is_no_proxy() -> None:
    with serving(answering()) as server:
        proxy = EgressProxy([server.host], environment=ENVIRONMENT)
        for request in (get(server.host), f"CONNECT {server.host} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode()):
            with speaking_for(proxy, f"http://{server.host}") as client:
                client.send(request)
                assert client.rest().startswith(b"HTTP/1.1 400 ")
        proxy.close(Deadline.after(SECONDS))
        assert server.accepted == []


@pytest.mark.parametrize(
    ("upstream", "why"),
    [
        ("http://api.example.com", "over TLS only"),
        ("https://elsewhere.example.com", "not in the allow-list"),
        ("https://api.example.com:8443", "not in the allow-list"),
        ("api.example.com", "does not begin with"),
        ("https://api.example.com/v1", "is not a host"),
    ],
)
def test_upstream_that_cannot_be_used_is_refused_at_once(upstream: str, why: str) -> None:
    proxy = EgressProxy(["api.example.com"], [bearer("api.example.com")], environment=ENVIRONMENT)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(SandboxError, match=why) as raised:
        proxy.handle(theirs, upstream=upstream)

    assert SECRET not in str(raised.value)
    proxy.close(Deadline.after(SECONDS))


@pytest.mark.parametrize("environment", [{}, {"API_KEY": ""}, {"API_KEY": f"{SECRET}\r\nX: y"}, {"API_KEY": f" {SECRET}"}])
def test_variable_that_is_missing_or_unusable_is_named_without_its_value(environment: dict[str, str]) -> None:
    with pytest.raises(SandboxError, match="API_KEY") as raised:
        EgressProxy(["api.example.com"], [bearer("api.example.com")], environment=environment)

    assert SECRET not in f"{raised.value!r} {raised.value.__cause__!r} {raised.value.hint}"


def test_secret_is_in_no_answer_of_the_proxy_and_in_no_record() -> None:
    answers: list[bytes] = []
    with serving(answering(b"nonsense\r\n\r\n")) as server:
        options = {"inject": [bearer(server.host, tls=False)], "environment": ENVIRONMENT}
        with proxying(server.host, "127.0.0.1:1", **options) as (proxy, port):
            trace = get(server.host).replace(b"GET", b"TRACE")
            for request in (get(server.host), trace, get("127.0.0.1:1"), get("elsewhere.example.com"), b"\0\r\n\r\n"):
                with dial(port) as client:
                    client.send(request)
                    answers.append(client.rest())
            said = repr((answers, proxy.record(), vars(proxy)))

    assert [answer.split(b" ")[1] for answer in answers] == [b"502", b"405", b"502", b"403", b"400"]
    assert SECRET not in said


def test_clients_use_the_host_over_plain_http_and_the_proxy_adds_the_rest(
    contexts: Contexts, require: Callable[[str], None]
) -> None:
    require("curl")
    seen: list[bytes] = []
    with serving(answering(seen=seen), tls=contexts[0]) as server:
        options = {"inject": [bearer(server.host)], "environment": ENVIRONMENT, "tls": contexts[1]}
        with proxying(server.host, **options) as (_, port):
            environment = {"PATH": os.environ["PATH"], **proxy_environment(port, [server.host])}
            fetch = f"import urllib.request as r; print(r.urlopen('http://{server.host}/', b'x').read().decode())"
            for command in (["curl", "-sS", "-d", "x", f"http://{server.host}/"], [sys.executable, "-c", fetch]):
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=True)
                assert done.stdout.strip() == "ok"

    assert all(f"Authorization: Bearer {SECRET}".encode() in head for head in seen)
    assert len(seen) == 2
