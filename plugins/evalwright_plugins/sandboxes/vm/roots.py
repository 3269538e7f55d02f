"""The guest's root file systems: a small Debian, or busybox and this Python, each as one compressed read-only image."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import struct
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from evalwright.errors import SandboxError
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.vm.cache import digest_of, file_digest
from evalwright_plugins.sandboxes.vm.tools import call, program

__all__ = ["busybox_path", "root_recipe", "write_root"]

VERSION = 2
INTERPRETER = 3
LOADER_CACHE = Path("/etc/ld.so.cache")
DEBIAN_PACKAGES = ("git", "python3")
DEBIAN_SECONDS = 3600.0
UNNEEDED = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")
UNUSED_LIBRARY = shutil.ignore_patterns(
    "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "site-packages", "config-*"
)
ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n",
    "group": "root:x:0:\nuser:x:1000:\n",
    "hosts": "127.0.0.1 localhost sandbox\n",
    "nsswitch.conf": "hosts: files\npasswd: files\ngroup: files\n",
}


def busybox_path() -> Path:
    """Return the host's busybox. Raises ``SandboxError`` when there is none, or one that needs shared libraries."""
    found = program("busybox")
    if found is None or _needs_loader(Path(found).read_bytes()):
        raise SandboxError("there is no static busybox", hint="install it: apt-get install busybox-static")
    return Path(found).resolve()


def _needs_loader(binary: bytes) -> bool:
    """Tell whether a 64-bit ELF program names an interpreter, as every dynamically linked one does."""
    (start,), (size, count) = struct.unpack_from("<Q", binary, 32), struct.unpack_from("<HH", binary, 54)
    return any(struct.unpack_from("<I", binary, start + number * size)[0] == INTERPRETER for number in range(count))


def root_recipe(kind: str, packages: Sequence[str]) -> str:
    """Return the key of a root: the digest of everything that decides about its content."""
    if kind == "debian":
        return digest_of(VERSION, kind, _codename(), sorted({*DEBIAN_PACKAGES, *packages}))
    python = Path(sys.executable).resolve()
    return digest_of(VERSION, kind, file_digest(busybox_path()), str(python), file_digest(python), sys.version)


