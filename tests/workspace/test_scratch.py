"""Scratch directories: opaque, private, gone with their owner; and nothing outside them is ever deleted."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.workspace import Scratch, copy_tree, remove_tree


def test_tree_outside_is_never_removed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (outside / "precious").write_text("x")
    (inside / "link").symlink_to(outside)

    for path in (outside, inside, inside / ".." / "outside", inside / "link" / "precious", tmp_path):
        with pytest.raises(ValueError, match="refusing to delete"):
            remove_tree(path, inside=inside)

    assert (outside / "precious").read_text() == "x"


def test_links_in_a_removed_tree_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").write_text("x")
    tree = tmp_path / "in" / "tree"
    tree.mkdir(parents=True)
    (tree / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "in" / "top").symlink_to(tmp_path / "outside")

    remove_tree(tree, inside=tmp_path / "in")
    remove_tree(tmp_path / "in" / "top", inside=tmp_path / "in")

    assert not tree.exists()
    assert (tmp_path / "outside" / "precious").exists()


LOCKED = """
import sys
from collections.abc import Callable
from pathlib import Path
from evalwright.workspace import remove_tree
tree = Path(sys.argv[1]) / "tree"
(tree / "a" / "b").mkdir(parents=True)
(tree / "a" / "b" / "f").write_text("x")
(tree / "a" / "empty").mkdir()
for path in ("a/b/f", "a/b", "a/empty", "a"):
    (tree / path).chmod(int(sys.argv[2], 8))
remove_tree(tree, inside=tree.parent)
print(tree.exists())
"""


@pytest.mark.parametrize("mode", ["000", "444", "555", "200"])
def test_tree_that_its_owner_locked_is_removed(tmp_path: Path, require: Callable[[str], None], mode: str) -> None:
    drop: list[str] = []
    if os.getuid() == 0:
        require("setpriv")
        drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"]

    done = subprocess.run(
        [*drop, sys.executable, "-c", LOCKED, str(tmp_path), mode], capture_output=True, text=True, timeout=120
    )

    assert done.stdout == "False\n", done.stderr


def test_place_is_opaque_private_and_gone_after_close(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    one, two = scratch.place(0), scratch.place(0)

    assert one.root != two.root
    assert one.workspace.stat().st_mode & 0o777 == 0o700
    assert one.root.stat().st_mode & 0o777 == 0o711

    scratch.close()

    assert not one.root.exists()
    assert not two.root.exists()


def test_places_of_a_dead_process_are_removed_and_those_of_a_living_one_kept(tmp_path: Path) -> None:
    program = "import sys; from pathlib import Path; from evalwright.workspace import Scratch\n"
    program += "print(Scratch(Path(sys.argv[1])).place(0).root, flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    place = Path(other.stdout.readline().strip())
    try:
        first = Scratch(tmp_path)
        first.place(0)
        assert place.is_dir()
        first.close()
    finally:
        other.kill()
        other.communicate()

    second = Scratch(tmp_path)
    second.place(0)

    assert not place.exists()
    second.close()


def test_copy_keeps_links_modes_and_names_and_shares_no_inode(tmp_path: Path) -> None:
    source = tmp_path / "s"
    (source / "d").mkdir(parents=True)
    (source / "d" / "f").write_text("x")
    (source / "d" / "f").chmod(0o640)
    (source / "link").symlink_to("../outside")
    (source / "d").chmod(0o750)

    copy_tree(source, tmp_path / "t")

    assert os.readlink(tmp_path / "t" / "link") == "../outside"
    assert (tmp_path / "t" / "d" / "f").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "t" / "d").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "t" / "d" / "f").stat().st_ino != (source / "d" / "f").stat().st_ino


def test_copy_of_a_large_file_is_exact(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    content = os.urandom(1 << 16) * 50
    (tmp_path / "s" / "big").write_bytes(content)

    copy_tree(tmp_path / "s", tmp_path / "t")

    assert (tmp_path / "t" / "big").read_bytes() == content


def test_copy_refuses_a_fifo_unless_it_may_be_there(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    os.mkfifo(tmp_path / "s" / "fifo")

    with pytest.raises(OSError, match="neither a file"):
        copy_tree(tmp_path / "s", tmp_path / "t")
    copy_tree(tmp_path / "s", tmp_path / "u", special=True)
    assert list((tmp_path / "u").iterdir()) == []


def test_nothing_is_deleted_through_what_an_agent_mounted_after_others_were_discarded(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "f").write_text("x")
    scratch = Scratch(tmp_path / "sc ratch")
    for name in ("w", "x/deep"):
        place = scratch.place(0)
        (place.root / name).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", str(precious), str(place.root / name)], check=True)

        scratch.discard(place)

        assert not place.root.exists()
        assert (precious / "f").read_text() == "x"
    scratch.close()


@pytest.mark.parametrize(("name", "levels"), [("d", 1500), ("n" * 200, 60)], ids=["many levels", "long path"])
def test_a_tree_deeper_than_any_path_is_removed(tmp_path: Path, name: str, levels: int) -> None:
    place = Scratch(tmp_path).place(0)
    descriptor = os.open(place.workspace, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        below = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=below))
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)

    remove_tree(place.root, inside=place.root.parent)

    assert not place.root.exists()


def test_a_copy_of_what_an_agent_left_keeps_holes_and_drops_set_user_bits(tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    with (tmp_path / "from/holes").open("wb") as file:
        file.seek(64 << 20)
        file.write(b"end")
        file.truncate(128 << 20)
    (tmp_path / "from/tool").write_text("x")
    (tmp_path / "from/tool").chmod(0o6755)

    copy_tree(tmp_path / "from", tmp_path / "to", special=True)

    copied = (tmp_path / "to/holes").stat()
    assert (copied.st_size, copied.st_blocks * 512 < 1 << 20) == (128 << 20, True)
    with (tmp_path / "to/holes").open("rb") as file:
        file.seek(64 << 20)
        assert file.read(4) == b"end\0"
    assert (tmp_path / "to/tool").stat().st_mode & 0o7777 == 0o755
