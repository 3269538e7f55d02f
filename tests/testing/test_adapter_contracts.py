"""Every check of the importer, exporter and service contracts fails on a plugin that is broken in that way."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from evalwright.errors import SourceMissing, UsageError
from evalwright.interfaces import (
    Deadline,
    Exporter,
    Host,
    Imported,
    ImportedCase,
    ImportedFile,
    ImportedSuite,
    Importer,
    RunView,
    Service,
    Unsupported,
)
from evalwright.testing import ExporterContract, ImporterContract, ServiceContract

Change = Callable[[list[Imported]], Sequence[Imported]]
Write = Callable[[RunView, Path], None]


class LineImporter(Importer[None]):
    """One task a line; an empty line is not supported."""

    api = "importer/1.0"

    def __init__(self, host: Host, change: Change) -> None:
        super().__init__(None, host)
        self.change = change

    def read(self, source: Path | None) -> Iterator[Imported]:
        yield from self.change(list(self._items(source)))

    def _items(self, source: Path | None) -> Iterator[Imported]:
        if source is None or not source.is_file():
            raise SourceMissing("nothing to import", hint="give a file")
        try:
            text = source.read_text("utf-8")
        except UnicodeDecodeError as error:
            raise UsageError("not UTF-8", hint="give a text file") from error
        yield ImportedSuite({"schema_version": 2, "name": "lines", "runner": {"argv": ["true"]}, "scorers": [{"use": "exact"}]})
        yield ImportedFile(PurePosixPath("fixtures/w/a.txt"), b"a\n")
        for number, line in enumerate(text.splitlines()):
            if line.strip():
                record = {"id": f"line{number}", "task": line, "workspace": "fixtures/w", "expect": {"exact": "x"}}
                yield ImportedCase(record)
            else:
                yield Unsupported(f"line {number}", "it is empty")


def importing(change: Change) -> type[ImporterContract]:
    class Made(ImporterContract):
        records = 3

        def make(self, host: Host) -> LineImporter:
            return LineImporter(host, change)

        def write_source(self, place: Path) -> Path:
            path = place / "lines"
            path.write_text("one\n\ntwo\n")
            return path

    return Made


class TestLineImporter(importing(list)):
    pass


def swallow(items: list[Imported]) -> Sequence[Imported]:
    return [item for item in items if not isinstance(item, Unsupported)]


def fickle() -> Change:
    return lambda items: [*items, ImportedFile(PurePosixPath(f"{random.random()}"), b"")]


class Inventing(LineImporter):
    def read(self, source: Path | None) -> Iterator[Imported]:
        if source is None or not source.is_file():
            return iter([ImportedSuite({})])
        return super().read(source)


class InventingContract(importing(list)):
    def make(self, host: Host) -> LineImporter:
        return Inventing(host, list)


class Crashing(LineImporter):
    def read(self, source: Path | None) -> Iterator[Imported]:
        assert source is not None
        source.read_text("utf-8")
        return super().read(source)


class CrashingContract(importing(list)):
    def make(self, host: Host) -> LineImporter:
        return Crashing(host, list)


def one_reader() -> Change:
    shared: list[Imported] = []

    def change(items: list[Imported]) -> Sequence[Imported]:
        shared.clear()
        for item in items:
            shared.append(item)
            threading.Event().wait(0.002)
        return list(shared)

    return change


UNIQUE = "test_case_ids_and_paths_are_unique"
INSIDE = "test_paths_stay_inside_the_suite"
IMPORTERS: list[tuple[str, type[ImporterContract]]] = [
    ("test_suite_comes_first_and_once", importing(lambda items: items[1:])),
    ("test_suite_comes_first_and_once", importing(lambda items: [*items, items[0]])),
    (UNIQUE, importing(lambda items: [*items, items[2]])),
    (UNIQUE, importing(lambda items: [*items, items[1]])),
    (UNIQUE, importing(lambda items: items[:2])),
    (INSIDE, importing(lambda items: [*items, ImportedFile(PurePosixPath("../x"), b"")])),
    (INSIDE, importing(lambda items: [*items, ImportedFile(PurePosixPath("/etc/x"), b"")])),
    ("test_written_suite_loads_with_every_case", importing(lambda items: [items[0], *items[2:]])),
    ("test_nothing_is_dropped_in_silence", importing(swallow)),
    ("test_reading_twice_describes_the_same", importing(fickle())),
    ("test_missing_source_is_said_to_be_missing", InventingContract),
    ("test_damaged_source_is_refused_with_an_error", CrashingContract),
    ("test_eight_threads_read_at_once", importing(one_reader())),
]


class JsonExporter(Exporter[None]):
    """Writes the report as JSON, unless told to write otherwise."""

    api = "exporter/1.0"

    def __init__(self, host: Host, write: Write | None) -> None:
        super().__init__(None, host)
        self.otherwise = write

    def write(self, run: RunView, target: Path) -> None:
        (self.otherwise or as_json)(run, target)


def as_json(run: RunView, target: Path) -> None:
    target.write_text(json.dumps(dict(run.report), sort_keys=True))


def exporting(write: Write | None = None) -> type[ExporterContract]:
    class Made(ExporterContract):
        def make(self, host: Host) -> JsonExporter:
            return JsonExporter(host, write)

    return Made


class TestJsonExporter(exporting()):
    pass


def only_passes(run: RunView, target: Path) -> None:
    target.write_text("\n".join(case["id"] for case in run.report["cases"] if case["status"] != "error"))


def leaves_a_draft(run: RunView, target: Path) -> None:
    target.with_suffix(".draft").write_text("draft")
    as_json(run, target)


def at_random(run: RunView, target: Path) -> None:
    target.write_text(f"{random.random()}")


def takes_apart(run: RunView, target: Path) -> None:
    cases: list[Mapping[str, Any]] = run.report["cases"]
    target.write_text("\n".join(str(cases.pop()["id"]) for _ in range(len(cases))))


def divides(run: RunView, target: Path) -> None:
    target.write_text(str(1 / len(run.report["cases"])))


def through_one_file(run: RunView, target: Path) -> None:
    shared = target.parent / "shared"
    shared.write_text(target.name)
    threading.Event().wait(0.02)
    target.write_text(shared.read_text() if target.name != "alone" else "alone")


EXPORTERS: list[tuple[str, Write]] = [
    ("test_every_case_is_written", only_passes),
    ("test_nothing_is_written_elsewhere", leaves_a_draft),
    ("test_same_run_is_written_the_same", at_random),
    ("test_run_is_left_as_it_was", takes_apart),
    ("test_run_without_cases_can_be_written", divides),
    ("test_eight_threads_write_at_once", through_one_file),
]


class Listener:
    """A running service: a socket that listens, and a list of calls."""

    def __init__(self, **swaps: Any) -> None:
        self.socket = socket.create_server(("127.0.0.1", swaps.get("port", 0)))
        self.port: int = self.socket.getsockname()[1]
        self.env: Mapping[str, str] = swaps.get("env", {"SERVICE_PORT": str(self.port)})
        self.listed: list[Mapping[str, Any]] = swaps.get("listed", [])
        self.stays = swaps.get("stays", False)
        self.accepted: list[socket.socket] = []
        self.mark: Mapping[str, Any] = swaps.get("mark", {"unknown": True})
        self.note: Callable[[Mapping[str, Any]], None] = swaps.get("note", self.listed.append)

    def calls(self) -> Sequence[Mapping[str, Any]]:
        return self.listed

    def state(self) -> Mapping[str, Any]:
        return {"calls": len(self.listed)}

    def close(self) -> None:
        if not self.stays:
            self.socket.close()


class ListeningService(Service[None]):
    api = "service/1.0"

    def __init__(self, host: Host, make: Callable[[], Listener]) -> None:
        super().__init__(None, host)
        self.make = make
        self.opened: list[Listener] = []

    def open(self, seed: Path | None, deadline: Deadline) -> Listener:
        self.opened.append(self.make())
        return self.opened[-1]

    def close(self, deadline: Deadline) -> None:
        for listener in self.opened:
            for connection in (listener.socket, *listener.accepted):
                connection.close()


def serving(make: Callable[[], Listener]) -> type[ServiceContract]:
    class Made(ServiceContract):
        def make(self, host: Host) -> ListeningService:
            return ListeningService(host, make)

        def use(self, running: Any) -> None:
            running.note({"method": "GET"})

        def miss(self, running: Any) -> None:
            running.note({"method": "GET", "path": "/x"} | running.mark)

    return Made


class TestListeningService(serving(Listener)):
    pass


def one_for_all() -> Callable[[], Listener]:
    """Return a maker whose services share one list of calls."""
    listed: list[Mapping[str, Any]] = []
    return lambda: Listener(listed=listed)


def on_one_port() -> Callable[[], Listener]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def make() -> Listener:
        listener = Listener(port=port)
        threading.Event().wait(0.1)
        return listener

    return make


class Forgetful(Listener):
    """Writes its list anew for each call, and takes a while."""

    def __init__(self) -> None:
        super().__init__(note=self.write)

    def write(self, call: Mapping[str, Any]) -> None:
        known = [*self.listed, call]
        threading.Event().wait(0.02)
        self.listed = known


class Faithful(Listener):
    """Keeps every connection that was made to it."""

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.setblocking(False)
            while True:
                self.accepted.append(self.socket.accept()[0])
        super().close()


SERVICES: list[tuple[str, Callable[[], Listener]]] = [
    ("test_port_of_loopback_listens_until_closed", lambda: Listener(stays=True)),
    ("test_environment_is_text", lambda: Listener(env={})),
    ("test_environment_is_text", lambda: Listener(env={"PORT": 80})),
    ("test_calls_and_state_are_json", lambda: Listener(listed=[{"method": "before the trial"}])),
    ("test_calls_are_remembered_and_apart", one_for_all()),
    ("test_eight_services_at_once", on_one_port()),
    ("test_eight_clients_at_once_lose_no_call", Forgetful),
    ("test_unknown_route_is_marked", lambda: Listener(mark={})),
    ("test_close_ends_open_connections", Faithful),
]


@pytest.mark.parametrize(("check", "broken"), IMPORTERS, ids=[f"{n}-{check}" for n, (check, _) in enumerate(IMPORTERS)])
def test_check_fails_on_its_broken_importer(check: str, broken: type[ImporterContract], prove: Any) -> None:
    prove(broken, check)


@pytest.mark.parametrize(("check", "write"), EXPORTERS, ids=[check for check, _ in EXPORTERS])
def test_check_fails_on_its_broken_exporter(check: str, write: Write, prove: Any) -> None:
    prove(exporting(write), check)


@pytest.mark.parametrize(("check", "make"), SERVICES, ids=[f"{n}-{check}" for n, (check, _) in enumerate(SERVICES)])
def test_check_fails_on_its_broken_service(check: str, make: Callable[[], Listener], prove: Any) -> None:
    prove(serving(make), check)


def test_every_check_has_a_broken_plugin(checks: Any) -> None:
    assert checks(ImporterContract) == {check for check, _ in IMPORTERS}
    assert checks(ExporterContract) == {check for check, _ in EXPORTERS}
    assert checks(ServiceContract) == {check for check, _ in SERVICES}
