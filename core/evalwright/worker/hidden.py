"""Hidden files over a clone, and the agent's influence on test runners out of it."""

from __future__ import annotations

import configparser
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.model import Entry, Manifest
from evalwright.model.steering import MIXED_FILES, is_test, starts_early, steers
from evalwright.store import DirectoryStore
from evalwright.worker.precedence import found_before
from evalwright.workspace import copy_file, force_remove

__all__ = ["lay_hidden", "neutralise"]

PYTHON_TOOLS = ("pytest", "tox", "poe", "taskipy")
NODE_TOOLS = ("ava", "c8", "jest", "mocha", "nyc", "tap", "vitest")


def neutralise(workspace: Path, fixture: Manifest, store: DirectoryStore) -> None:
    """Give tests and files that steer test runners the fixture's content; remove steering files that it has not.

    A file that holds other things too (``pyproject.toml``, ``package.json``, ...) is the agent's to change; it is restored only
    when its settings for test runners differ from the fixture's. Tests that the agent added stay.
    """
    original = {entry.path: entry for entry in fixture.entries if entry.kind in ("file", "symlink")}
    for path in list(_intruders(workspace)):
        relative = path.relative_to(workspace).as_posix()
        known = original.get(relative)
        if path.name in MIXED_FILES and _same_settings(path, known, store):
            continue
        if known is None or not starts_early(relative):
            _remove(path)
    restored = [entry for entry in original.values() if _is_fixtures(entry.path, workspace)]
    for entry in restored:
        _write(entry, workspace, store)
    _clear_the_way(restored, set(original), workspace)


def _is_fixtures(path: str, workspace: Path) -> bool:
    """Tell whether a file of the fixture is not the agent's to change, or is a mixed file that it deleted."""
    name = PurePosixPath(path).name
    lost = name in MIXED_FILES and not os.path.lexists(workspace / path)
    return lost or steers(path) or is_test(path) or name.endswith(".pyc")


def _clear_the_way(meant: Sequence[Entry], kept: Set[str], workspace: Path) -> None:
    """Remove what would be imported in place of a file that was meant, unless it is one of those that are kept."""
    for entry in meant:
        place = workspace / os.fsdecode(entry.raw_path)
        for path in list(found_before(place, workspace)) if entry.kind != "directory" else ():
            if path.relative_to(workspace).as_posix() not in kept:
                _remove(path)


def _intruders(workspace: Path) -> Iterator[Path]:
    """Yield what may steer a test runner: steering files and directories, mixed files, compiled Python.

    A module compiled with an unchecked hash would run instead of the hidden source.
    """
    _open_up(workspace)
    for place, directories, names in os.walk(workspace):
        directory = Path(place)
        above = directory.relative_to(workspace)
        for name in list(directories):
            _open_up(directory / name)
            if name == "__pycache__" or steers((above / name).as_posix(), directory=True):
                directories.remove(name)
                yield directory / name
        for name in names:
            relative = (above / name).as_posix()
            if name in MIXED_FILES or name.endswith((".pyc", ".pyo")) or steers(relative) or starts_early(relative):
                yield directory / name


def _open_up(directory: Path) -> None:
    """Give this user all rights in a directory of the clone: a closed one would keep what it holds."""
    if not directory.is_symlink():
        directory.chmod(stat.S_IMODE(directory.stat().st_mode) | 0o700)


def lay_hidden(hidden: str, gold: Manifest, fixture: Manifest, store: DirectoryStore, workspace: Path) -> None:
    """Write the hidden files of a case over a workspace.

    What stands in their way, links too, is replaced. What the agent added and an import would find before them is removed.
    """
    prefix = str(PurePosixPath(hidden)) + "/"
    laid = [
        replace(entry, path=entry.path.removeprefix(prefix), path_b64=None)
        for entry in gold.entries
        if entry.path.startswith(prefix)
    ]
    for entry in laid:
        _write(entry, workspace, store)
    _clear_the_way(laid, {entry.path for entry in (*fixture.entries, *laid)}, workspace)


def _same_settings(path: Path, original: Entry | None, store: DirectoryStore) -> bool:
    """Tell whether a mixed file says the same to test runners as the fixture's does; a link never does."""
    if path.is_symlink() or not path.is_file() or (original and original.kind == "symlink"):
        return False
    before = store.verified(original.sha256 or "").read_bytes() if original else None
    return bool(_settings(path, path.read_bytes()) == _settings(path, before))


def _settings(path: Path, data: bytes | None) -> Any:
    """Return what a mixed file tells test runners; what cannot be read equals nothing but itself."""
    if data is None:
        return {}
    try:
        text = data.decode("utf-8")
        if path.name == "package.json":
            document = json.loads(text)
            scripts = _test_scripts(document.get("scripts", {}))
            return scripts | {name: document[name] for name in NODE_TOOLS if name in document}
        if path.name == "pyproject.toml":
            tools = tomllib.loads(text).get("tool", {})
            return {name: tools[name] for name in PYTHON_TOOLS if name in tools}
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        return {name: dict(parser[name]) for name in parser if re.match("pytest$|tool:pytest$|aliases$|tox\\b|testenv", name)}
    except (ValueError, AttributeError, TypeError, configparser.Error):
        return data


def _test_scripts(scripts: Mapping[str, str]) -> dict[str, str]:
    """Return the scripts of tests, and those that they call."""
    found: dict[str, str] = {}
    waiting = [name for name in scripts if "test" in name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = scripts[name]
            waiting += [word for word in re.findall(r"[\w:.-]+", scripts[name]) if word in scripts]
    return found


def _write(entry: Entry, workspace: Path, store: DirectoryStore) -> None:
    """Put one entry in place without following anything that the agent left there."""
    relative = os.fsdecode(entry.raw_path)
    place = workspace
    for part in PurePosixPath(relative).parts[:-1]:
        place = place / part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
        place.mkdir(exist_ok=True)
    target = workspace / relative
    if entry.kind == "directory":
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            target.unlink()
        target.mkdir(exist_ok=True)
        return
    _remove(target)
    if entry.kind == "symlink":
        os.symlink(entry.target or "", target)
    else:
        copy_file(store.verified(entry.sha256 or ""), target, entry.mode or 0o644)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        force_remove(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
