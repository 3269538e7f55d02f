"""The digest of a file's content."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

__all__ = ["digest_file"]

FIRST_BYTES = 1 << 15
CHUNK_BYTES = 1 << 16
"""As large as is of use: a larger one is no faster, and what the allocator takes for it the process may never give back."""


def digest_file(path: str | bytes | Path) -> str:
    """Return the digest of a file's content, read in chunks; a link is never followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        chunk = os.read(descriptor, FIRST_BYTES)
        sha256 = hashlib.sha256(chunk)
        while chunk:
            chunk = os.read(descriptor, CHUNK_BYTES)
            sha256.update(chunk)
    finally:
        os.close(descriptor)
    return "sha256:" + sha256.hexdigest()
