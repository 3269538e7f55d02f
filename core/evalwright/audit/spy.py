"""The spy of the leak test: it reads whatever the place lets it read, and says where it met a canary.

The file stands alone but for :mod:`evalwright.audit.forms`, so that both can be given to any Python from 3.7 on in any
sandbox. It knows how a canary begins and no whole one. It prints lines of words separated by tabs: ``hit PLACE CODE HOW
PATH`` for each find, ``left WHY PATH`` for what it could not search, at last ``done FILES BYTES SECONDS COMPLETE``. Without
that last line it did not finish, whatever the reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import time
from typing import Any

from evalwright.audit.forms import OVERLAP_BYTES, UNPACKED_BYTES, readings, tokens, unpacked

__all__ = ["main"]

PSEUDO = {"proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "tracefs", "securityfs", "pstore", "bpf", "configfs"}
LAST = {b"usr", b"lib", b"lib32", b"lib64", b"libx32", b"bin", b"sbin", b"boot", b"nix", b"snap"}
CHUNK_BYTES = 1 << 20
LARGE_BYTES = 16 << 20
MAX_HITS = 1000
MAX_LEFT_OUT = 100
UNLISTED = "its names cannot be listed, but whoever knows one can reach it"
MAX_LAYERS = 8
TOO_DEEP = "packed in more than 8 layers"
TOO_LARGE = "larger than what is unpacked"
EPOCH_OF_REAL_TIMES = 10**9


class TimeUp(Exception):
    """The time budget is used up."""


class Spy:
    """One search. ``since`` is the time before which no canary existed; ``known`` maps sizes to digests of gold files.

    ``cut`` tells that something was left out: for its size, for the time, or since nobody may list it.
    """

    def __init__(self, seconds: float, since: float, known: dict[int, set[str]]) -> None:
        self.started = time.monotonic()
        self.end = self.started + seconds
        self.since = since
        self.known = known
        self.hits: set[tuple[str, str, str, str]] = set()
        self.read: set[tuple[int, int]] = set()
        self.walked: set[bytes] = set()
        self.pseudo: set[int] = set()
        self.large: list[bytes] = []
        self.left_out: set[bytes] = set()
        self.files = 0
        self.bytes = 0
        self.cut = False

    def pause(self) -> None:
        """Raise ``TimeUp`` when no time is left."""
        if time.monotonic() > self.end:
            raise TimeUp

    def hit(self, place: str, code: str, how: str, path: bytes) -> None:
        """Print a find, once."""
        record = (place, code, how, printable(path))
        if record not in self.hits and len(self.hits) < MAX_HITS:
            self.hits.add(record)
            say("hit", *record)

    def left(self, why: str, path: bytes) -> None:
        """Print what is not searched, so that the search is not complete; the first hundred."""
        self.cut = True
        if len(self.left_out) < MAX_LEFT_OUT and path not in self.left_out:
            self.left_out.add(path)
            say("left", why, printable(path))

    def text(self, data: bytes, path: bytes, how: str) -> None:
        """Report every canary that stands in bytes, in any form."""
        for form, clear in readings(data):
            shown = how if form == "plain" else form if how == "plain" else f"{form} in {how}"
            for place, code in tokens(clear):
                self.hit(place, code, shown, path)

    def file(self, path: bytes, status: os.stat_result) -> None:
        """Read a regular file, unless it was read already or is older than every canary; the kernel sets that time."""
        self.files += 1
        known = self.known.get(status.st_size)
        old = EPOCH_OF_REAL_TIMES < status.st_ctime < self.since
        key = (status.st_dev, status.st_ino)
        if not old:
            self.attributes(path)
        if (old and not known) or key in self.read:
            return
        if status.st_size > LARGE_BYTES and path not in self.large:
            self.large.append(path)
            return
        self.read.add(key)
        with contextlib.suppress(OSError):
            self.content(path, known or set(), old=old)

    def content(self, path: bytes, known: set[str], *, old: bool) -> None:
        """Read a file to its end; what is packed in it is unpacked."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            sha256 = hashlib.sha256()
            tail = b""
            size = os.fstat(descriptor).st_size
            while True:
                self.pause()
                chunk = file.read(CHUNK_BYTES)
                if not chunk:
                    break
                self.bytes += len(chunk)
                if known:
                    sha256.update(chunk)
                if not old:
                    self.text(tail + chunk, path, "plain")
                    tail = chunk[-OVERLAP_BYTES:]
        if sha256.hexdigest() in known:
            self.hit("suite", "", "same content", path)
        if not old:
            if size >= UNPACKED_BYTES and next(unpacked(start_of(path)), None):
                self.left(TOO_LARGE, path)
            self.packed(start_of(path), path)

    def packed(self, data: bytes, path: bytes, *layers: str) -> None:
        """Look for canaries in what is packed in bytes, and in what is packed in that."""
        for name, content in unpacked(data):
            self.pause()
            within = tuple(dict.fromkeys((name, *layers)))
            self.text(content, path, " in ".join(within))
            if len(content) >= UNPACKED_BYTES:
                self.left(TOO_LARGE, path)
            if len(layers) < MAX_LAYERS:
                self.packed(content, path, name, *layers)
            else:
                self.left(TOO_DEEP, path)

    def attributes(self, path: bytes) -> None:
        """Look at the extended attributes of a file or directory."""
        with contextlib.suppress(OSError):
            for name in os.listxattr(path, follow_symlinks=False):
                value = os.getxattr(path, name, follow_symlinks=False)
                self.text(os.fsencode(name) + b"=" + value, path, "attribute")

    def tree(self, root: bytes) -> None:
        """Read every file below a directory that can be read; links are not followed, but where they point is looked at."""
        waiting = [root]
        while waiting:
            self.pause()
            directory = waiting.pop()
            inner = directory.startswith(b"/proc/") and directory.endswith((b"/proc", b"/sys"))
            if directory in self.walked or inner:
                continue
            self.walked.add(directory)
            try:
                with os.scandir(directory) as found:
                    for entry in found:
                        self.text(entry.name, entry.path, "name")
                        waiting += self.entry(entry)
            except PermissionError:
                if os.access(directory, os.X_OK):
                    self.left(UNLISTED, directory)
            except OSError:
                continue

    def entry(self, entry: os.DirEntry[bytes]) -> list[bytes]:
        """Read one entry of a directory; return it if it is a directory itself."""
        with contextlib.suppress(OSError):
            status = entry.stat(follow_symlinks=False)
            if status.st_dev in self.pseudo:
                return []
            if stat.S_ISDIR(status.st_mode):
                self.attributes(entry.path)
                return [entry.path]
            if stat.S_ISREG(status.st_mode):
                self.file(entry.path, status)
            elif stat.S_ISLNK(status.st_mode):
                self.text(os.readlink(entry.path), entry.path, "link")
        return []

    def own(self) -> None:
        """Look at what a process is born with: environment, descriptors, the names of the machine."""
        for name, value in os.environb.items():
            self.text(name + b"=" + value, b"environment variable " + name, "plain")
        self.text(" ".join(os.uname()).encode("utf-8", "replace"), b"uname", "plain")
        for number in range(256):
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.fstat(number).st_mode):
                    self.text(os.pread(number, LARGE_BYTES, 0), b"descriptor %d" % number, "plain")

    def processes(self) -> list[bytes]:
        """Look at every process that ``/proc`` shows, the newest first; return directories that they stand in or have open."""
        places: list[bytes] = []
        roots = {identity(b"/")}
        for pid in sorted([name for name in listed(b"/proc") if name.isdigit()], key=int, reverse=True):
            self.pause()
            base = b"/proc/" + pid
            for name in (b"/environ", b"/cmdline", b"/cgroup", b"/mountinfo"):
                self.text(start_of(base + name), base + name, "plain")
            for number in listed(base + b"/fd"):
                places += self.descriptor(base + b"/fd/" + number)
            root = identity(base + b"/root/")
            if root and root not in roots:
                roots.add(root)
                places.append(base + b"/root")
            places += self.descriptor(base + b"/cwd")
        return [place for place in places if place != b"/"]

    def descriptor(self, path: bytes) -> list[bytes]:
        """Read an open file of a process; return it if it is a directory, by its name where that leads to it too."""
        with contextlib.suppress(OSError):
            status = os.stat(path)
            name = os.readlink(path)
            self.text(name, path, "link")
            if status.st_dev in self.pseudo:
                return []
            if stat.S_ISREG(status.st_mode):
                self.file(path, status)
            elif stat.S_ISDIR(status.st_mode):
                return [name if identity(name) == identity(path) else path]
        return []

    def everywhere(self, likely: list[bytes]) -> None:
        """Search the whole place: the trial's own two directories first, then what is new beside them and beside
        what holds them, what processes have open, the likely directories, and the system's own ones last.
        """
        self.pseudo = pseudo_devices()
        self.own()
        own, likely = likely[:2], likely[2:]
        near: list[bytes] = []
        for place in own:
            above = os.path.dirname(os.path.realpath(place))
            near += newest(above, self.since) + newest(os.path.dirname(above), self.since)
        for place in [*own, *near, *self.processes(), *likely]:
            self.tree(place)
        names = sorted(set(listed(b"/")) - {b"proc", b"sys"}, key=lambda name: (name in LAST, name))
        for name in names:
            self.tree(b"/" + name)
        self.tree(b"/")
        self.put_off()

    def put_off(self) -> None:
        """Read the large files, which waited until all others were read."""
        for path in self.large:
            with contextlib.suppress(OSError):
                self.file(path, os.stat(path))


