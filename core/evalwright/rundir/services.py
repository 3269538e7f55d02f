"""The records of a trial's services: ``services/NAME.calls.jsonl``, ``services/NAME.state.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.canonical import is_object
from evalwright.errors import RunCorrupt
from evalwright.model import ServiceRecord
from evalwright.rundir.bundle import BundleWriter
from evalwright.rundir.documents import read_object, render_compact

__all__ = ["read_services", "write_services"]

DIRECTORY = "services"
CALLS = ".calls.jsonl"
STATE = ".state.json"


def write_services(bundle: BundleWriter, records: Mapping[str, ServiceRecord]) -> None:
    """Write the record of each service. A last line ``{"dropped": n}`` counts calls that are not in it."""
    for name, record in records.items():
        lines = [*record.calls, *([{"dropped": record.dropped}] if record.dropped else [])]
        bundle.write_text(f"{DIRECTORY}/{name}{CALLS}", "".join(render_compact(line) for line in lines))
        bundle.write_document(f"{DIRECTORY}/{name}{STATE}", dict(record.state))


def read_services(directory: Path) -> dict[str, ServiceRecord]:
    """Return the records of one case's services by name. Raises ``RunCorrupt`` naming a file that cannot be read."""
    found: dict[str, ServiceRecord] = {}
    for path in sorted((directory / DIRECTORY).glob(f"*{STATE}")):
        name = path.name.removesuffix(STATE)
        calls = _calls(path.with_name(name + CALLS))
        dropped = calls.pop()["dropped"] if calls and set(calls[-1]) == {"dropped"} else 0
        found[name] = ServiceRecord(calls=tuple(calls), state=read_object(path), dropped=dropped)
    return found


def _calls(path: Path) -> list[dict[str, Any]]:
    try:
        calls = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    except (OSError, ValueError, RecursionError) as error:
        raise RunCorrupt(f"{path} cannot be read: {error}", hint="restore the file", file=str(path)) from error
    if not all(is_object(call) for call in calls):
        raise RunCorrupt(f"{path} must hold one JSON object a line", hint="restore the file", file=str(path))
    return calls
