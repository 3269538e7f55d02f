"""Replies of judges on disk, by the digest of everything that was asked."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_json
from evalwright.interfaces import JudgeReply

__all__ = ["ReplyCache"]

FORMAT = 1
MAX_BYTES = 16 << 20


class ReplyCache:
    """One file a reply, written aside and renamed, so that readers and other writers never see half of one.

    A file that is damaged, of another format or not this key's counts as absent. A cache that cannot be written is none.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, key: str) -> JudgeReply | None:
        """Return the reply kept under a ``sha256:`` key."""
        try:
            with self._path(key).open("rb") as file:
                record: Any = json.loads(file.read(MAX_BYTES))
            if record["format"] != FORMAT or record["key"] != key or record["digest"] != digest_json(record["reply"]):
                return None
            return JudgeReply.from_json(record["reply"])
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None

    def put(self, key: str, reply: JudgeReply) -> None:
        """Keep a reply."""
        document = reply.as_json()
        record = {"format": FORMAT, "key": key, "digest": digest_json(document), "reply": document}
        data = json.dumps(record, sort_keys=True).encode("ascii")
        path = self._path(key)
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.replace(name, path)
            except OSError:
                os.unlink(name)
                raise

    def _path(self, key: str) -> Path:
        name = key.removeprefix("sha256:")
        return self._directory / name[:2] / f"{name}.json"
