"""Clones that share their blocks with the store, on a file system that can do that: a btrfs in a file."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.workspace.conftest import write_fixture
from tests.workspace.edits import EDITS

from evalwright.store import DirectoryStore
from evalwright.workspace import Cloner, Fixture, Scratch
from evalwright.workspace.scan import scan
from evalwright.workspace.stamps import notes_writes

LARGE = 32 << 20


@pytest.fixture
def btrfs(tmp_path: Path, require: Callable[[str], None]) -> Iterator[Path]:
    """Return the root of a small btrfs."""
    require("mkfs.btrfs")
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    image, root = tmp_path / "image", tmp_path / "btrfs"
    with image.open("wb") as file:
        file.truncate(300 << 20)
    root.mkdir()
    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, capture_output=True)
    mounted = subprocess.run(["mount", "-o", "loop", str(image), str(root)], check=False, capture_output=True)
    if mounted.returncode != 0:
        if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
            pytest.fail(mounted.stderr.decode())
        pytest.skip("a btrfs in a file cannot be mounted here")
    yield root
    subprocess.run(["umount", str(root)], check=True)


def test_clone_shares_blocks_until_one_side_is_written(btrfs: Path) -> None:
    source = btrfs / "source"
    source.mkdir()
    write_fixture(source)
    (source / "large").write_bytes(os.urandom(LARGE))
    store = DirectoryStore(btrfs / "store")
    digest = store.put_tree(source)
    fixture = Fixture(digest, store.tree(digest), store.verified)
    scratch = Scratch(btrfs / "scratch")
    os.sync()
    free = os.statvfs(btrfs).f_bavail

    clone = Cloner("reflink").clone(fixture, scratch.place(0))

    os.sync()
    assert (free - os.statvfs(btrfs).f_bavail) * os.statvfs(btrfs).f_frsize < LARGE / 2
    assert clone.scan() == scan(clone.place.workspace) == fixture.manifest
    with (clone.place.workspace / "large").open("r+b") as file:
        file.write(b"changed")
    assert (source / "large").read_bytes()[:7] != b"changed"
    assert store.verified(next(e.sha256 or "" for e in fixture.manifest.entries if e.path == "large"))
    scratch.close()


def test_after_every_edit_the_quick_answer_is_the_whole_one(btrfs: Path) -> None:
    source = btrfs / "source"
    source.mkdir()
    write_fixture(source)
    store = DirectoryStore(btrfs / "store")
    digest = store.put_tree(source)
    scratch = Scratch(btrfs / "scratch")
    assert notes_writes(btrfs)
    for seed in range(4):
        clone = Cloner("reflink").clone(Fixture(digest, store.tree(digest), store.verified), scratch.place(0))
        for edit in EDITS:
            with contextlib.suppress(OSError):
                edit(clone.place.workspace, random.Random(seed))

        assert clone.scan() == scan(clone.place.workspace)
    scratch.close()
