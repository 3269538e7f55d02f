"""The file in which an agent tells what it uses, beside its workspace."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from evalwright.model import Usage
from evalwright.model.reported_usage import MAX_BYTES, MAX_MODEL, usage_from

__all__ = ["MAX_BYTES", "MAX_MODEL", "USAGE_FILE", "peek", "usage_from"]

USAGE_FILE = "usage.json"


def peek(exchange: Path) -> Usage | None:
    """Return what the file says while the agent still runs; ``None`` for none, and for one that is being written."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(exchange / USAGE_FILE, flags)
        with os.fdopen(descriptor, "rb") as file:
            return usage_from(file.read(MAX_BYTES + 1)) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    except (OSError, ValueError):
        return None
