"""The append-only event log: one JSON object a line, each naming the digest of the one before.

``digest`` is the sha256 of the canonical JSON of the event without ``digest``; the first ``prev`` is :data:`GENESIS`. A head
record ``{seq, digest}`` beside the log is replaced after each commit: shorter than the log is normal after a crash, longer
means that the log's tail was cut off.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from evalwright.canonical import canonical_json, digest_bytes, digest_text, is_object
from evalwright.errors import LedgerDamaged, RunBusy

__all__ = ["GENESIS", "Damage", "Event", "Ledger", "first_damage", "last_event", "read_events", "stream_events"]

GENESIS = "sha256:GENESIS"
VERSION = 1
LOCK_PAUSE_SECONDS = 0.01
HEAD_SECONDS = 0.1
TAIL_BYTES = 1 << 16
LINE = re.compile(
    rb'\{(?P<v>"v":\d+),(?P<seq>"seq":\d+),(?P<ts>"ts":"[^"]*"),(?P<run>"run":"[^"]*"),(?:(?P<work>"work":"[^"]*"),)?'
    rb'(?P<type>"type":"[^"]*"),(?P<actor>"actor":\{[^{}]*\}),(?P<data>"data":\{.*\}),(?P<prev>"prev":"[^"]*"),'
    rb'"digest":"[^"]*"\}\n?'
)
PARTS = sorted(LINE.groupindex)
Event = dict[str, Any]
Reading = Callable[[Event], object]


class Damage(NamedTuple):
    """The first place where a ledger does not verify. ``line`` counts from 1; ``after_seq`` is the last good event."""

    line: int
    after_seq: int
    code: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        """Return all fields."""
        return self._asdict()


class Ledger:
    """A ledger opened for append by its one writer. Not thread-safe: the coordinator's thread owns it.

    Opening verifies the whole chain once. A torn last line is moved aside to ``<name>.torn`` and recorded; damage anywhere
    else raises :class:`LedgerDamaged`. ``repaired`` tells that there was such a line.

    Only one writer can have it open; another gets ``RunBusy`` once its ``patience`` (seconds) is over.
    :meth:`append` writes, :meth:`commit` makes everything written durable. ``read`` gets each event that the
    ledger held when it was opened. ``work`` is what a workflow's run is about, and stands in each event.
    """

    def __init__(
        self, path: Path, *, run: str, work: str | None = None, patience: float = 0.0, read: Reading | None = None
    ) -> None:
        self.path = path
        self.run = run
        self.work = work
        self._names = f'"run":{canonical_json(run)}', "" if work is None else f',"work":{canonical_json(work)}'
        self.seq = 0
        self.digest = GENESIS
        self._size = 0
        self._durable = self._head = 0
        self._headed = -HEAD_SECONDS
        self.head_path = head_of(path)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._lock(time.monotonic() + patience)
            torn = self._load(read)
            if torn:
                self._set_aside(torn)
        except BaseException:
            os.close(self._descriptor)
            raise
        self.repaired = bool(torn)

    def append(self, type: str, data: Mapping[str, Any], *, actor: str = "coordinator", kind: str = "kernel") -> Event:
        """Write one event and return it. Raises ``OSError`` when the disk is full, and then nothing was written."""
        event: Event = {"v": VERSION, "seq": self.seq + 1, "ts": _now(), "run": self.run}
        event |= {} if self.work is None else {"work": self.work}
        event |= {"type": type, "actor": {"kind": kind, "id": actor}, "data": dict(data), "prev": self.digest}
        digest, line = self._texts(event)
        self._write(line.encode())
        event["digest"] = digest
        self.seq, self.digest = event["seq"], digest
        return event

    def _texts(self, event: Event) -> tuple[str, str]:
        """Return the digest of an event, and its line: the same values, sorted by key for the one and not for the other."""
        ours, work = self._names
        start, when = f'"seq":{event["seq"]}', f'"ts":"{event["ts"]}"'
        what = f'"type":{canonical_json(event["type"])}'
        actor, data = f'"actor":{canonical_json(event["actor"])}', f'"data":{canonical_json(event["data"])}'
        previous = f'"prev":"{event["prev"]}"'
        digest = digest_text(f'{{{actor},{data},{previous},{ours},{start},{when},{what},"v":{VERSION}{work}}}')
        line = f'{{"v":{VERSION},{start},{when},{ours}{work},{what},{actor},{data},{previous},"digest":"{digest}"}}\n'
        return digest, line

    def commit(self) -> None:
        """Make every event so far durable; the head record follows at once, or within a tenth of a second of commits."""
        os.fdatasync(self._descriptor)
        self._durable = self.seq
        if time.monotonic() - self._headed > HEAD_SECONDS:
            self._replace_head()

    def _replace_head(self) -> None:
        self._headed = time.monotonic()
        self._head = self.seq
        aside = self.head_path.with_name(self.head_path.name + ".new")
        aside.write_text(json.dumps({"seq": self.seq, "digest": self.digest}), encoding="utf-8", newline="")
        os.replace(aside, self.head_path)

    def close(self) -> None:
        """Close the file, after the head record was brought up to what is durable."""
        if self._descriptor >= 0:
            if self._durable == self.seq > self._head:
                with contextlib.suppress(OSError):
                    self._replace_head()
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Ledger:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()

    def _lock(self, give_up: float) -> None:
        """Keep every other writer out for as long as the file is open."""
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                if time.monotonic() >= give_up:
                    raise RunBusy(f"{self.path} is being written by somebody else", hint="try again later") from error
                time.sleep(LOCK_PAUSE_SECONDS)

    def _write(self, line: bytes) -> None:
        if os.fstat(self._descriptor).st_size != self._size:
            raise RunBusy(f"{self.path} was changed by somebody else", hint="let one process write a run")
        try:
            written = os.write(self._descriptor, line)
        except OSError:
            os.ftruncate(self._descriptor, self._size)
            raise
        if written != len(line):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(28, "No space left on device", str(self.path))
        self._size += written

    def _load(self, read: Reading | None) -> bytes:
        torn = bytearray()
        self._size = os.fstat(self._descriptor).st_size
        for event in _verified(self.path, read_head(self.head_path), torn):
            self.seq, self.digest = event["seq"], event["digest"]
            if read:
                read(event)
        return bytes(torn)

    def _set_aside(self, torn: bytes) -> None:
        with self.path.with_name(self.path.name + ".torn").open("ab") as file:
            file.write(torn + b"\n")
        self._size -= len(torn)
        os.ftruncate(self._descriptor, self._size)
        self.append("LEDGER_TAIL_REPAIRED", {"bytes": len(torn)})


def read_events(path: Path) -> list[Event]:
    """Return all events of a ledger, as :func:`stream_events` gives them."""
    return list(stream_events(path))


def stream_events(path: Path) -> Iterator[Event]:
    """Yield the events of a ledger, each verified; a torn last line is left out, and nothing is repaired.

    Raises :class:`LedgerDamaged` for damage anywhere else once that is reached, ``OSError`` when the file cannot be read.
    """
    return _verified(path, read_head(head_of(path)), bytearray())


def last_event(path: Path) -> Event | None:
    """Return the last event of a ledger, if its digest is right and the one that the head record names; else ``None``.

    What stands before it is not verified. Raises as :func:`read_events`.
    """
    head = read_head(head_of(path))
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        content = file.read()
    end = content.rfind(b"\n") + 1
    line, torn = content[content.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end], content[end:]
    event = _parsed(line)
    vouched = event is not None and not torn and {"seq": event.get("seq"), "digest": event.get("digest")} == head
    return event if event is not None and vouched and _has_its_digest(event, line) else None


def first_damage(path: Path) -> Damage | None:
    """Return the first damage of a ledger, a torn tail included, or ``None`` for a whole one."""
    seq = line = 0
    torn = bytearray()
    try:
        for event in _verified(path, read_head(head_of(path)), torn):
            seq, line = event["seq"], line + 1
    except LedgerDamaged as error:
        details = error.details
        return Damage(line=details["line"], after_seq=details["after_seq"], code=details["damage"], reason=details["reason"])
    if torn:
        return Damage(line=line + 1, after_seq=seq, code="torn_tail", reason="the last line is incomplete")
    return None


def head_of(ledger: Path) -> Path:
    """Return where a ledger's head record lies. Read it before the ledger: a live writer may be between the two."""
    return ledger.with_name(ledger.name.removesuffix(".jsonl") + ".head.json")


