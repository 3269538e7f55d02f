"""A webhook is told once, with no content, and can neither stop a run nor hold it up."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from evalwright.errors import UsageError
from evalwright_plugins.workflow.approvals.webhook import Webhook

SECRET = "T0KEN"


class Listener(ThreadingHTTPServer):
    """A server on loopback that keeps what it is told and answers with ``status`` once ``go`` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.told: list[tuple[str, Any]] = []
        self.status = 204
        self.go = threading.Event()
        self.arrived = threading.Event()
        self.go.set()

    @property
    def url(self) -> str:
        """Return the address, with a secret in it."""
        return f"http://127.0.0.1:{self.server_address[1]}/hooks/{SECRET}?key={SECRET}"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    def do_POST(self) -> None:
        """Keep the body and answer."""
        listener = self.server
        assert isinstance(listener, Listener)
        body = self.rfile.read(int(self.headers["content-length"]))
        listener.told.append((self.path, json.loads(body)))
        listener.arrived.set()
        listener.go.wait(20)
        self.send_response(listener.status)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def listener() -> Iterator[Listener]:
    server = Listener()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.go.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def deaf() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/{SECRET}"


def test_notice_names_the_run_and_says_nothing_more(listener: Listener) -> None:
    webhook = Webhook(listener.url)

    webhook.notify("HUMAN_REQUESTED", "R1", "W", "finding-triage")

    assert webhook.close() == []
    body = {"event": "HUMAN_REQUESTED", "run": "R1", "work": "W", "kind": "finding-triage"}
    assert listener.told == [(f"/hooks/{SECRET}?key={SECRET}", body)]


def test_run_goes_on_before_the_server_answers(listener: Listener) -> None:
    listener.go.clear()
    webhook = Webhook(listener.url, timeout=30)

    webhook.notify("HUMAN_REQUESTED", "R1", "W", "boundary")
    webhook.notify("RUN_TERMINAL", "R1", "W", "succeeded")
    assert listener.arrived.wait(20)
    assert webhook.warnings() == []
    listener.go.set()

    assert webhook.close() == []
    assert sorted(body["event"] for _, body in listener.told) == ["HUMAN_REQUESTED", "RUN_TERMINAL"]


@pytest.mark.parametrize("status", [302, 307, 404, 429, 503])
def test_refused_notice_is_a_warning_and_is_not_tried_again(listener: Listener, status: int) -> None:
    listener.status = status
    webhook = Webhook(listener.url)

    webhook.notify("HUMAN_REQUESTED", "R1", "W", "infra")

    (warning,) = webhook.close()
    port = listener.server_address[1]
    assert warning == f"the webhook at 127.0.0.1:{port} was not told of HUMAN_REQUESTED of run R1: status {status}"
    assert len(listener.told) == 1
    assert webhook.close() == []


def test_server_that_is_not_there_is_a_warning(deaf: socket.socket) -> None:
    webhook = Webhook(address(deaf))
    deaf.close()

    webhook.notify("HUMAN_REQUESTED", "R1", "W", "infra")

    (warning,) = webhook.close()
    assert warning.endswith("ConnectError")
    assert SECRET not in warning


def test_server_that_never_answers_is_a_warning(deaf: socket.socket) -> None:
    webhook = Webhook(address(deaf), timeout=0.2)

    webhook.notify("HUMAN_REQUESTED", "R1", "W", "infra")

    (warning,) = webhook.close()
    assert warning.endswith("no answer in 0.2 s")


def test_server_that_drips_its_answer_is_a_warning(deaf: socket.socket) -> None:
    over = threading.Event()

    def drip() -> None:
        connection, _ = deaf.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nx: ")
            while not over.wait(0.02):
                try:
                    connection.sendall(b"y")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    webhook = Webhook(address(deaf), timeout=0.5)
    webhook.notify("HUMAN_REQUESTED", "R1", "W", "infra")

    try:
        (warning,) = webhook.close()
    finally:
        over.set()
        thread.join()
    assert warning.endswith("no answer in 0.5 s")


def test_server_that_talks_something_else_is_a_warning(deaf: socket.socket) -> None:
    def talk() -> None:
        connection, _ = deaf.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"220 mail\r\n\r\n")

    thread = threading.Thread(target=talk)
    thread.start()
    webhook = Webhook(address(deaf))
    webhook.notify("HUMAN_REQUESTED", "R1", "W", "infra")

    (warning,) = webhook.close()
    thread.join()
    assert warning.endswith("RemoteProtocolError")


@pytest.mark.parametrize("error", [httpx.ReadError("x"), OSError(SECRET), ValueError(SECRET), RuntimeError(SECRET)], ids=repr)
def test_no_failure_of_the_network_reaches_the_run(error: Exception) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    webhook = Webhook(f"https://hooks.example/{SECRET}", transport=httpx.MockTransport(fail))
    webhook.notify("HUMAN_REQUESTED", "R1", "W", "infra")

    assert webhook.close() == [
        f"the webhook at hooks.example was not told of HUMAN_REQUESTED of run R1: {type(error).__name__}"
    ]


@pytest.mark.parametrize(
    "url",
    [
        "",
        SECRET,
        f"ftp://host/{SECRET}",
        f"http:///{SECRET}",
        f"http://ada:{SECRET}@host/",
        f"http://host/#{SECRET}",
        f"http://host:{SECRET}/",
        f"http://host:99999999/{SECRET}",
        f"http://[::1/{SECRET}",
        f"http://host/\x00{SECRET}",
    ],
    ids=repr,
)
def test_address_that_cannot_be_posted_to_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        Webhook(url)

    assert SECRET not in caught.value.message
    assert caught.value.hint
