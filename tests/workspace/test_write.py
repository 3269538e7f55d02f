"""Copies of single files: the same bytes, whatever their size and whatever the file system says of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.workspace.write import SMALL_BYTES, copy_file


@pytest.mark.parametrize("size", [0, 1, 4096, SMALL_BYTES - 1, SMALL_BYTES, SMALL_BYTES + 1, 3 * SMALL_BYTES])
def test_copy_has_every_byte(tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "a").write_bytes(content)

    copy_file(tmp_path / "a", tmp_path / "b", 0o640)

    assert (tmp_path / "b").read_bytes() == content
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o640


def test_file_that_holds_more_than_its_status_says_is_copied_whole(tmp_path: Path) -> None:
    source = Path("/proc/version")
    assert source.stat().st_size == 0

    copy_file(source, tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == source.read_bytes() != b""
