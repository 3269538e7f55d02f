"""What of a repository a sandbox shows beside the worktree, and what of it can be written there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from evalwright.errors import SandboxError
from evalwright.interfaces import Mount
from evalwright_plugins.workflow.workspace.binding import MARKER
from evalwright_plugins.workflow.workspace.places import Place
from evalwright_plugins.workflow.workspace.worktree import Workspace

__all__ = ["ENVIRONMENT", "mounts_of"]

KEPT = ("commondir", "config.worktree", "gitdir", "locked", MARKER)
ENVIRONMENT: Mapping[str, str] = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
    "GIT_CONFIG_KEY_1": "gc.auto",
    "GIT_CONFIG_VALUE_1": "0",
}
"""What commands inside need beside the mounts: trust in directories of the host's user, and no attempt to tidy up."""

KEEPER = ".keep.lock"
"""Keeps ``gc`` from removing the directory of branches while it is mounted; git takes no notice of such a name."""


def mounts_of(workspace: Workspace, readonly: bool) -> list[Mount]:
    """Return the mounts with which git works in a session whose workspace is the worktree; a later one lies over earlier ones.

    What the git directory holds is read-only, at the host's own path; the state of runs in it is not there. A writing step
    can write objects, the worktree's own part and the directory of the runs' branches: that is what a commit takes. Neither
    packs nor configuration, hooks, HEAD and other refs can be changed. Branches of other runs are covered where they have a
    file; what is done to packed ones :meth:`Proof.trespasses` tells. Makes the directories that must be there. Raises
    ``SandboxError`` for a repository whose refs lie in one table.
    """
    place = workspace.place
    if (place.common / "reftable").exists():
        raise SandboxError(
            f"the refs of {place.common} lie in one table (reftable), of which no part can be mounted",
            hint="use a sandbox without mounts, or convert it: git refs migrate --ref-format=files",
        )
    os.utime(place.git_dir / "gitdir")
    mounts = [_mount(path) for path in sorted(place.common.iterdir()) if path != place.state and _is_plain(path)]
    return mounts if readonly else [*mounts, *_writable(place)]


def _is_plain(path: Path) -> bool:
    return not path.is_symlink() and (path.is_file() or path.is_dir())


def _writable(place: Place) -> Iterator[Mount]:
    objects, refs, log = place.common / "objects", (place.common / place.branch).parent, place.common / "logs" / place.branch
    for directory in (objects / "pack", objects / "info", refs, log.parent):
        directory.mkdir(parents=True, exist_ok=True)
    os.close(os.open(refs / KEEPER, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644))
    for directory in (objects, place.git_dir, refs, log.parent):
        yield _mount(directory, writable=True)
    for directory in (objects / "pack", objects / "info"):
        yield _mount(directory)
    for name in KEPT:
        if _is_real(place.git_dir / name):
            yield _mount(place.git_dir / name)
    for directory in (refs, log.parent):
        for other in sorted(directory.iterdir()):
            if other.name not in (place.run, f"{place.run}.lock") and _is_real(other):
                yield _mount(other)


def _is_real(path: Path) -> bool:
    """Tell whether something is there and no link: a link that an agent laid would show what it leads to."""
    return path.exists() and not path.is_symlink()


def _mount(source: Path, *, target: Path | None = None, writable: bool = False) -> Mount:
    return Mount(source=source, target=PurePosixPath(target or source), writable=writable)