def pseudo_devices() -> set[int]:
    """Return the devices of file systems whose files are no files: the kernel's own."""
    mounts = [line.split(b" ") for line in start_of(b"/proc/self/mountinfo").splitlines()]
    points = [words[4] for words in mounts if b"-" in words and words[words.index(b"-") + 1].decode() in PSEUDO]
    found = {device for device, _ in filter(None, map(identity, [b"/proc", b"/sys", *points]))}
    return found - {device for device, _ in filter(None, [identity(b"/")])}


def start_of(path: bytes) -> bytes:
    """Return the first megabytes of a file, nothing when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            parts: list[bytes] = []
            while sum(map(len, parts)) < UNPACKED_BYTES:
                part = file.read(CHUNK_BYTES)
                if not part:
                    break
                parts.append(part)
            return b"".join(parts)
    except OSError:
        return b""


def listed(directory: bytes) -> list[bytes]:
    """Return the names in a directory, none when it cannot be read."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


def newest(directory: bytes, since: float) -> list[bytes]:
    """Return the directories in a directory that changed after ``since``, the newest first."""
    found: list[tuple[float, bytes]] = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.is_dir(follow_symlinks=False) and entry.stat().st_mtime >= since:
                    found.append((entry.stat().st_mtime, entry.path))
    return [path for _, path in sorted(found, reverse=True)]