def read_head(path: Path) -> Mapping[str, Any]:
    """Return the head record, an empty one when there is none. Raises ``LedgerDamaged`` for a file that is no head record.

    It is always replaced as a whole, so no crash can leave half of one.
    """
    try:
        head = json.loads(path.read_bytes())
    except OSError:
        return {}
    except ValueError:
        head = None
    if is_object(head) and type(head.get("seq")) is int and isinstance(head.get("digest"), str):
        return head
    raise _damaged(path, 1, 0, "bad_head", "the head record is not {seq, digest}")


def _verified(path: Path, head: Mapping[str, Any], torn: bytearray) -> Iterator[Event]:
    """Yield each event whose place, link and digest are right, one line held at a time; raise at the first that is not.

    What stands behind the last line feed goes into ``torn``.
    """
    seq, previous, number = 0, GENESIS, 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                torn += line
                break
            number += 1
            event = _parsed(line)
            problem = _problem(event, line, seq, previous)
            if event is None or problem:
                raise _damaged(path, number, seq, *(problem or ("not_json", "the line is not a JSON object")))
            seq, previous = event["seq"], event["digest"]
            if seq == head.get("seq") and previous != head.get("digest"):
                raise _damaged(path, number, seq - 1, "rewritten", "the head record names another digest for this event")
            yield event
    if isinstance(head.get("seq"), int) and head["seq"] > seq:
        raise _damaged(path, number + 1, seq, "chopped", f"the head record says that {head['seq']} events were written")


