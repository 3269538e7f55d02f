"""Tell a web address that a person is wanted, without ever holding up the run or saying what it is about."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

import httpx

from evalwright.errors import UsageError

__all__ = ["TIMEOUT_SECONDS", "Webhook"]

TIMEOUT_SECONDS = 5.0
GRACE_SECONDS = 1.0


class Webhook:
    """Posts ``{event, run, work, kind}`` as JSON, once for each notice, from a thread of its own. Thread-safe.

    What goes wrong comes back as a text from :meth:`warnings` or :meth:`close`; no message shows more of the address than
    its host, since the rest is often a secret. Redirects are not followed. ``transport`` replaces the network, for tests.
    """

    def __init__(
        self, url: str, *, timeout: float = TIMEOUT_SECONDS, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """Take the address and the time, in seconds, that one notice may take in all. Raises ``UsageError`` for no address."""
        self._url, self._host = url, _host(url)
        self._timeout = timeout
        self._transport = transport
        self._under_way: dict[threading.Thread, float] = {}
        self._warnings: list[str] = []
        self._lock = threading.Lock()

    def notify(self, event: str, run: str, work: str, kind: str) -> None:
        """Send a notice and return at once; never raises on account of the network."""
        body = {"event": event, "run": run, "work": work, "kind": kind}
        thread = threading.Thread(target=self._deliver, args=(body,), name="evalwright-webhook", daemon=True)
        with self._lock:
            self._under_way[thread] = time.monotonic() + self._timeout + GRACE_SECONDS
            try:
                thread.start()
            except RuntimeError:
                del self._under_way[thread]
                self._warnings.append(self._warning(body, "no thread could be started"))

    def warnings(self) -> list[str]:
        """Return what went wrong since the last call."""
        with self._lock:
            found, self._warnings = self._warnings, []
        return found

    def close(self) -> list[str]:
        """Wait for the notices under way, each no longer than it may take, and return :meth:`warnings`."""
        with self._lock:
            waiting = dict(self._under_way)
        for thread, until in waiting.items():
            thread.join(max(0.0, until - time.monotonic()))
        lost = sum(thread.is_alive() for thread in waiting)
        return self.warnings() + [f"the webhook at {self._host} did not end in time"] * bool(lost)

    def _deliver(self, body: Mapping[str, str]) -> None:
        try:
            problem = asyncio.run(self._post(body))
        except (httpx.HTTPError, OSError, RuntimeError, ValueError) as error:
            problem = type(error).__name__
        with self._lock:
            self._under_way.pop(threading.current_thread(), None)
            if problem:
                self._warnings.append(self._warning(body, problem))

    async def _post(self, body: Mapping[str, str]) -> str | None:
        """Return what is wrong with the answer. One deadline covers everything, so that no server can drip it away."""
        try:
            async with (
                asyncio.timeout(self._timeout),
                httpx.AsyncClient(transport=self._transport, timeout=None) as client,
                client.stream("POST", self._url, json=body) as response,
            ):
                return None if response.is_success else f"status {response.status_code}"
        except TimeoutError:
            return f"no answer in {self._timeout:g} s"

    def _warning(self, body: Mapping[str, str], problem: str) -> str:
        return f"the webhook at {self._host} was not told of {body['event']} of run {body['run']}: {problem}"


def _host(url: str) -> str:
    hint = "write http://HOST/... or https://HOST/..., without user, password or fragment"
    try:
        parts, _ = urlsplit(url), httpx.URL(url)
        port = parts.port
    except (ValueError, httpx.InvalidURL):
        raise UsageError("the webhook's address cannot be read", hint=hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password or parts.fragment:
        raise UsageError("the webhook's address is none that can be posted to", hint=hint)
    return f"{parts.hostname}:{port}" if port else parts.hostname
