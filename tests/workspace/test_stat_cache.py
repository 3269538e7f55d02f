"""Files of a fixture that were read before: told from their status, and read again whenever they may have changed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.conftest import write_fixture
from tests.workspace.edits import EDITS

from evalwright.model import Manifest
from evalwright.store import DirectoryStore
from evalwright.workspace import StatCache
from evalwright.workspace.scan import scan
from evalwright.workspace.stamps import notes_writes, tick_ago


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a large fixture whose files are older than a tick of the clock."""
    root = tmp_path / "source"
    root.mkdir()
    write_fixture(root)
    if not notes_writes(root):
        pytest.skip("this file system does not note every write")
    newest = max(path.lstat().st_ctime_ns for path in root.rglob("*"))
    while tick_ago() <= newest:
        time.sleep(0.001)
    return root


def plant(cache: Path, content: str) -> None:
    """Put other content in the place of what is remembered."""
    for path in cache.iterdir():
        path.write_text(content)


def lie(cache: Path) -> None:
    """Give every remembered file a digest that shows whether it was read."""
    for path in cache.iterdir():
        path.write_text(path.read_text().replace('"sha256": "sha256:', '"sha256": "sha256:remembered'))


def remembered(manifest: Manifest) -> set[str]:
    """Return the files that were not read."""
    return {entry.path for entry in manifest.entries if (entry.sha256 or "").startswith("sha256:remembered")}


def test_second_look_reads_only_what_changed(tmp_path: Path, source: Path) -> None:
    cache = StatCache(tmp_path / "cache")
    assert cache.scan(source) == scan(source)
    lie(tmp_path / "cache")
    status = (source / "large").stat()
    with (source / "large").open("r+b") as file:
        file.write(b"changed")
    os.utime(source / "large", ns=(status.st_atime_ns, status.st_mtime_ns))
    (source / "new").write_text("new")
    (source / "d1" / "s1" / "f1").unlink()

    found = StatCache(tmp_path / "cache").scan(source)

    files = {entry.path for entry in scan(source).entries if entry.kind == "file"}
    assert remembered(found) == files - {"large", "new"}


def test_file_as_young_as_a_tick_is_read_again(tmp_path: Path, source: Path) -> None:
    (source / "large").write_bytes(b"young")
    young = (source / "large").stat().st_ctime_ns
    StatCache(tmp_path / "cache", clock=lambda: young).scan(source)
    lie(tmp_path / "cache")

    assert "large" not in remembered(StatCache(tmp_path / "cache").scan(source))


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_every_edit_is_seen(tmp_path: Path, source: Path, edit: Callable[[Path, random.Random], None]) -> None:
    StatCache(tmp_path / "cache").scan(source)
    for seed in range(3):
        edit(source, random.Random(seed))

    assert StatCache(tmp_path / "cache").scan(source) == scan(source)


@pytest.mark.parametrize("content", ["", "{", "[]", "[[1]]", '[[1,2,3,4,5,{"path":"a"}]]', "null", "[null]", "\x00"])
def test_damaged_memory_costs_time_and_nothing_else(tmp_path: Path, source: Path, content: str) -> None:
    StatCache(tmp_path / "cache").scan(source)
    plant(tmp_path / "cache", content)

    assert StatCache(tmp_path / "cache").scan(source) == scan(source)


def test_store_takes_a_changed_fixture_in_as_what_it_is_now(tmp_path: Path, source: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    first = store.put_fixture(source)
    (source / "d2" / "s2" / "f2").write_bytes(b"other")

    second = store.put_fixture(source)

    assert first != second == DirectoryStore(tmp_path / "fresh").put_tree(source)
    assert store.put_fixture(source) == second
