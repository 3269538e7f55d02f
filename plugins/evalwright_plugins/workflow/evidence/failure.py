"""A failure's fingerprint: whether the same step fails again in the same way."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_text
from evalwright_plugins.workflow.evidence.normal import normalised

__all__ = ["both_ends", "failure_fingerprint", "same_failure"]

END_BYTES = 128 * 1024
END_LINES = 500
COMPARED = ("step", "command", "exitCode", "errorDigest")


def failure_fingerprint(
    step: str, command: str, exit_code: int | None, output: str, diff_digest: str
) -> dict[str, str | int | None]:
    """Return the data of the event ``FAILURE_FINGERPRINT``; ``errorDigest`` covers the normalised output."""
    return {
        "step": step,
        "command": command,
        "exitCode": exit_code,
        "errorDigest": digest_text(normalised(output)),
        "diffDigest": diff_digest,
    }


def both_ends(log: Path) -> str:
    """Return what a fingerprint is made of: a log of up to 256 KiB, of a longer one the first and the last 500 lines, as far
    as they lie in its first and last 128 KiB; nothing where there is none.

    Lines, since two executions of the same failure differ in the length of what is normalised.
    """
    try:
        with log.open("rb") as file:
            head, size = file.read(END_BYTES), file.seek(0, os.SEEK_END)
            file.seek(max(END_BYTES, size - END_BYTES))
            tail = file.read(END_BYTES)
    except FileNotFoundError:
        return ""
    if size > 2 * END_BYTES:
        head, tail = b"\n".join(head.split(b"\n")[:END_LINES]) + b"\n", b"\n".join(tail.split(b"\n")[-END_LINES:])
    return (head + tail).decode("utf-8", "replace")


def same_failure(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two fingerprints are of the same failure, whatever the change that each of them was met with."""
    return all(name in one and name in other and one[name] == other[name] for name in COMPARED)
