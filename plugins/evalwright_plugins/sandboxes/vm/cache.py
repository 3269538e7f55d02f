"""The directory that keeps kernels, roots, images and snapshots, each under the digest of what it is made of."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Collection, Generator, Mapping
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["Cache", "digest_of", "file_digest"]

VARIABLE = "EVALWRIGHT_VM_CACHE"
KEY_LENGTH = 24
CHUNK_BYTES = 1 << 20


class Cache:
    """A directory of things that are made once each. Safe for several processes at once.

    The directory is the one given, else ``EVALWRIGHT_VM_CACHE``, else ``evalwright/vm`` in the user's cache directory.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        chosen = directory or os.environ.get(VARIABLE)
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        self.directory = Path(chosen) if chosen else Path(home, "evalwright", "vm")

    def prepare(self) -> None:
        """Make the directory, and look whether something can be kept in it. Raises ``OSError``."""
        with self._lock_file("build"):
            return

    def place(self, kind: str, key: str) -> Path:
        """Return where something of a kind lies, or would lie."""
        return self.directory / kind / key

    @contextlib.contextmanager
    def making(self, kind: str, key: str) -> Generator[Path | None]:
        """Give an empty directory to make something in, or ``None`` when it is there already.

        The directory becomes the thing when the block ends without an exception. Of several processes that want the same
        thing one makes it, and the others wait.
        """
        place = self.place(kind, key)
        place.parent.mkdir(parents=True, exist_ok=True)
        with self.locked(f"{kind}-{key}"):
            if place.is_dir():
                yield None
                return
            draft = place.with_name(f".{key}-{secrets.token_hex(4)}")
            draft.mkdir(mode=0o755)
            try:
                yield draft
                draft.rename(place)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise

    def use(self, kind: str, key: str) -> IO[str]:
        """Return a file that keeps a thing from being pruned for as long as it is open."""
        file = self._lock_file(f"use-{kind}-{key}")
        fcntl.flock(file, fcntl.LOCK_SH)
        return file

    def prune(self, kind: str, wanted: Collection[str]) -> list[str]:
        """Remove everything of a kind that is neither wanted nor in use, and return the keys of what went."""
        gone: list[str] = []
        for place in (self.directory / kind).glob("[!.]*"):
            if place.name not in wanted:
                with self._lock_file(f"use-{kind}-{place.name}") as file, contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(place)
                    gone.append(place.name)
        return gone

    @contextlib.contextmanager
    def locked(self, name: str) -> Generator[None]:
        """Let one process at a time into the block."""
        with self._lock_file(name) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _lock_file(self, name: str) -> IO[str]:
        locks = self.directory / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        return open(locks / name, "w", encoding="utf-8")

    def read(self, name: str, *, touch: bool = False) -> dict[str, Any]:
        """Return a small record, an empty one when there is none; with ``touch`` it counts as used now."""
        try:
            found: Any = json.loads((self.directory / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        if touch:
            with contextlib.suppress(OSError):
                os.utime(self.directory / name)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def recent(self, pattern: str, seconds: float) -> list[dict[str, Any]]:
        """Return the records that were used within so many seconds; the others are removed."""
        found: list[dict[str, Any]] = []
        for path in sorted(self.directory.glob(pattern)):
            if time.time() - path.stat().st_mtime > seconds:
                path.unlink(missing_ok=True)
            else:
                found.append(self.read(path.name))
        return found

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Keep a small record."""
        self.directory.mkdir(parents=True, exist_ok=True)
        draft = self.directory / f".{name}-{secrets.token_hex(4)}"
        draft.write_text(json.dumps(record, indent=2, sort_keys=True), encoding="utf-8")
        draft.replace(self.directory / name)


def digest_of(*parts: object) -> str:
    """Return a short digest of values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:KEY_LENGTH]


def file_digest(path: Path) -> str:
    """Return a short digest of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()[:KEY_LENGTH]
