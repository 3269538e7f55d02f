"""Reading a tree: every path is there, none is followed, and what cannot be read is never silently absent."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalwright.canonical import digest_bytes
from evalwright.model import Manifest
from evalwright.model.manifest import changes_between, paths_of
from evalwright.store import DirectoryStore
from evalwright.workspace import UnreadableError, digest_file, fixture_problems
from evalwright.workspace.scan import scan


def kinds(manifest: Manifest) -> dict[str, str]:
    return {entry.path: entry.subtype or entry.kind for entry in manifest.entries}


def test_every_kind_of_path_is_listed_and_no_link_is_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "w", tmp_path / "outside"
    (root / "d").mkdir(parents=True)
    outside.mkdir()
    (outside / "f").write_text("x")
    (root / "d" / "f").write_text("f")
    (root / "link").symlink_to(outside)
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "s"))

    found = scan(root)

    assert kinds(found) == {
        "d": "directory", "d/f": "file", "dangling": "symlink", "fifo": "fifo", "link": "symlink", "s": "socket",
    }  # fmt: skip
    entries = {entry.path: entry for entry in found.entries}
    assert entries["d/f"].sha256 == digest_bytes(b"f")
    assert (entries["dangling"].broken, entries["link"].broken) == (True, False)


def test_root_that_is_a_link_is_refused_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    (tmp_path / "w").symlink_to(tmp_path / "outside")

    with pytest.raises(UnreadableError):
        scan(tmp_path / "w")


def test_root_that_is_gone_is_unreadable(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError):
        scan(tmp_path / "w")


def test_names_that_are_not_utf8_are_listed_with_their_exact_bytes(tmp_path: Path) -> None:
    name = b"caf\xe9 \x01"
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text("x")

    (entry,) = scan(tmp_path).entries

    assert entry.path == "caf\\xe9 \x01"
    assert entry.raw_path == name


def test_two_names_that_look_the_same_are_two_changes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    for root in (old, new):
        (root / "a\\xff").write_text("fixture's own")
    Path(os.fsdecode(os.fsencode(new) + b"/a\xff")).write_text("planted")

    changes = changes_between(scan(old), scan(new))

    assert [change.status for change in changes] == ["added"], "a planted file hides behind a fixture's name"


def test_changed_mode_alone_is_no_change_and_changed_kind_is_one(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text("x")
        (tmp_path / name / "k").write_text("x")
    (tmp_path / "new" / "f").chmod(0o777)
    (tmp_path / "new" / "k").unlink()
    (tmp_path / "new" / "k").symlink_to("f")

    before, after = scan(tmp_path / "old"), scan(tmp_path / "new")

    assert paths_of(changes_between(before, after)) == ["k"]
    assert {entry.path: entry.mode for entry in after.entries}["f"] == 0o777


def test_deep_tree_is_read_without_recursion(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(600):
        os.mkdir("d", dir_fd=descriptor)
        below = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)

    assert len(scan(tmp_path).entries) == 600


def test_digest_never_follows_a_link_and_never_blocks_on_a_fifo(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    (tmp_path / "link").symlink_to("f")
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(OSError, match="symbolic"):
        digest_file(tmp_path / "link")
    assert digest_file(tmp_path / "fifo") == digest_bytes(b"")


PROGRAM = """
import json, sys
from pathlib import Path
from evalwright.workspace import UnreadableError
from evalwright.workspace.scan import scan
try:
    print(json.dumps([[e.path, e.kind, e.mode] for e in scan(Path(sys.argv[1])).entries]))
except UnreadableError as error:
    print(json.dumps({"unreadable": error.paths}))
"""


@pytest.fixture
def scanned(require: Callable[[str], None]) -> Callable[[Path], str]:
    """Return what scans as a user for whom permissions count; root loses that privilege for it."""
    drop: list[str] = []
    if os.getuid() == 0:
        require("setpriv")
        drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"]

    def scan_unprivileged(root: Path) -> str:
        command = [*drop, sys.executable, "-c", PROGRAM, str(root)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout.strip()

    return scan_unprivileged


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Path]:
    """Return a directory ``w`` with ``d/f``, whose permissions are opened again after the test."""
    root = tmp_path / "w"
    (root / "d").mkdir(parents=True)
    (root / "d" / "f").write_text("x")
    (root / "d" / "f").chmod(0o644)
    (root / "d").chmod(0o755)
    yield root
    for path in (root, root / "d", root / "d" / "f"):
        path.chmod(0o700)


@pytest.mark.parametrize("place", ["w", "w/d", "w/d/f"])
@pytest.mark.parametrize("mode", [0o000, 0o200, 0o444, 0o600, 0o100])
def test_owner_gets_back_what_it_made_unreadable_and_the_record_keeps_the_mode(
    closed: Path, scanned: Callable[[Path], str], place: str, mode: int
) -> None:
    (closed.parent / place).chmod(mode)

    told = scanned(closed)

    recorded = {"w/d": mode if place == "w/d" else 0o755, "w/d/f": mode if place == "w/d/f" else 0o644}
    assert told == f'[["d", "directory", {recorded["w/d"]}], ["d/f", "file", {recorded["w/d/f"]}]]'


def test_path_of_somebody_else_that_cannot_be_read_is_named(closed: Path, scanned: Callable[[Path], str]) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    (closed / "d" / "f").chmod(0o600)
    os.chown(closed / "d" / "f", 65534, 65534)

    assert scanned(closed) == '{"unreadable": ["d/f"]}'


def test_special_files_and_git_pointers_of_a_fixture_are_problems(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "sub" / "fifo")
    (tmp_path / "sub" / ".git").write_text("gitdir: /elsewhere\n")
    (tmp_path / "fine").write_text("x")

    assert sorted(path for path, _ in fixture_problems(tmp_path)) == ["sub/.git", "sub/fifo"]


def test_tree_comes_back_from_the_store_as_it_was(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "empty").mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "ro").write_text("x")
    (source / "ro").chmod(0o444)
    (source / "link").symlink_to("run.sh")
    Path(os.fsdecode(os.fsencode(source) + b"/n\xe9")).write_bytes(b"\0\xff")
    (source / "empty").chmod(0o755)
    store = DirectoryStore(tmp_path / "store")

    digest = store.put_tree(source)

    (tmp_path / "target").mkdir()
    store.restore(digest, tmp_path / "target")
    assert scan(tmp_path / "target") == scan(source)
    assert store.put_tree(tmp_path / "target") == digest


def test_more_than_can_be_read_in_reasonable_time_is_refused_and_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UnreadableError, match="huge"):
        scan(tmp_path)
