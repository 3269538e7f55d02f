"""Hidden files over a clone, and the agent's influence on test runners out of it."""

from __future__ import annotations

import configparser
import json
import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.model import Entry, Manifest
from evalwright.store import DirectoryStore
from evalwright.workspace import copy_file

__all__ = ["lay_hidden", "neutralise"]

RUNNER_PACKAGES = frozenset({"pytest", "_pytest", "pluggy", "unittest"})
RUNNER_FILES = frozenset(
    {".mocharc.js", ".mocharc.json", ".mocharc.yml", ".npmrc", ".noserc", ".pytest.ini", "conftest.py", "pytest.ini"}
    | {"jest.config.js", "jest.config.json", "jest.config.ts", "vitest.config.js", "vitest.config.ts"}
    | {"pytest.py", "unittest.py", "sitecustomize.py", "usercustomize.py"}
)
MIXED_FILES = frozenset(["setup.cfg", "tox.ini", "pyproject.toml", "package.json"])


def neutralise(workspace: Path, fixture: Manifest, store: DirectoryStore) -> None:
    """Give every file that steers a test runner the content that the fixture has, and remove those that it has not.

    A file that holds other things too (``pyproject.toml``, ``package.json``, ...) is the agent's to change; it is restored only
    when its settings for test runners differ from the fixture's.
    """
    _remove_bytecode(workspace)
    original = {entry.path: entry for entry in fixture.entries if entry.kind == "file"}
    known = {entry.path for entry in fixture.entries}
    for path, relative in _steering(workspace):
        if path.name not in MIXED_FILES:
            if relative not in known:
                _remove(path)
        elif _settings(path, _bytes(path)) != _settings(path, _original(original.get(relative), store)):
            _remove(path)
            if relative in original:
                _write(original[relative], workspace, store)
    for entry in original.values():
        name = PurePosixPath(entry.path).name
        if _steers(name) or name.endswith(".pyc"):
            _write(entry, workspace, store)


def _remove_bytecode(workspace: Path) -> None:
    """Remove compiled modules: one with an unchecked hash would run instead of the hidden source."""
    for directory, directories, names in os.walk(workspace):
        for name in [name for name in directories if name == "__pycache__"]:
            _remove(Path(directory) / name)
            directories.remove(name)
        for name in names:
            if name.endswith((".pyc", ".pyo")):
                _remove(Path(directory) / name)


def lay_hidden(hidden: str, gold: Manifest, store: DirectoryStore, workspace: Path) -> None:
    """Write the hidden files of a case over a workspace; what stands in their way, links too, is replaced."""
    prefix = str(PurePosixPath(hidden)) + "/"
    for entry in gold.entries:
        if entry.path.startswith(prefix):
            _write(replace(entry, path=entry.path.removeprefix(prefix), path_b64=None), workspace, store)


def _steers(name: str) -> bool:
    return name in RUNNER_FILES or name in RUNNER_PACKAGES or name.endswith((".pth", ".dist-info", ".egg-info"))


def _steering(workspace: Path) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for directory, directories, names in os.walk(workspace):
        for name in (*names, *directories):
            if _steers(name) or name in MIXED_FILES:
                path = Path(directory) / name
                found.append((path, path.relative_to(workspace).as_posix()))
    return found


def _settings(path: Path, data: bytes | None) -> Any:
    """Return what a mixed file tells test runners; what cannot be read equals nothing but itself."""
    if data is None:
        return {}
    try:
        text = data.decode("utf-8")
        if path.name == "package.json":
            document = json.loads(text)
            scripts = {name: line for name, line in document.get("scripts", {}).items() if "test" in name}
            return {"scripts": scripts} | {name: document[name] for name in ("jest", "mocha", "vitest") if name in document}
        if path.name == "pyproject.toml":
            return tomllib.loads(text).get("tool", {}).get("pytest", {})
        parser = configparser.RawConfigParser()
        parser.read_string(text)
        return {name: dict(parser[name]) for name in ("pytest", "tool:pytest") if name in parser}
    except (ValueError, AttributeError, configparser.Error):
        return data


def _original(entry: Entry | None, store: DirectoryStore) -> bytes | None:
    return store.verified(entry.sha256 or "").read_bytes() if entry else None


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b"\0"


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
        copy_file(store.verified(entry.sha256 or ""), target, entry.mode or 0o644)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()
