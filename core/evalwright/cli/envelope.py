"""What a verb answers, and the envelope in which machines get it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from evalwright import __version__
from evalwright.canonical import digest_text, finite, stable_json
from evalwright.cli.contract import CONTRACT_VERSION

__all__ = ["Reply", "envelope", "paged"]

Record = dict[str, Any]


class Reply:
    """A verb's answer. ``text`` is for people; ``body`` is a raw document that is printed in every mode.

    ``commands`` are paste-ready next steps ``{command, rationale}``; ``pagination`` goes into ``meta``. A plain class, since
    importing ``dataclasses`` would cost more than a verb that answers from literals.
    """

    def __init__(
        self,
        *,
        data: Any,
        text: str = "",
        body: str | None = None,
        exit_code: int = 0,
        errors: list[Record] | None = None,
        pagination: Record | None = None,
    ) -> None:
        self.data = data
        self.text = text
        self.body = body
        self.exit_code = exit_code
        self.errors = errors or []
        self.warnings: list[Record] = []
        self.commands: list[Record] = []
        self.pagination = pagination

    def then(self, command: str, rationale: str) -> Reply:
        """Add a next step and return self."""
        self.commands.append({"command": command, "rationale": rationale})
        return self


def envelope(reply: Reply, started: float) -> str:
    """Return the one line for stdout: keys sorted, no NaN, no lone surrogate. ``started`` is a monotonic time."""
    ok = not reply.errors
    text = stable_json(finite(reply.data) if ok else None)
    meta: Record = {
        "request_id": f"req_{os.urandom(10).hex()}",
        "ts_iso": _timestamp(os.environ),
        "data_hash": digest_text(text) if ok else None,
        "contract_version": CONTRACT_VERSION,
        "elapsed_ms": int((time.monotonic() - started) * 1000),
    }
    if reply.pagination:
        meta["pagination"] = reply.pagination
    document = {
        "ok": ok,
        "tool_version": __version__,
        "meta": meta,
        "warnings": finite(reply.warnings),
        "commands": finite(reply.commands),
        "errors": finite(reply.errors),
    }
    parts = {key: stable_json(value) for key, value in document.items()} | {"data": text}
    return "{" + ",".join(f'"{key}":{parts[key]}' for key in sorted(parts)) + "}"


def paged(entries: list[Any], key: str, limit: int | None, cursor: str | None) -> tuple[list[Any], Record]:
    """Return one page of ``entries`` (records with ``key``, in order) and its pagination record.

    A page starts after the entry that ``cursor`` names; one that no longer exists starts at the next greater key.
    """
    start = 0
    if cursor is not None:
        names = [entry[key] for entry in entries]
        start = names.index(cursor) + 1 if cursor in names else sum(name <= cursor for name in names)
    page = entries[start : None if limit is None else start + limit]
    more = start + len(page) < len(entries)
    following = page[-1][key] if more and page else None
    return page, {"limit": limit, "cursor": cursor, "next_cursor": following, "has_more": more}


def _timestamp(environment: Mapping[str, str]) -> str:
    epoch = environment.get("SOURCE_DATE_EPOCH", "")
    seconds = float(epoch) if epoch.isdecimal() and len(epoch) < 12 else time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"
