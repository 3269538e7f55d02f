"""What a guest sent back into a directory of the host: by content, so that what did not change is not touched."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

from evalwright.errors import SandboxError
from evalwright_plugins.sandboxes.vm.archive import Member

__all__ = ["unpack"]

CHUNK_BYTES = 1 << 18
OWNER = 0o700


def unpack(members: Mapping[bytes, Member], file: BinaryIO, name: str, directory: Path) -> None:
    """Make a directory hold exactly the members below ``name``.

    Whatever is in the way goes first, so that nothing is ever written through a link. Times are those of this host.
    """
    top = members.get(name.encode())
    if top is None or top.kind != "directory":
        raise SandboxError(f"the guest sent no {name}", hint="look at what the agent did")
    prefix = name.encode() + b"/"
    wanted = {path.removeprefix(prefix): member for path, member in members.items() if path.startswith(prefix)}
    root = os.fsencode(directory)
    _clear(root, b"", wanted)
    for path, member in wanted.items():
        _make(os.path.join(root, path), member, file)
    for path, member in reversed(wanted.items()):
        if member.kind == "directory":
            os.chmod(os.path.join(root, path), member.mode)


def _clear(root: bytes, inside: bytes, wanted: Mapping[bytes, Member]) -> None:
    """Remove what the guest no longer has, or has as something else."""
    with os.scandir(os.path.join(root, inside)) as entries:
        found = [(os.path.join(inside, entry.name), entry.stat(follow_symlinks=False).st_mode) for entry in entries]
    for path, mode in found:
        place = os.path.join(root, path)
        member = wanted.get(path)
        if stat.S_ISDIR(mode):
            os.chmod(place, stat.S_IMODE(mode) | OWNER)
            if member is None or member.kind != "directory":
                shutil.rmtree(place)
            else:
                _clear(root, path, wanted)
        elif member is None or not _same_kind(mode, member):
            os.unlink(place)


def _same_kind(mode: int, member: Member) -> bool:
    return (member.kind == "file" and stat.S_ISREG(mode)) or (member.kind == "link" and stat.S_ISLNK(mode))


def _make(place: bytes, member: Member, file: BinaryIO) -> None:
    if member.kind == "directory":
        if not os.path.isdir(place):
            os.mkdir(place, OWNER)
    elif member.kind == "fifo":
        os.mkfifo(place, member.mode)
    elif member.kind == "link":
        if not os.path.islink(place) or os.readlink(place) != member.link:
            if os.path.lexists(place):
                os.unlink(place)
            os.symlink(member.link, place)
    elif _holds(place, member, file):
        if stat.S_IMODE(os.lstat(place).st_mode) != member.mode:
            os.chmod(place, member.mode)
    else:
        _write(place, member, file)


def _holds(place: bytes, member: Member, file: BinaryIO) -> bool:
    """Tell whether a file has the member's contents already."""
    try:
        if os.lstat(place).st_size != member.size:
            return False
        with open(place, "rb") as present:
            file.seek(member.offset)
            left = member.size
            while left > 0:
                chunk = file.read(min(CHUNK_BYTES, left))
                if not chunk or present.read(len(chunk)) != chunk:
                    return False
                left -= len(chunk)
            return True
    except OSError:
        return False


def _write(place: bytes, member: Member, file: BinaryIO) -> None:
    """Write a file anew; what lay there goes, so that another name of it keeps its contents."""
    if os.path.lexists(place):
        os.unlink(place)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as target:
        file.seek(member.offset)
        left = member.size
        while left > 0 and (chunk := file.read(min(CHUNK_BYTES, left))):
            target.write(chunk)
            left -= len(chunk)
        os.fchmod(descriptor, member.mode)
