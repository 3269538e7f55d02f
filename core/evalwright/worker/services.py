"""The services of one trial: opened before its agent, closed once the agent is dead, their records kept for scorers."""

from __future__ import annotations

import json
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from evalwright.errors import EvalwrightError, ServiceError, TrialError
from evalwright.interfaces import Deadline
from evalwright.model import ServiceRecord
from evalwright.redaction import Redactor
from evalwright.store import DirectoryStore
from evalwright.worker.bounded import within
from evalwright.worker.environment import expand_prefixes

if TYPE_CHECKING:
    from evalwright.interfaces import RunningService, Service

__all__ = ["TrialServices"]

OPEN_SECONDS = 60.0
END_SECONDS = 20.0
SHOWN_ROUTES = 5
SHOWN_CHARACTERS = 200
LOOPBACK = "127.0.0.1"
Warn = Callable[[str, str], None]


class Fail(Protocol):
    """Notes why the trial is an error."""

    def __call__(self, code: str, kind: str, message: str, *, transient: bool = False) -> None:
        """Note it; ``transient`` says that another attempt may not meet it."""


class TrialServices:
    """The running services of one trial, by their names in the suite.

    ``environment`` tells the agent where they are, ``endpoints`` what its sandbox must make reachable. ``records`` are empty
    until :meth:`end`.
    """

    def __init__(self, services: Mapping[str, Service[Any]], *, warn: Warn, fail: Fail) -> None:
        self.environment: dict[str, str] = {}
        self.endpoints: dict[str, str] = {}
        self.records = {name: ServiceRecord() for name in services}
        self._services = services
        self._warn = warn
        self._fail = fail
        self._running: dict[str, RunningService] = {}
        self._closed = False

    def open(self, seeds: Mapping[str, str], store: DirectoryStore) -> bool:
        """Start every service from the blob that ``seeds`` names, and tell whether all of them run.

        One that does not start is the trial's failure, under its name; :meth:`close` ends the others.
        """
        for name, service in self._services.items():
            try:
                self._start(name, service, seeds.get(name), store)
                self._announce(name, service.scheme, self._running[name])
            except Exception as error:
                said = str(error) if isinstance(error, (TrialError, EvalwrightError)) else f"{type(error).__name__}: {error}"
                kind, transient = getattr(error, "kind", "service"), getattr(error, "transient", False)
                self._fail(ServiceError.code, kind, f"the service {name} did not start: {said}", transient=transient)
                return False
        return True

    def end(self, redactor: Redactor) -> None:
        """Keep what every service has recorded, and close them; one that is gone already is the trial's failure."""
        for name, running in list(self._running.items()):
            try:
                self.records[name] = _taken(running, redactor)
            except Exception as error:
                why = f"the service {name} was lost during the trial: {type(error).__name__}: {error}"
                self._fail(ServiceError.code, "service_lost", why, transient=True)
            self._warn_of(name, self.records[name])
        self.close()

    def close(self) -> None:
        """Close what is open; a service that does not close is a warning."""
        self._closed = True
        while self._running:
            name, running = self._running.popitem()
            try:
                _end(running)
            except Exception as error:
                self._warn("W_SERVICE_LEFT", f"the service {name} was not closed: {error}")

    def _start(self, name: str, service: Service[Any], seed: str | None, store: DirectoryStore) -> None:
        path = store.verified(seed) if seed else None

        def start(deadline: Deadline) -> None:
            running = service.open(path, deadline)
            self._running[name] = running
            if self._closed:
                running.close()

        within(OPEN_SECONDS, start)

    def _announce(self, name: str, scheme: str, running: RunningService) -> None:
        taken = next((variable for variable in running.env if variable in self.environment), None)
        if taken:
            raise TrialError(
                "service", f"it sets {taken}, which another service of the suite sets too; rename one by its table"
            )
        word = f"SERVICE_{name.upper().replace('-', '_')}_URL"
        url = f"{scheme}://{LOOPBACK}:{running.port}"
        self.environment |= {**running.env, **expand_prefixes({word: url})}
        self.endpoints[name] = f"{LOOPBACK}:{running.port}"

    def _warn_of(self, name: str, record: ServiceRecord) -> None:
        unknown = Counter(_route(call) for call in record.calls if call.get("unknown") is True)
        if unknown:
            routes = [f"{route} ({count} calls)" if count > 1 else route for route, count in unknown.most_common(SHOWN_ROUTES)]
            more = f" and {len(unknown) - SHOWN_ROUTES} others" if len(unknown) > SHOWN_ROUTES else ""
            self._warn("W_SERVICE_UNKNOWN_ROUTE", f"the service {name} has no route for {', '.join(routes)}{more}")
        if record.dropped:
            why = f"the service {name} did not record {record.dropped} of its calls: there were too many"
            self._warn("W_SERVICE_CALLS_DROPPED", why)


def _taken(running: RunningService, redactor: Redactor) -> ServiceRecord:
    """Return the record of a service.

    Raises ``TimeoutError`` for one that does not answer, ``OSError`` for one that is gone, ``TypeError`` or ``ValueError``
    for a record that is no JSON.
    """
    told: list[Any] = []
    within(END_SECONDS, lambda _: told.extend(_told(running)))
    plain = json.dumps(told, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace")
    calls, state = redactor.json(json.loads(plain))
    dropped = calls.pop()["dropped"] if calls and set(calls[-1]) == {"dropped"} else 0
    return ServiceRecord(calls=tuple(calls), state=state, dropped=dropped)


def _end(running: RunningService) -> None:
    within(END_SECONDS, lambda _: running.close())


def _told(running: RunningService) -> tuple[Any, Any]:
    """Return calls and state of a service that still listens."""
    socket.create_connection((LOOPBACK, running.port), END_SECONDS / 2).close()
    return [dict(call) for call in running.calls()], dict(running.state())


def _route(call: Mapping[str, Any]) -> str:
    """Return method and path of a call, with escapes for characters that a terminal would act on."""
    text = f"{call.get('method')} {call.get('path')}"[:SHOWN_CHARACTERS]
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
