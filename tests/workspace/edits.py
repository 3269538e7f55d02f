"""What an agent may do to a workspace: edits at random places, each a function of the tree and a source of randomness."""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import socket
import stat
from collections.abc import Callable
from pathlib import Path

__all__ = ["EDITS", "add_special", "open_for_writing_and_change_nothing"]


def anything(root: Path, source: random.Random, want: Callable[[Path], bool] | None = None) -> Path:
    """Return one of the paths that are there."""
    found = sorted(path for path in root.rglob("*") if want is None or want(path))
    return source.choice(found or [root / "new"])


def regular(path: Path) -> bool:
    """Tell whether a path is a regular file."""
    return stat.S_ISREG(path.lstat().st_mode)


def directory(path: Path) -> bool:
    """Tell whether a path is a directory."""
    return stat.S_ISDIR(path.lstat().st_mode)


def write_in_place_and_set_the_times_back(root: Path, source: random.Random) -> None:
    path = anything(root, source, lambda path: regular(path) and path.stat().st_size > 0)
    status = path.stat()
    with path.open("r+b") as file:
        file.write(bytes([source.randrange(256)]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def write_through_a_mapping(root: Path, source: random.Random) -> None:
    path = anything(root, source, lambda path: regular(path) and path.stat().st_size > 0)
    status = path.stat()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
        mapping[0] = (mapping[0] + 1) % 256
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def append(root: Path, source: random.Random) -> None:
    with anything(root, source, regular).open("ab") as file:
        file.write(b"more")


def open_for_writing_and_change_nothing(root: Path, source: random.Random) -> None:
    with anything(root, source, regular).open("r+b"):
        pass


def change_mode(root: Path, source: random.Random) -> None:
    anything(root, source, lambda path: not path.is_symlink()).chmod(source.choice([0o000, 0o111, 0o640, 0o777, 0o4755]))


def remove(root: Path, source: random.Random) -> None:
    path = anything(root, source)
    shutil.rmtree(path) if directory(path) else path.unlink()


def rename(root: Path, source: random.Random) -> None:
    anything(root, source).rename(anything(root, source, directory) / f"moved{source.randrange(9)}")


def rename_over(root: Path, source: random.Random) -> None:
    anything(root, source, regular).replace(anything(root, source, lambda path: not directory(path)))


def swap_link(root: Path, source: random.Random) -> None:
    path = anything(root, source, lambda path: path.is_symlink())
    path.unlink()
    path.symlink_to(source.choice(["d3", "nowhere else", "/etc/hostname", "large", b"\xff".decode(errors="surrogateescape")]))


def file_for_directory(root: Path, source: random.Random) -> None:
    path = anything(root, source, directory)
    shutil.rmtree(path)
    path.write_text("was a directory")


def directory_for_file(root: Path, source: random.Random) -> None:
    path = anything(root, source, regular)
    path.unlink()
    path.mkdir()
    (path / "inner").write_text("x")


def directory_again(root: Path, source: random.Random) -> None:
    path = anything(root, source, directory)
    shutil.rmtree(path)
    path.mkdir()
    (path / "f3").write_text("another")


def add_special(root: Path, source: random.Random) -> None:
    place = anything(root, source, directory) / f"special{source.randrange(99)}"
    os.mkfifo(place)
    with socket.socket(socket.AF_UNIX) as listener, contextlib.suppress(OSError):
        listener.bind(f"{place}.s")


def add_odd_name(root: Path, source: random.Random) -> None:
    name = bytes(source.choice(b'\x01\n\\\xe9\xff a"') for _ in range(6))
    Path(os.fsdecode(os.fsencode(anything(root, source, directory)) + b"/" + name)).write_bytes(name)


def hard_link(root: Path, source: random.Random) -> None:
    path = anything(root, source, regular)
    os.link(path, anything(root, source, directory) / f"hard{source.randrange(99)}")
    with path.open("ab") as file:
        file.write(b"both")


EDITS: list[Callable[[Path, random.Random], None]] = [
    write_in_place_and_set_the_times_back, write_through_a_mapping, append, open_for_writing_and_change_nothing, change_mode,
    remove, rename, rename_over, swap_link, file_for_directory, directory_for_file, directory_again, add_special, add_odd_name,
    hard_link,
]  # fmt: skip
