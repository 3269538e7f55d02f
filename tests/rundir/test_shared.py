"""Files that many bundles hold: one file where that can be, never a damaged one, and always with the right digest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.canonical import digest_bytes
from evalwright.rundir import BundleWriter, SharedFile, changed_artifacts, sealed_digests
from evalwright.rundir.shared import MOST_OPEN
from evalwright.testing import in_threads

DATA = b"content\n" * 10_000


@pytest.fixture
def shared() -> SharedFile:
    return SharedFile(DATA)


def put(shared: SharedFile, path: Path) -> int:
    """Give the file a place and return its inode."""
    shared.put(str(path))
    assert path.read_bytes() == DATA
    return path.stat().st_ino


def test_shared_file_is_one_in_all_bundles_and_each_seal_holds_its_digest(shared: SharedFile, tmp_path: Path) -> None:
    for case in ("a", "b"):
        bundle = BundleWriter(tmp_path / case)
        bundle.write_bytes("workspace-before.json", shared)
        bundle.write_bytes("workspace-after.json", shared)
        bundle.seal({})

    assert len({path.stat().st_ino for path in tmp_path.rglob("workspace-*.json")}) == 1
    for case in ("a", "b"):
        digests = sealed_digests(tmp_path / case) or {}
        assert digests == dict.fromkeys(("workspace-after.json", "workspace-before.json"), digest_bytes(DATA))
        assert changed_artifacts(tmp_path / case, digests) == []


def test_change_of_a_shared_file_is_noticed_in_every_bundle(shared: SharedFile, tmp_path: Path) -> None:
    for case in ("a", "b"):
        BundleWriter(tmp_path / case).write_bytes("file", shared)
    with (tmp_path / "a" / "file").open("r+b") as file:
        file.write(b"X")

    for case in ("a", "b"):
        assert changed_artifacts(tmp_path / case, {"file": shared.digest}) == ["file"]


def test_shared_file_finds_its_file_under_another_name(shared: SharedFile, tmp_path: Path) -> None:
    first = put(shared, tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "elsewhere")
    assert put(shared, tmp_path / "b") == first


def test_shared_file_is_written_anew_when_its_last_name_is_gone(shared: SharedFile, tmp_path: Path) -> None:
    put(shared, tmp_path / "a")
    (tmp_path / "a").unlink()
    second = put(shared, tmp_path / "b")
    assert put(shared, tmp_path / "c") == second


def test_shared_file_that_was_changed_gets_no_further_name(shared: SharedFile, tmp_path: Path) -> None:
    first = put(shared, tmp_path / "a")
    os.utime(tmp_path / "a", ns=(1, 1))
    second = put(shared, tmp_path / "b")
    os.truncate(tmp_path / "b", 5)
    assert put(shared, tmp_path / "c") not in (first, second)


def test_shared_file_is_copied_to_another_file_system(shared: SharedFile, tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("one file system is all there is")
    place = memory / f"{tmp_path.name}-{os.getpid()}"
    put(shared, tmp_path / "a")
    try:
        put(shared, place)
        assert put(shared, tmp_path / "b")
    finally:
        place.unlink()


def test_place_of_a_shared_file_must_be_free(shared: SharedFile, tmp_path: Path) -> None:
    put(shared, tmp_path / "a")
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(FileExistsError):
        shared.put(str(tmp_path / "taken"))
    assert (tmp_path / "taken").read_bytes() == b""
    put(shared, tmp_path / "b")


def test_shared_file_holds_no_descriptor_where_many_are_open(shared: SharedFile, tmp_path: Path) -> None:
    opened = [os.open(tmp_path, os.O_RDONLY) for _ in range(MOST_OPEN)]
    try:
        first = put(shared, tmp_path / "a")
        assert put(shared, tmp_path / "b") != first
    finally:
        for descriptor in opened:
            os.close(descriptor)
    third = put(shared, tmp_path / "c")
    assert put(shared, tmp_path / "d") == third


def test_closed_shared_file_can_be_put_again(shared: SharedFile, tmp_path: Path) -> None:
    first = put(shared, tmp_path / "a")
    shared.close()
    shared.close()
    assert put(shared, tmp_path / "b") != first


def test_many_threads_put_one_file(shared: SharedFile, tmp_path: Path) -> None:
    inodes = in_threads(lambda number: put(shared, tmp_path / str(number)), threads=8)
    assert len(set(inodes)) == 1
