"""Make and remove a worktree so that a process killed at any moment leaves nothing that the next one cannot finish."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evalwright.canonical import is_object
from evalwright.errors import EvalwrightError
from evalwright_plugins.workflow.workspace.git import Git
from evalwright_plugins.workflow.workspace.places import Place

__all__ = ["MARKER", "bound_place", "finish", "unbind"]

MARKER = "evalwright.json"
"""Lies in a worktree's part of the git directory once the worktree is whole; what has none is made anew."""

MAX_LINK_BYTES = 8192
NO_PUSH = "push-is-disabled-in-the-worktrees-of-runs::"


def bound_place(common: Path, checkout: Path, run: str) -> Place | None:
    """Return where the whole worktree of a run lies, ``None`` where there is none."""
    root = common / "evalwright" / "worktrees" / run
    for git_dir in _parts(common):
        if _marked(git_dir) == run and root.is_dir() and not root.is_symlink():
            return Place(run=run, root=root, git_dir=git_dir, common=common, checkout=checkout)
    return None


def finish(git: Git, place: Place) -> None:
    """Bring a worktree to what a binding promises: found by git where it lies, no push, and marked as whole."""
    link = place.root / ".git"
    if _leads_nowhere(link):
        _write(link, place.link)
    _write(place.git_dir / "gitdir", os.fsencode(link) + b"\n")
    _disable_push(git, place)
    _write(place.git_dir / MARKER, json.dumps({"run": place.run}).encode())


def unbind(common: Path, run: str) -> None:
    """Remove what there is of a run's worktree: the mark first, so that a half removed one is never taken for whole."""
    root = common / "evalwright" / "worktrees" / run
    parts = [part for part in _parts(common) if _marked(part) == run or _leads_to(part, root)]
    for part in parts:
        (part / MARKER).unlink(missing_ok=True)
    _remove(root, inside=common / "evalwright" / "worktrees")
    for part in parts:
        _remove(part, inside=common / "worktrees")


def _disable_push(git: Git, place: Place) -> None:
    """Lead every push from this worktree to a transport that does not exist; other worktrees go on as before.

    A remote's own ``pushurl`` cannot be unset from here, only added to, so that address is rewritten, for fetching too.
    """
    _give_worktrees_settings(git, place.common)
    listed = git.find("config", "--null", "--get-regexp", r"^remote\..*\.pushurl$").split("\0")
    kept = [item.partition("\n")[2] for item in listed if item]
    settings = [(f"url.{NO_PUSH}.pushInsteadOf", ""), *((f"url.{NO_PUSH}.insteadOf", url) for url in kept)]
    settings += [(f"remote.{name}.pushurl", f"{NO_PUSH}{name}") for name in git.text("remote").splitlines()]
    with tempfile.TemporaryDirectory(prefix="evalwright-config-") as aside:
        for key, value in settings:
            git.run("config", "--file", f"{aside}/config", "--add", key, value)
        _write(place.git_dir / "config.worktree", Path(aside, "config").read_bytes())


def _give_worktrees_settings(git: Git, common: Path) -> None:
    """Let each worktree have settings of its own. The place of the main work tree moves to the main one's, as git asks for.

    See the section "configuration file" of git-worktree(1).
    """
    shared = str(common / "config")
    place = git.find("config", "--file", shared, "--get", "core.worktree")
    if place:
        git.run("config", "--file", f"{shared}.worktree", "core.worktree", place)
    if git.find("config", "--file", shared, "--type=bool", "--get", "extensions.worktreeConfig") != "true":
        git.run("config", "--file", shared, "extensions.worktreeConfig", "true")
    if place:
        git.run("config", "--file", shared, "--unset-all", "core.worktree")


def _parts(common: Path) -> Iterator[Path]:
    """Yield the directories in which git keeps what belongs to one worktree."""
    try:
        yield from sorted(entry for entry in (common / "worktrees").iterdir() if entry.is_dir() and not entry.is_symlink())
    except FileNotFoundError:
        return


def _marked(part: Path) -> str | None:
    """Return the run whose whole worktree this is."""
    try:
        record = json.loads((part / MARKER).read_bytes())
    except (OSError, ValueError):
        return None
    return str(record.get("run")) if is_object(record) else None


def _leads_nowhere(link: Path) -> bool:
    """Tell whether a worktree's ``.git`` is missing or names a directory that is gone, as when the repository was moved."""
    if not os.path.lexists(link):
        return True
    if link.is_symlink() or not link.is_file():
        return False
    return not os.path.isdir(link.parent / os.fsdecode(link.read_bytes()[:MAX_LINK_BYTES].removeprefix(b"gitdir: ").strip()))


def _leads_to(part: Path, root: Path) -> bool:
    try:
        return (part / "gitdir").read_bytes().rstrip(b"\n") == os.fsencode(root / ".git")
    except OSError:
        return False


def _write(path: Path, content: bytes) -> None:
    """Replace a file where an agent may have laid links: what is written has a name that nobody could know."""
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        os.fchmod(descriptor, 0o644)
    os.replace(aside, path)


def _remove(path: Path, *, inside: Path) -> None:
    """Remove a directory tree that an agent may have closed; never one that lies elsewhere."""
    if not os.path.lexists(path):
        return
    if path.parent != inside or inside.resolve() != inside:
        raise EvalwrightError(f"{path} does not lie in {inside}", hint="look what leads there, and remove it by hand")
    if path.is_dir() and not path.is_symlink():
        _open(path)
        shutil.rmtree(path)
    else:
        path.unlink()


def _open(root: Path) -> None:
    """Open every directory to its owner, so that it can be emptied."""
    root.chmod(0o700)
    for directory, names, _ in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
