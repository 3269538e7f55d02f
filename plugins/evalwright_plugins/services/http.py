"""The service ``http``: collections with REST calls, and canned answers, both from a JSON file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evalwright.interfaces import Deadline, RunningService, Service
from evalwright_plugins.services._messages import Answer, Call, is_array, is_object
from evalwright_plugins.services._routing import no_route, path_pattern
from evalwright_plugins.services._running import HttpRunning

__all__ = ["HttpConfig", "HttpSeed", "HttpService"]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
PLACE = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)
WITHOUT_LINES = re.compile(r"[^\r\n\0]*")
Method = Literal["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]


class Route(BaseModel):
    """A canned answer. ``path`` may have ``{name}`` parts, whose values replace ``{name}`` in texts of ``body``.

    ``times`` is how often the route answers before the next one that fits takes over; ``None`` means always.
    """

    model_config = STRICT

    method: Method = "GET"
    path: str
    status: Annotated[int, Field(ge=200, le=599)] = 200
    headers: dict[str, str] = {}
    body: Any = None
    times: Annotated[int, Field(gt=0)] | None = None

    @field_validator("path")
    @classmethod
    def _template(cls, path: str) -> str:
        path_pattern(path)
        return path

    @field_validator("headers")
    @classmethod
    def _one_line(cls, headers: dict[str, str]) -> dict[str, str]:
        for name, value in headers.items():
            if not re.fullmatch(r"[A-Za-z0-9-]+", name) or not WITHOUT_LINES.fullmatch(value):
                raise ValueError(f"{name!r} is no header with a value on one line")
        return headers


class Collection(BaseModel):
    """Items under ``/NAME``. ``key`` is the field that identifies one."""

    model_config = STRICT

    key: str = "id"
    items: list[dict[str, Any]] = []

    @field_validator("items")
    @classmethod
    def _identified(cls, items: list[dict[str, Any]], info: Any) -> list[dict[str, Any]]:
        keys = [str(item.get(info.data.get("key", "id"))) for item in items]
        if "None" in keys or len(set(keys)) < len(keys):
            raise ValueError(f'each item needs a "{info.data.get("key", "id")}" of its own')
        return items


class HttpSeed(BaseModel):
    """What a service starts from."""

    model_config = STRICT

    collections: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$")], Collection] = {}
    routes: list[Route] = []


class HttpConfig(HttpSeed):
    """What is the same for every case; a case's seed adds to it and comes first.

    ``env`` maps variables of the agent to texts with ``{url}`` and ``{token}``. ``guarded`` refuses calls without the token.
    """

    env: dict[str, str] = {"SERVICE_URL": "{url}", "SERVICE_TOKEN": "{token}"}
    guarded: bool = False


class HttpService(Service[HttpConfig]):
    """Starts a server of its own for each trial."""

    api = "service/1.0"
    Config = HttpConfig
    Seed = HttpSeed

    def open(self, seed: Path | None, deadline: Deadline) -> RunningService:
        """Start listening. Raises ``ValueError`` for a seed of another form."""
        own = HttpSeed.model_validate_json(seed.read_bytes()) if seed else HttpSeed()
        config = self.config
        application = _Fixture({**config.collections, **own.collections}, [*own.routes, *config.routes])
        return HttpRunning(application, config.env, guarded=config.guarded)


class _Fixture:
    def __init__(self, collections: Mapping[str, Collection], routes: list[Route]) -> None:
        self._keys = {name: collection.key for name, collection in collections.items()}
        self._items = {
            name: {str(item[collection.key]): dict(item) for item in collection.items}
            for name, collection in collections.items()
        }
        self._routes = [(route, path_pattern(route.path)) for route in routes]
        self._answered = [0] * len(routes)

    def answer(self, call: Call) -> Answer:
        return self._canned(call) or self._of_collection(call) or no_route(call)

    def denied(self, call: Call) -> Answer:
        return Answer(401, {"message": "this service wants its token: Authorization: Bearer TOKEN"})

    def state(self) -> dict[str, Any]:
        return {"collections": {name: list(items.values()) for name, items in self._items.items()}}

    def _canned(self, call: Call) -> Answer | None:
        for number, (route, pattern) in enumerate(self._routes):
            match = pattern.fullmatch(call.path) if route.method == call.method else None
            if match and (route.times is None or self._answered[number] < route.times):
                self._answered[number] += 1
                words = {name: unquote(value) for name, value in match.groupdict().items()}
                return Answer(route.status, _rendered(route.body, words), route.headers)
        return None

    def _of_collection(self, call: Call) -> Answer | None:
        path = unquote(call.path).strip("/")
        if path in self._items:
            return self._of_all(path, call)
        name, _, key = path.rpartition("/")
        return self._of_one(name, key, call) if name in self._items else None

    def _of_all(self, name: str, call: Call) -> Answer | None:
        items, key = self._items[name], self._keys[name]
        if call.method in ("GET", "HEAD"):
            wanted = call.query.items()
            return Answer(200, [item for item in items.values() if all(_text(item.get(k)) == v for k, v in wanted)])
        if call.method != "POST":
            return None
        if not is_object(call.body):
            return Answer(400, {"message": "the body must be a JSON object"})
        item = {key: _next(items), **call.fields}
        if str(item[key]) in items:
            return Answer(409, {"message": f"{name} has an item {item[key]} already"})
        items[str(item[key])] = item
        return Answer(201, item, {"Location": f"/{name}/{quote(str(item[key]), safe='')}"})

    def _of_one(self, name: str, key: str, call: Call) -> Answer | None:
        items, field = self._items[name], self._keys[name]
        if call.method not in ("GET", "HEAD", "PUT", "PATCH", "DELETE"):
            return None
        if key not in items and call.method != "PUT":
            return Answer(404, {"message": f"{name} has no item {key}"})
        if call.method == "DELETE":
            del items[key]
            return Answer(204)
        if call.method in ("GET", "HEAD"):
            return Answer(200, items[key])
        if not is_object(call.body):
            return Answer(400, {"message": "the body must be a JSON object"})
        status = 200 if key in items else 201
        former: dict[str, Any] = items.get(key, {field: key})
        items[key] = {**(former if call.method == "PATCH" else {}), **call.fields, field: former[field]}
        return Answer(status, items[key])


def _rendered(value: Any, words: Mapping[str, str]) -> Any:
    """Return a canned body with the values of the path's parts in its texts; braces around other names stay."""
    if isinstance(value, str):
        return PLACE.sub(lambda match: words.get(match[1], match[0]), value)
    if is_object(value):
        return {key: _rendered(item, words) for key, item in value.items()}
    return [_rendered(item, words) for item in value] if is_array(value) else value


def _next(items: Mapping[str, Any]) -> int:
    return max((int(key) for key in items if key.isascii() and key.isdigit() and len(key) < 16), default=0) + 1


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)
