"""One JSON question over HTTP, and every way in which it can go wrong."""

from __future__ import annotations

import contextlib
import email.utils
import json
import math
import ssl
import threading
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from evalwright.errors import JudgeError, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import Deadline
from evalwright_plugins.judges._config import HttpConfig
from evalwright_plugins.judges._json import is_object, strict_object
from evalwright_plugins.judges._transport import DeadlineTransport, proxy_for

__all__ = ["Answer", "JsonClient", "error_text"]

MAX_BYTES = 4 << 20
SHOWN = 200
MARK = "[REDACTED]"
HEADERS = {
    "accept": "application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
    "user-agent": f"python-httpx/{httpx.__version__}",
}
TRANSIENT = frozenset({408, 409, 425, 429})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A server's answer: its status and the JSON object that it sent, empty where an error's body is none."""

    status: int
    document: Mapping[str, Any]


class JsonClient:
    """Posts JSON to one URL. Thread-safe: each call has a connection of its own, which the next one takes over.

    Requests go to a transport at once: redirects, cookies and what else a whole client does are not wanted here.
    ``transport`` replaces the network, for tests.
    """

    def __init__(self, config: HttpConfig, path: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = config.base_url.rstrip("/") + path
        self._parsed = httpx.URL(self.url)
        self._config = config
        self._transport = transport
        self._idle: list[httpx.BaseTransport] = []
        self._lock = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def post(self, body: Mapping[str, Any], headers: Mapping[str, str], secrets: list[str], deadline: Deadline) -> Answer:
        """Send and return an answer of status 200, 400 or 422. ``secrets`` are kept out of messages.

        Raises ``JudgeUnavailable`` for what another try may mend, ``JudgeUnreadable`` for what is no JSON object, and
        ``JudgeError`` for every other status.
        """
        config = self._config
        limit = min(deadline.at, time.monotonic() + config.call_timeout_seconds)
        timeout = httpx.Timeout(config.read_timeout_seconds, connect=config.connect_timeout_seconds).as_dict()
        content = json.dumps(body, allow_nan=False).encode("ascii")
        request = httpx.Request(
            "POST", self._parsed, headers={**HEADERS, **headers}, content=content, extensions={"timeout": timeout}
        )
        try:
            with self._line(limit) as transport:
                response = transport.handle_request(request)
                try:
                    data = _read(response, limit)
                finally:
                    response.close()
        except httpx.TimeoutException as error:
            raise JudgeUnavailable(
                f"no answer in time ({type(error).__name__})",
                hint="raise the timeouts, or look at the server",
                kind="judge_timeout",
            ) from None
        except httpx.HTTPError as error:
            raise JudgeUnavailable(f"the connection failed ({type(error).__name__})", hint=f"is {self.url} right?") from None
        return _answer(response, data, secrets)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for transport in idle:
            transport.close()

    @contextlib.contextmanager
    def _line(self, limit: float) -> Generator[httpx.BaseTransport]:
        """Lend a connection; one whose call failed is closed, since something may still be on its way."""
        with self._lock:
            transport = self._idle.pop() if self._idle else self._made()
        if isinstance(transport, DeadlineTransport):
            transport.at = limit
        try:
            yield transport
        except BaseException:
            transport.close()
            raise
        with self._lock:
            self._idle.append(transport)

    def _made(self) -> httpx.BaseTransport:
        if self._transport:
            return self._transport
        if self._context is None and self.url.startswith("https:"):
            self._context = httpx.create_ssl_context()
        return DeadlineTransport(self._context, proxy_for(self.url))


def _read(response: httpx.Response, limit: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    for part in [response.content] if response.is_stream_consumed else response.iter_raw():
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise JudgeUnreadable(f"the answer is longer than {MAX_BYTES} bytes", hint="this is no judge's server")
        if time.monotonic() >= limit:
            raise httpx.ReadTimeout("the deadline has passed")
    return b"".join(parts)


def _answer(response: httpx.Response, data: bytes, secrets: list[str]) -> Answer:
    status = response.status_code
    if status == 200:
        return Answer(status=status, document=_document(response, data))
    document: Mapping[str, Any] = {}
    with contextlib.suppress(JudgeUnreadable):
        document = _document(response, data)
    text = error_text(document, secrets)
    said = f": {text}" if text else ""
    if status in TRANSIENT or status >= 500:
        kind = "judge_rate_limited" if status in (429, 529) else None
        raise JudgeUnavailable(
            f"the server answered {status}{said}", hint="try later", kind=kind, retry_after=_retry_after(response.headers)
        )
    if status in (400, 422):
        return Answer(status=status, document=document)
    if 300 <= status < 400:
        raise JudgeError(
            f"the server answered {status} and points elsewhere", hint="set base_url to that place; no key is sent there"
        )
    hints = {401: "the key is wrong", 403: "the key may not do that", 404: "base_url or model is wrong"}
    raise JudgeError(f"the server answered {status}{said}", hint=hints.get(status, "correct the judge's table"))


def _document(response: httpx.Response, data: bytes) -> Mapping[str, Any]:
    kind = response.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if not (kind == "application/json" or kind.endswith("+json")):
        raise JudgeUnreadable(f"the server sent {kind[:SHOWN]}, not JSON", hint="is base_url right?")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise JudgeUnreadable("the server sent an encoding that was not asked for", hint="is a proxy in between?")
    try:
        return strict_object(data)
    except ValueError as error:
        raise JudgeUnreadable("the server's answer is no JSON object", hint="look at the server's log") from error


def error_text(document: Mapping[str, Any], secrets: list[str]) -> str:
    """Return what the server says of an error, without the keys that it may echo."""
    error = document.get("error")
    text = str(error.get("message") if is_object(error) else error or "")
    for secret in secrets:
        text = text.replace(secret, MARK)
    return text[:SHOWN]


def _retry_after(headers: httpx.Headers) -> float | None:
    """Return the seconds that ``Retry-After`` asks for, given as a number or as an HTTP date (RFC 9110, 10.2.3)."""
    value = headers.get("retry-after", "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return seconds if math.isfinite(seconds) and seconds > 0 else None
