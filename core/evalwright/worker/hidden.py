"""Hidden files over a clone, and the agent's influence on test runners out of it."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path, PurePosixPath

from evalwright.model import Entry, Manifest
from evalwright.store import DirectoryStore
from evalwright.workspace import copy_file

__all__ = ["lay_hidden", "neutralise"]

RUNNER_PACKAGES = frozenset(["pytest", "_pytest", "pluggy", "unittest"])
RUNNER_FILES = frozenset(
    [
        "conftest.py",
        "pytest.ini",
        ".pytest.ini",
        "tox.ini",
        "setup.cfg",
        "sitecustomize.py",
        "usercustomize.py",
        "jest.config.js",
        "jest.config.ts",
        "pytest.py",
        "unittest.py",
        "vitest.config.js",
        "vitest.config.ts",
        ".mocharc.json",
        ".mocharc.js",
        ".npmrc",
        ".noserc",
    ]
)


def neutralise(workspace: Path, fixture: Manifest, store: DirectoryStore) -> None:
    """Give every file that steers a test runner the content that the fixture has, and remove those that it has not.

    ``pyproject.toml`` and ``package.json`` are code as well as configuration: the fixture's version comes back where it has
    one, and an agent's own stays where it has none.
    """
    original = {entry.path: entry for entry in fixture.entries if entry.kind == "file"}
    known = {entry.path for entry in fixture.entries}
    for path, relative in _steering(workspace):
        if relative not in known:
            _remove(path)
    for name, entry in original.items():
        if _steers(PurePosixPath(name).name) or PurePosixPath(name).name in {"pyproject.toml", "package.json"}:
            _write(entry, workspace, store)


def lay_hidden(hidden: str, gold: Manifest, store: DirectoryStore, workspace: Path) -> None:
    """Write the hidden files of a case over a workspace; what stands in their way, links too, is replaced."""
    prefix = str(PurePosixPath(hidden)) + "/"
    for entry in gold.entries:
        if entry.path.startswith(prefix):
            _write(replace(entry, path=entry.path.removeprefix(prefix), path_b64=None), workspace, store)


def _steers(name: str) -> bool:
    return name in RUNNER_FILES or name in RUNNER_PACKAGES or name.endswith(".pth")


def _steering(workspace: Path) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for directory, directories, names in os.walk(workspace):
        for name in (*names, *directories):
            if _steers(name):
                path = Path(directory) / name
                found.append((path, path.relative_to(workspace).as_posix()))
    return found


def _write(entry: Entry, workspace: Path, store: DirectoryStore) -> None:
    """Put one entry in place without following anything that the agent left there."""
    place = workspace
    for part in PurePosixPath(entry.path).parts[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
    target = workspace / entry.path
    if entry.kind == "directory":
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            target.unlink()
        target.mkdir(exist_ok=True)
        return
    _remove(target)
    if entry.kind == "symlink":
        os.symlink(entry.target or "", target)
    else:
        copy_file(store.path(entry.sha256 or ""), target, entry.mode or 0o644)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
