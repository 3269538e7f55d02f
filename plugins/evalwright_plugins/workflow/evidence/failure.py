"""A failure's fingerprint: whether the same step fails again in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import digest_text
from evalwright_plugins.workflow.evidence.normal import normalised

__all__ = ["failure_fingerprint", "same_failure"]

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


def same_failure(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two fingerprints are of the same failure, whatever the change that each of them was met with."""
    return all(name in one and name in other and one[name] == other[name] for name in COMPARED)