def _parsed(line: bytes) -> Event | None:
    try:
        event = json.loads(line.decode())
    except (ValueError, RecursionError):
        return None
    return event if is_object(event) else None


def _problem(event: Event | None, line: bytes, seq: int, previous: str) -> tuple[str, str] | None:
    if event is None:
        return None
    if type(event.get("seq")) is not int or event["seq"] != seq + 1:
        return "wrong_seq", f"sequence {event.get('seq')} stands where {seq + 1} belongs"
    if event.get("prev") != previous:
        return "broken_link", "prev is not the digest of the event before"
    if not _has_its_digest(event, line):
        return "wrong_digest", "the event does not have the digest that it claims"
    return None


def _has_its_digest(event: Event, line: bytes) -> bool:
    """Tell whether an event has the digest that it claims.

    The parts of a line as :meth:`Ledger.append` writes it are canonical, and only need another order.
    """
    written = LINE.fullmatch(line)
    if written:
        parts = filter(None, written.group(*PARTS))
        if digest_bytes(b"{" + b",".join(parts) + b"}") == event.get("digest"):
            return True
    body = {key: value for key, value in event.items() if key != "digest"}
    return digest_text(canonical_json(body)) == event.get("digest")


def _damaged(path: Path, line: int, after_seq: int, code: str, reason: str) -> LedgerDamaged:
    error = LedgerDamaged(
        f"{path}:{line}: {reason} (after sequence {after_seq})",
        hint="restore the file from a copy; a damaged ledger is never repaired in the middle",
        file=str(path),
        line=line,
    )
    error.details = dict(error.details) | {"after_seq": after_seq, "damage": code, "reason": reason}
    return error


def _now() -> str:
    seconds, rest = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1_000_000:03}Z"
