"""The content store: trees and blobs by digest, in a directory that many processes may use at once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Collection, Generator
from pathlib import Path
from typing import Any, BinaryIO

from evalwright.canonical import digest_bytes, stable_json
from evalwright.errors import StoreError
from evalwright.interfaces import Store
from evalwright.model import Entry, Manifest
from evalwright.workspace import (
    StatCache,
    clear_abandoned,
    copy_file,
    digest_file,
    find_repositories,
    owned_name,
    remove_tree,
    restore,
    without_history,
)
from evalwright.workspace.scan import scan
from evalwright.workspace.stamps import Stamp, stamp_of

__all__ = ["CachedStore", "DirectoryStore", "transfer"]


class DirectoryStore(Store):
    """A store under one directory: ``blobs/ab/cdef...``, each written aside and renamed into place."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._verified: dict[str, tuple[Path, Stamp]] = {}

    def missing(self, digests: Collection[str]) -> set[str]:
        """Return those digests that have no blob."""
        return {digest for digest in digests if not self.place(digest).is_file()}

    def put(self, digest: str, source: BinaryIO) -> None:
        """Take a blob in, verifying its bytes on the way."""
        with self._aside() as aside:
            sha256 = hashlib.sha256()
            with aside.open("wb") as file:
                while chunk := source.read(1 << 20):
                    sha256.update(chunk)
                    file.write(chunk)
            if "sha256:" + sha256.hexdigest() != digest:
                raise StoreError(f"the bytes given for {digest} have another digest")
            self._settle(aside, digest)

    def open(self, digest: str) -> BinaryIO:
        """Open a blob for reading."""
        try:
            return self.path(digest).open("rb")
        except FileNotFoundError as error:
            raise StoreError(
                f"the content store lacks {digest}", hint=f"restore {self.root}, or import the run with its contents"
            ) from error

    def path(self, digest: str) -> Path:
        """Return where a blob lies. Raises ``StoreError`` for what is no digest."""
        return self.place(digest)

    def place(self, digest: str) -> Path:
        """Return where a blob lies or would lie. Raises ``StoreError`` for what is no digest."""
        kind, _, name = digest.partition(":")
        if kind != "sha256" or len(name) != 64 or not set(name) <= set("0123456789abcdef"):
            raise StoreError(f"{digest!r} is not a digest")
        return self.root / "blobs" / name[:2] / name[2:]

    def verified(self, digest: str) -> Path:
        """Return where a blob lies, after its bytes were compared with its digest.

        They are read once, and again when the file's inode, size or times say that it may have changed. Raises ``StoreError``.
        """
        if digest in self._verified:
            path, known = self._verified[digest]
            with contextlib.suppress(OSError):
                if stamp_of(os.stat(path)) == known:
                    return path
        path = self.path(digest)
        try:
            now = stamp_of(path.stat())
            if digest_file(path) != digest:
                raise StoreError(f"{path} was changed: it has another digest than its name", hint="remove the file")
            self._verified[digest] = path, now
        except OSError as error:
            raise StoreError(f"the content store lacks {digest}: {error.strerror}", hint=f"restore {self.root}") from error
        return path

    def put_bytes(self, data: bytes) -> str:
        """Take bytes in and return their digest."""
        digest = digest_bytes(data)
        if self.missing([digest]):
            with self._aside() as aside:
                aside.write_bytes(data)
                self._settle(aside, digest)
        return digest

    def put_file(self, path: Path, digest: str) -> None:
        """Take a file in whose digest is known, unless it is there already."""
        if self.missing([digest]):
            with self._aside() as aside:
                copy_file(path, aside)
                self._settle(aside, digest)

    def put_tree(self, directory: Path, *, skip: Callable[[bytes], bool] | None = None) -> str:
        """Take a directory in and return the digest of its tree; ``skip`` leaves out relative paths that it says yes to.

        FIFOs, sockets and devices are no content and are left out.
        """
        return self._put(directory, scan(directory, skip=skip))

    def put_fixture(self, directory: Path) -> str:
        """Take a fixture in as :meth:`put_tree` does; its repositories lose what their HEAD does not reach.

        Files whose status is that of the last time are not read again.
        """
        repositories = find_repositories(directory)
        if not repositories:
            return self._put(directory, StatCache(self.root / "stats").scan(directory))
        with self._aside() as aside:
            without_history(directory, aside, repositories)
            return self.put_tree(aside)

    def tree(self, digest: str) -> Manifest:
        """Return the manifest of a tree."""
        with self.verified(digest).open("rb") as file:
            return Manifest(tuple(Entry.from_json(record) for record in json.load(file)))

    def restore(self, digest: str, target: Path, *, owner: int | None = None) -> Manifest:
        """Write a tree into the existing directory ``target``, as files of ``owner`` if one is named; return its manifest."""
        manifest = self.tree(digest)
        restore(manifest, target, self.verified, owner=owner)
        return manifest

    def tidy(self) -> None:
        """Remove what processes that died in the middle of a ``put`` left."""
        clear_abandoned(self.root / "incoming")

    def _put(self, directory: Path, manifest: Manifest) -> str:
        for entry in manifest.entries:
            if entry.kind == "file":
                self.put_file(Path(os.fsdecode(os.fsencode(directory) + b"/" + entry.raw_path)), entry.sha256 or "")
        held = [_record(entry) for entry in manifest.entries if entry.kind != "other"]
        return self.put_bytes(stable_json(held).encode())

    @contextlib.contextmanager
    def _aside(self) -> Generator[Path]:
        """Give a path inside the store that is removed afterwards if it was not renamed."""
        waiting = self.root / "incoming"
        waiting.mkdir(parents=True, exist_ok=True)
        holder = Path(tempfile.mkdtemp(dir=waiting, prefix=f"{owned_name()}-"))
        try:
            yield holder / "content"
        finally:
            remove_tree(holder, inside=waiting)

    def _settle(self, aside: Path, digest: str) -> None:
        place = self.place(digest)
        place.parent.mkdir(parents=True, exist_ok=True)
        aside.chmod(0o444)
        os.replace(aside, place)


class CachedStore(DirectoryStore):
    """A directory that holds what was needed so far of another store: each blob is fetched, and verified, on first use."""

    def __init__(self, root: Path, remote: Store) -> None:
        super().__init__(root)
        self.remote = remote

    def path(self, digest: str) -> Path:
        """Return where a blob lies, fetched now if it is not here yet. Raises ``StoreError`` when the other store lacks it."""
        place = self.place(digest)
        if not place.is_file():
            with self.remote.open(digest) as source:
                self.put(digest, source)
        return place


def transfer(tree: str, source: DirectoryStore, target: Store) -> None:
    """Copy a tree and its blobs into another store, the tree itself last, leaving out what is there already."""
    if not target.missing([tree]):
        return
    blobs = {entry.sha256 for entry in source.tree(tree).entries if entry.sha256}
    for digest in (*sorted(target.missing(blobs)), tree):
        with source.open(digest) as file:
            target.put(digest, file)


def _record(entry: Entry) -> dict[str, Any]:
    """Return a tree's entry: what the manifest says, and the mode of directories too."""
    record = {name: getattr(entry, name) for name in ("path", "kind", "sha256", "size", "mode", "target", "broken", "path_b64")}
    return {name: value for name, value in record.items() if value is not None}