def write_root(kind: str, packages: Sequence[str], draft: Path, supervisor: Supervisor) -> None:
    """Write ``root.squashfs`` into a directory. Raises ``SandboxError``."""
    tree = draft / "tree"
    tree.mkdir(mode=0o755)
    if kind == "debian":
        _fill_debian(tree, packages, supervisor)
    else:
        _fill_busybox(tree, supervisor)
    for name in ("workspace", "exchange", "home/user", "root", "tmp"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name in ("dev", "proc", "run", "sys"):
        (tree / name).mkdir(exist_ok=True)
    words = ["mksquashfs", str(tree), str(draft / "root.squashfs"), "-comp", "lz4", "-noappend", "-quiet", "-no-progress"]
    call(supervisor, words + ([] if kind == "debian" else ["-all-root"]), timeout=DEBIAN_SECONDS)
    shutil.rmtree(tree)


def _fill_debian(tree: Path, packages: Sequence[str], supervisor: Supervisor) -> None:
    """Install a minimal Debian from the archive that this machine's own apt is set up with."""
    if os.geteuid() != 0:
        raise SandboxError("only root can make a debian root", hint="build as root, or: evalwright vm build --root busybox")
    mirror, components = _archive(supervisor)
    chosen = ",".join(sorted({*DEBIAN_PACKAGES, *packages}))
    words = ["debootstrap", "--variant=minbase", f"--include={chosen}", f"--components={components}", _codename()]
    call(supervisor, [*words, str(tree), mirror], timeout=DEBIAN_SECONDS)
    for name in UNNEEDED:
        shutil.rmtree(tree / name, ignore_errors=True)
    with (tree / "etc" / "passwd").open("a", encoding="utf-8") as file:
        file.write("user:x:1000:1000::/home/user:/bin/sh\n")
    with (tree / "etc" / "group").open("a", encoding="utf-8") as file:
        file.write("user:x:1000:\n")
    (tree / "etc" / "hosts").write_text(ETC["hosts"], encoding="utf-8")


def _archive(supervisor: Supervisor) -> tuple[str, str]:
    """Return the address and the components of the archive that apt takes this release from."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"]
    lines = [line.split() for line in call(supervisor, words).splitlines()]
    found = [
        (uri, component) for uri, codename, component in (line for line in lines if len(line) == 3) if codename == _codename()
    ]
    if not found:
        raise SandboxError(f"apt has no archive of {_codename()}", hint="refresh its lists: apt-get update")
    mirror = next((uri for uri, component in found if component == "main"), found[0][0])
    return mirror, ",".join(dict.fromkeys(component for uri, component in found if uri == mirror))


def _codename() -> str:
    try:
        return platform.freedesktop_os_release()["VERSION_CODENAME"]
    except (OSError, KeyError):
        raise SandboxError("this system does not say which Debian it is", hint="use --root busybox") from None


def _fill_busybox(tree: Path, supervisor: Supervisor) -> None:
    """Put busybox under all its names, this Python with its library, and what they are linked with into a tree."""
    programs = tree / "usr" / "bin"
    programs.mkdir(parents=True)
    (tree / "usr" / "lib").mkdir()
    (tree / "etc").mkdir()
    for name in ("bin", "sbin", "usr/sbin"):
        (tree / name).symlink_to("/usr/bin")
    for name in ("lib", "lib64"):
        (tree / name).symlink_to("/usr/lib")
    shutil.copy(busybox_path(), programs / "busybox")
    for applet in call(supervisor, [str(busybox_path()), "--list"]).split():
        if applet != "busybox":
            (programs / applet).symlink_to("busybox")
    for name, text in ETC.items():
        (tree / "etc" / name).write_text(text, encoding="utf-8")
    _copy_python(tree, supervisor)


def _copy_python(tree: Path, supervisor: Supervisor) -> None:
    """Copy the interpreter that runs this, its standard library and their shared libraries to the same paths."""
    python = Path(sys.executable).resolve()
    standard, platform_specific = (Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))
    binaries = [python]
    _copy(python, tree)
    for library in {standard, platform_specific}:
        target = tree / library.relative_to("/")
        shutil.copytree(library, target, symlinks=True, ignore=UNUSED_LIBRARY, dirs_exist_ok=True)
        binaries += [path for path in target.rglob("*.so*") if not path.is_symlink()]
    for path in {found for binary in binaries for found in _linked(binary, supervisor)}:
        _copy(path, tree)
    if LOADER_CACHE.is_file():
        shutil.copy(LOADER_CACHE, tree / "etc")
    link = tree / "usr" / "bin" / "python3"
    if not link.exists():
        link.symlink_to(python)


def _linked(binary: Path, supervisor: Supervisor) -> Iterator[Path]:
    """Yield the shared libraries that a binary is linked with, its loader included; none for what is no such binary."""
    with contextlib.suppress(SandboxError):
        for word in re.findall(r"(?:=> )?(/\S+) \(0x", call(supervisor, ["ldd", str(binary)])):
            yield Path(word)


def _copy(path: Path, tree: Path) -> None:
    """Copy a file to its own path in a tree; the tree's links of directories lead to where they lead there."""
    parent = path.parent
    inside = tree / str(parent).lstrip("/")
    for old in ("lib", "lib64", "bin", "sbin"):
        if parent.parts[1:2] == (old,):
            inside = tree.joinpath("usr", "bin" if "bin" in old else "lib", *parent.parts[2:])
    if parent.parts[1:3] == ("usr", "lib64"):
        inside = tree.joinpath("usr", "lib", *parent.parts[3:])
    inside.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, inside / path.name)
