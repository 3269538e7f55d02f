"""A call to a service and its answer, as the application behind it sees them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeGuard
from urllib.parse import parse_qsl, unquote, urlsplit

from evalwright_plugins.network.http import Fields

__all__ = ["Answer", "Call", "Refusal", "call_of", "is_array", "is_object"]

MAX_DEPTH = 64
SECRET_WORDS = ("authorization", "cookie", "token", "secret", "key", "password")
MAX_HEADERS = 32
MAX_HEADER_CHARACTERS = 256


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a JSON value is a list."""
    return isinstance(value, list)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``path`` is as it was sent, percent-encoded and without a slash at its end.

    ``query`` holds the last value of each name, ``headers`` have names in small letters. ``body`` is the JSON that was sent,
    the fields of a form, other content as text, ``None`` for nothing.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None

    @property
    def fields(self) -> dict[str, Any]:
        """Return the body if it is an object, else an empty one."""
        return self.body if is_object(self.body) else {}

    def record(self) -> dict[str, Any]:
        """Return what is kept of the call: no header that may hold a secret, long ones cut."""
        kept = {name: value[:MAX_HEADER_CHARACTERS] for name, value in self.headers.items() if not _secret(name)}
        return {
            "method": self.method,
            "path": unquote(self.path),
            "query": dict(self.query),
            "headers": dict(list(kept.items())[:MAX_HEADERS]),
            "body": self.body,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. ``body`` is JSON, or text or bytes that are sent as they are; ``unknown`` says that no route fits."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    unknown: bool = False

    def content(self) -> tuple[str, bytes]:
        """Return the type and the bytes of the body."""
        if self.body is None:
            return "", b""
        if isinstance(self.body, bytes):
            return "application/octet-stream", self.body
        if isinstance(self.body, str):
            return "text/plain; charset=utf-8", self.body.encode("utf-8", "replace")
        return "application/json; charset=utf-8", json.dumps(self.body).encode()


class Refusal(Exception):
    """Raised by an application for a call that it turns down with a status and a JSON body."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.status}: {answer.body}")
        self.answer = answer


def call_of(method: str, target: str, fields: Fields, content: bytes) -> Call:
    """Return the call that a request makes. Raises ``ValueError`` for a target that is no URL."""
    parts = urlsplit(target)
    headers = {name.lower(): value for name, value in fields}
    return Call(
        method=method,
        path=parts.path.rstrip("/") or "/",
        query=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers=headers,
        body=_body(content, headers.get("content-type", "")),
    )


def _body(content: bytes, type: str) -> Any:
    """Return what was sent: JSON wherever it can be read and kept, whatever its type says, as clients often leave that out."""
    if not content:
        return None
    text = content.decode("utf-8", "replace")
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        if _depth(value) <= MAX_DEPTH:
            return value
    except (ValueError, RecursionError):
        if type.startswith("application/x-www-form-urlencoded"):
            return dict(parse_qsl(text, keep_blank_values=True))
    return text


def _depth(value: Any) -> int:
    """Return how deep lists and objects lie inside one another, counted up to one more than is kept."""
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        depth += 1
        level = [item for outer in level for item in _inside(outer)]
    return depth


def _inside(value: Any) -> list[Any]:
    held = list(value.values()) if is_object(value) else value if is_array(value) else []
    return [item for item in held if is_object(item) or is_array(item)]


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _secret(name: str) -> bool:
    return any(word in name for word in SECRET_WORDS)