def identity(path: bytes) -> tuple[int, int] | None:
    """Return what tells a directory from others, ``None`` when it cannot be reached."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def printable(path: bytes) -> str:
    """Return a path in one line of text."""
    return "".join(c if c.isprintable() else "?" for c in path.decode("utf-8", "backslashreplace"))


def say(*words: str) -> None:
    """Print a line at once, in UTF-8 whatever the locale is."""
    sys.stdout.buffer.write("\t".join(words).encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def likely_places(workspace: bytes, exchange: bytes) -> list[bytes]:
    """Return where to look first: the trial's own directories, all parents of them, homes, and temporary files."""
    places = [workspace, exchange]
    for place in (workspace, exchange, os.getcwdb()):
        parent = os.path.dirname(os.path.realpath(place))
        while parent != b"/":
            places.append(parent)
            parent = os.path.dirname(parent)
    places += [os.fsencode(os.environ[name]) for name in ("HOME", "TMPDIR") if name in os.environ]
    return [*places, *map(os.path.realpath, (b"/tmp", b"/var/tmp", b"/dev/shm", b"/run", b"/home", b"/root"))]


def main(settings: dict[str, Any]) -> None:
    """Search for ``seconds`` and print what was found."""
    workspace, exchange = os.fsencode(settings["workspace"]), os.fsencode(settings["exchange"])
    since = settings["since"] if time.time() >= settings["since"] else 0.0
    for place in (workspace, exchange):
        with contextlib.suppress(OSError):
            since = min(since, os.stat(place).st_ctime - 60)
    known = {int(size): set(digests) for size, digests in settings["known"].items()}
    spy = Spy(settings["seconds"], since, known)
    try:
        spy.everywhere(likely_places(workspace, exchange))
    except TimeUp:
        spy.cut = True
    say("done", str(spy.files), str(spy.bytes), f"{time.monotonic() - spy.started:.3f}", str(int(not spy.cut)))
