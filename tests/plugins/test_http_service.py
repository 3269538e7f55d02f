"""The service ``http``: collections, canned answers, what it records and what it refuses; with real clients."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from evalwright.interfaces import Deadline, Host, RunningService
from evalwright.testing import FakeHost, ServiceContract
from evalwright_plugins.services import _journal
from evalwright_plugins.services.http import HttpConfig, HttpSeed, HttpService

Open = Callable[..., "Client"]
SEED = {
    "collections": {
        "tasks": {"items": [{"id": 1, "title": "first", "done": False}, {"id": 2, "title": "second", "done": True}]},
        "people": {"key": "login", "items": [{"login": "ann"}]},
    },
    "routes": [
        {"path": "/health", "body": {"ok": True}},
        {
            "method": "POST",
            "path": "/orders/{id}/pay",
            "status": 202,
            "headers": {"X-Kind": "canned"},
            "body": ["paid {id} {x}"],
        },
        {"path": "/flaky", "status": 503, "body": "later", "times": 2},
        {"path": "/flaky", "body": "now"},
    ],
}


class Client:
    """Calls one running service."""

    def __init__(self, running: Any) -> None:
        self.running = running
        self.url = f"http://127.0.0.1:{running.port}"
        self.http = httpx.Client(trust_env=False, verify=False)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        answer = self.http.request(method, self.url + path, json=body, headers=headers)
        kind = answer.headers.get("content-type", "")
        return answer.status_code, answer.json() if kind.startswith("application/json") else answer.text

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [dict(call) for call in self.running.calls()]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    clients: list[Client] = []

    def open_one(seed: Any = SEED, **config: Any) -> Client:
        place = tmp_path / f"seed{len(clients)}.json"
        place.write_text(json.dumps(seed))
        service = HttpService(HttpConfig.model_validate(config), FakeHost())
        clients.append(Client(service.open(place, Deadline.after(10))))
        return clients[-1]

    yield open_one
    for client in clients:
        client.http.close()
        client.running.close()


class TestHttpService(ServiceContract):
    def make(self, host: Host) -> HttpService:
        return HttpService(HttpConfig(), host)

    def write_seed(self, place: Path) -> Path:
        (place / "seed.json").write_text(json.dumps(SEED))
        return place / "seed.json"

    def use(self, running: RunningService) -> None:
        client = Client(running)
        assert client.call("POST", "/tasks", {"title": "third"})[0] == 201
        client.http.close()

    def miss(self, running: RunningService) -> None:
        client = Client(running)
        assert client.call("GET", "/nowhere")[0] == 404
        client.http.close()


def test_collection_is_listed_filtered_and_read(opened: Open) -> None:
    client = opened()
    assert [item["id"] for item in client.call("GET", "/tasks")[1]] == [1, 2]
    assert [item["id"] for item in client.call("GET", "/tasks?done=true")[1]] == [2]
    assert client.call("GET", "/tasks/2")[1]["title"] == "second"
    assert client.call("GET", "/people/ann") == (200, {"login": "ann"})
    assert client.call("GET", "/tasks/7") == (404, {"message": "tasks has no item 7"})


def test_items_are_made_changed_replaced_and_removed(opened: Open) -> None:
    client = opened()
    assert client.call("POST", "/tasks", {"title": "third"}) == (201, {"id": 3, "title": "third"})
    assert client.call("POST", "/tasks", {"id": 3})[0] == 409
    assert client.call("POST", "/tasks", ["no object"])[0] == 400
    assert client.call("PATCH", "/tasks/1", {"done": True})[1] == {"id": 1, "title": "first", "done": True}
    assert client.call("PUT", "/tasks/1", {"title": "new", "id": 9})[1] == {"id": 1, "title": "new"}
    assert client.call("PUT", "/people/bob", {"age": 3}) == (201, {"login": "bob", "age": 3})
    assert client.call("DELETE", "/tasks/2") == (204, "")
    assert client.running.state()["collections"]["tasks"] == [{"id": 1, "title": "new"}, {"id": 3, "title": "third"}]


def test_canned_answer_fills_the_parts_of_its_path_in(opened: Open) -> None:
    assert opened().call("POST", "/orders/a%2Fb/pay") == (202, ["paid a/b {x}"])


def test_route_that_answers_some_times_gives_way_to_the_next(opened: Open) -> None:
    client = opened()
    assert [client.call("GET", "/flaky")[0] for _ in range(4)] == [503, 503, 200, 200]


def test_seed_of_a_case_comes_before_the_suite_s_own(opened: Open) -> None:
    client = opened({"routes": [{"path": "/health", "body": "case"}]}, **SEED)
    assert client.call("GET", "/health") == (200, "case")
    assert client.call("GET", "/tasks/1")[0] == 200


def test_unknown_route_is_answered_by_its_name_and_recorded(opened: Open) -> None:
    client = opened()
    status, body = client.call("GET", "/no%20where?x=1")
    assert (status, body["route"]) == (404, "GET /no where")
    assert client.call("DELETE", "/tasks")[0] == 404
    assert [(call["method"], call["path"], call["unknown"]) for call in client.calls] == [
        ("GET", "/no where", True),
        ("DELETE", "/tasks", True),
    ]


def test_call_is_recorded_without_secrets(opened: Open) -> None:
    client = opened()
    client.call("POST", "/tasks?a=1&a=2", {"title": "x"}, Authorization="Bearer hush", **{"X-Api-Key": "hush", "X-Kind": "k"})
    (call,) = client.calls
    assert {name: call[name] for name in ("number", "method", "path", "query", "body", "status")} == {
        "number": 1,
        "method": "POST",
        "path": "/tasks",
        "query": {"a": "2"},
        "body": {"title": "x"},
        "status": 201,
    }
    assert call["headers"]["x-kind"] == "k"
    assert "hush" not in json.dumps(call)


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (b"", None),
        (b"plain", "plain"),
        (b"\xff", "�"),
        (b'{"a": 1e999}', '{"a": 1e999}'),
        (b"NaN", "NaN"),
        (b"[" * 65 + b"]" * 65, "[" * 65 + "]" * 65),
        (b"[" * 100_000, "[" * 100_000),
        (b'{"a": [1, "x"]}', {"a": [1, "x"]}),
    ],
)
def test_body_of_any_kind_can_be_recorded(opened: Open, content: bytes, kept: Any) -> None:
    client = opened()
    client.http.post(client.url + "/x", content=content)
    assert json.loads(json.dumps(client.calls[0]["body"], allow_nan=False)) == kept


def test_form_is_recorded_as_its_fields(opened: Open) -> None:
    client = opened()
    client.http.post(client.url + "/x", data={"a": "1", "b": "é"})
    assert client.calls[0]["body"] == {"a": "1", "b": "é"}


def test_chunked_body_and_kept_connection_are_understood(opened: Open) -> None:
    client = opened()
    connection = http.client.HTTPConnection("127.0.0.1", client.running.port, timeout=10)
    connection.request("POST", "/tasks", body=iter([b'{"title":', b' "in pieces"}']), encode_chunked=True)
    assert json.loads(connection.getresponse().read())["title"] == "in pieces"
    socket_before = connection.sock
    connection.request("HEAD", "/tasks/3")
    assert (connection.getresponse().read(), connection.sock is socket_before) == (b"", True)
    connection.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\n\n", b"400"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET http://[ HTTP/1.1\r\n\r\n", b"400"),
        (b"POST /tasks HTTP/1.1\r\nContent-Length: 2000000\r\n\r\n", b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + b"ffff\r\n" + b"x" * 65535 + b"\r\n" + b"zz\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_refused_and_the_service_goes_on(opened: Open, sent: bytes, status: bytes) -> None:
    client = opened()
    with socket.create_connection(("127.0.0.1", client.running.port), 10) as connection:
        connection.sendall(sent)
        assert connection.recv(100).split()[1] == status
    assert client.call("GET", "/health")[0] == 200


def test_guarded_service_wants_the_token_of_its_trial(opened: Open) -> None:
    mine, other = opened(guarded=True), opened(guarded=True)
    token = mine.running.env["SERVICE_TOKEN"]
    assert mine.call("GET", "/health", Authorization=f"Bearer {token}")[0] == 200
    assert mine.call("GET", "/health", Authorization=f"token {token}")[0] == 200
    assert [other.call("GET", "/health", **headers)[0] for headers in ({}, {"Authorization": f"Bearer {token}"})] == [401, 401]
    assert "unknown" not in other.calls[0]


def test_flood_is_bounded_and_counted(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_journal.Journal.__init__, "__kwdefaults__", {"calls": 5, "size_bytes": 1 << 20})
    client = opened()
    assert [client.call("POST", "/tasks", {})[0] for _ in range(8)] == [201] * 5 + [429] * 3
    assert client.calls[5:] == [{"dropped": 3}]
    assert len(client.running.state()["collections"]["tasks"]) == 2 + 5


def test_requests_that_are_too_large_together_are_bounded(opened: Open) -> None:
    client = opened()
    statuses = [client.call("POST", "/tasks", {"x": "y" * 1_000_000})[0] for _ in range(10)]
    assert statuses == [201] * 8 + [429] * 2


def test_connections_are_bounded_and_end_with_the_service(opened: Open) -> None:
    client = opened()
    held = [socket.create_connection(("127.0.0.1", client.running.port), 10) for _ in range(260)]
    assert any(connection.recv(100).startswith(b"HTTP/1.1 503") for connection in held[256:])
    client.running.close()
    assert held[0].recv(1) == b""
    for connection in held:
        connection.close()


def test_eight_clients_at_once_lose_no_call(opened: Open) -> None:
    client = opened()

    def write(number: int) -> None:
        for item in range(10):
            assert client.call("PUT", f"/tasks/{number}-{item}", {})[0] == 201

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [call["number"] for call in client.calls] == list(range(1, 81))
    assert len(client.running.state()["collections"]["tasks"]) == 82


@pytest.mark.parametrize(
    "seed",
    [
        {"colections": {}},
        {"collections": {"a b": {}}},
        {"collections": {"a": {"items": [{"x": 1}]}}},
        {"collections": {"a": {"items": [{"id": 1}, {"id": "1"}]}}},
        {"routes": [{"path": "health"}]},
        {"routes": [{"path": "/{a}/{a}"}]},
        {"routes": [{"path": "/x", "status": 100}]},
        {"routes": [{"path": "/x", "headers": {"A": "b\r\nC: d"}}]},
        {"routes": [{"path": "/x", "method": "get"}]},
    ],
)
def test_wrong_seed_is_refused(seed: Any) -> None:
    with pytest.raises(ValidationError):
        HttpSeed.model_validate(seed)


CURL = 'curl -sS --noproxy "*" -X POST "$0/tasks" -d \'{"title": "by curl"}\' -w "%{http_code}"'
NODE = """
const url = process.argv[1];
const made = await fetch(url + "/tasks", {method: "POST", body: JSON.stringify({title: "by node"})});
const all = await Promise.all([1, 2, 3].map((id) => fetch(url + "/tasks/" + id).then((answer) => answer.json())));
console.log(made.status, all.map((task) => task.title).join());
"""


def test_curl_is_served(opened: Open, require: Callable[[str], None]) -> None:
    require("curl")
    client = opened()
    done = subprocess.run(["sh", "-c", CURL, client.url], capture_output=True, check=True, timeout=120)
    assert done.stdout == b'{"id": 3, "title": "by curl"}201'


def test_fetch_of_node_is_served(opened: Open, require: Callable[[str], None]) -> None:
    require("node")
    client = opened()
    node = shutil.which("node") or ""
    done = subprocess.run([node, "--input-type=module", "-e", NODE, client.url], capture_output=True, check=False, timeout=120)
    assert (done.stdout, done.returncode) == (b"201 first,second,by node\n", 0), done.stderr
