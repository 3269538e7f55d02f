"""The key under which the evidence of a step is found again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import canonical_json, digest_text

__all__ = ["reuse_key"]


def reuse_key(tree: str, worker: str, table: Mapping[str, Any], prompt_digest: str, toolchain: Mapping[str, str]) -> str:
    """Return ``sha256:...`` over the canonical JSON of all that a step's result depends on.

    ``tree`` is git's tree of the candidate, ``worker`` the reference of the runner and ``table`` its configuration;
    ``toolchain`` maps programs to their versions and lock files to their digests. Raises ``TypeError`` for a value that has
    no JSON form.
    """
    parts = {"tree": tree, "worker": worker, "table": table, "promptDigest": prompt_digest, "toolchain": toolchain}
    return digest_text(canonical_json(parts))
