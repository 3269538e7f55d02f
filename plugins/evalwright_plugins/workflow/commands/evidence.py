"""Whether a ledger is as it was written, by the rules too, and whether the evidence that it names still is."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.canonical import digest_bytes
from evalwright.errors import LedgerDamaged, SourceMissing
from evalwright.ledger import Event, first_damage, read_events
from evalwright_plugins.workflow.record import State, advance

__all__ = ["Evidence", "checked_events", "evidence_of", "ledger_in"]

NAMES = ("ledger.jsonl", "events.jsonl")
KEPT = ("logs", "outputs")
NOTHING = frozenset({digest_bytes(b""), digest_bytes(b"{}")})
"""What stands in a ledger for a file that a step did not write."""

CHUNK_BYTES = 1 << 20
HINT = "restore the file from a copy; a damaged ledger is never repaired in the middle"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The files that a ledger names: how many are as they were, which are gone, and which are not the same."""

    intact: int = 0
    missing: list[str] = field(default_factory=list[str])
    changed: list[str] = field(default_factory=list[str])

    def as_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"intact": self.intact, "missing": self.missing, "changed": self.changed}


def checked_events(path: Path) -> tuple[list[Event], State]:
    """Return the events of a ledger and the state that they add up to.

    Raises ``LedgerDamaged`` with ``line``, ``after_seq``, ``damage`` and ``reason`` for the first place where the chain breaks,
    the last line is torn, or an event breaks the rules of a run; ``SourceMissing`` when it cannot be read.
    """
    state = State()
    try:
        damage = first_damage(path)
        events = [] if damage else read_events(path)
    except OSError as error:
        raise SourceMissing(f"{path} cannot be read: {error.strerror}", hint="name a ledger that can be read") from error
    if damage:
        raise _damaged(path, damage.line, damage.after_seq, damage.code, damage.reason)
    for line, event in enumerate(events, 1):
        try:
            advance(state, event)
        except LedgerDamaged as error:
            raise _damaged(path, line, state.seq, error.details["damage"], error.details["reason"]) from error
    return events, state


def evidence_of(directory: Path, events: Iterable[Event]) -> Evidence:
    """Return how the files stand that evidence names, in ``logs`` and ``outputs`` of a run's directory."""
    intact, missing, changed = 0, list[str](), list[str]()
    for event in events:
        if event["type"] != "EVIDENCE_RECORDED":
            continue
        name, digest = _kept(str(event["data"].get("evidenceRef"))), event["data"].get("digest")
        found = _digest(directory / name)
        if found is None and digest not in NOTHING:
            missing.append(name)
        elif found is not None and found != digest:
            changed.append(name)
        else:
            intact += 1
    return Evidence(intact, missing, changed)


def ledger_in(directory: Path) -> Path:
    """Return the ledger of a run's directory, of a foreign one too. Raises ``SourceMissing`` for none, and for several."""
    found = [directory / name for name in NAMES if (directory / name).is_file()]
    found = found or sorted(path for path in directory.glob("*.events.jsonl") if path.is_file())
    if len(found) == 1:
        return found[0]
    what = f"has {len(found)} ledgers" if found else "holds no ledger" if directory.is_dir() else "is not a directory"
    hint = f"name the directory of one run: it has {NAMES[0]}, {NAMES[1]} or RUN.{NAMES[1]} beside logs and outputs"
    raise SourceMissing(f"{directory} {what}", hint=hint)


def _kept(reference: str) -> str:
    """Return where a file lies in a run's directory; foreign references begin at the top of their repository."""
    parts = PurePosixPath(reference).parts[-2:]
    return "/".join(parts) if len(parts) == 2 and parts[0] in KEPT and ".." not in parts else reference.replace("..", "_")


def _digest(path: Path) -> str | None:
    """Return the digest of a regular file, ``None`` where there is none; links are not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    content = hashlib.sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        while block := file.read(CHUNK_BYTES):
            content.update(block)
    return f"sha256:{content.hexdigest()}"


def _damaged(path: Path, line: int, after_seq: int, damage: str, reason: str) -> LedgerDamaged:
    message = f"{path}:{line}: {reason} (after sequence {after_seq})"
    return LedgerDamaged(message, hint=HINT, file=str(path), line=line, after_seq=after_seq, damage=damage, reason=reason)
