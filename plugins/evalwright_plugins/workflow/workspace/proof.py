"""Proof that nothing was written: everything that an agent could have changed, as it is at one moment."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from evalwright_plugins.workflow.workspace.files import mark_of, marks_below, read_small
from evalwright_plugins.workflow.workspace.git import Git, check_refs, paths, printable
from evalwright_plugins.workflow.workspace.places import BRANCHES, Place

__all__ = ["Area", "Proof", "proof_of"]

Area = str
"""``worktree``, ``index``, ``HEAD``, ``main checkout``, ``index of the main checkout``, ``ref`` or ``repository``."""

SETTINGS = ("config", "config.worktree", "shallow", "hooks", "info", "objects/info", "logs/refs/stash", "modules")
OWN_SETTINGS = ("commondir", "config.worktree", "gitdir", "locked")
BRANCH = re.compile(rb"refs/heads/[A-Za-z0-9_][A-Za-z0-9_/-]*")
"""Names that need no second look: all others, as the one that stands for refs kept in tables, are left to git."""

REWRITTEN_BY_GIT = ("info/refs", "objects/info/commit-graph", "objects/info/commit-graphs", "objects/info/packs")
OF_THE_WRITER = frozenset({"worktree", "index", "HEAD"})


@dataclass(frozen=True, slots=True)
class Proof:
    """What was there: a mark for each path, ref and entry, by area and name. Equal proofs mean that nothing was written."""

    marks: Mapping[tuple[Area, str], str]
    branch: str

    def difference(self, later: Proof) -> list[str]:
        """Return what a step that may write nothing has changed, as lines to read; empty for nothing."""
        return [_line(key, self.marks.get(key), later.marks.get(key)) for key in self._changed(later)]

    def trespasses(self, later: Proof) -> list[str]:
        """Return what a writing step has changed beside its worktree, its index and its own branch, as lines to read."""
        own = ("ref", self.branch)
        beside = (key for key in self._changed(later) if key[0] not in OF_THE_WRITER and key != own)
        return [_line(key, self.marks.get(key), later.marks.get(key)) for key in beside]

    def files(self, later: Proof) -> list[str]:
        """Return the paths of the worktree's changed files, ignored ones too."""
        return [name for area, name in self._changed(later) if area == "worktree"]

    def _changed(self, later: Proof) -> list[tuple[Area, str]]:
        keys = self.marks.keys() | later.marks.keys()
        return sorted(key for key in keys if self.marks.get(key) != later.marks.get(key))


def proof_of(git: Git, main: Git, place: Place, beside: Collection[str]) -> Proof:
    """Take the proof of a worktree. ``beside`` names runs that are driven at the same time: their branches may move.

    Raises :class:`GitError` where git could not even be asked.
    """
    check_refs(place.common)
    moving = {f"{BRANCHES}/{run}" for run in beside if run != place.run}
    marks = {("worktree", path): mark for path, mark in marks_below(str(place.root))}
    marks |= {("index", name): mark for name, mark in _index(git)}
    marks["HEAD", "HEAD"] = _branch(git, place) or git.text("rev-parse", "HEAD")
    marks |= {("main checkout", path): mark for path, mark in _checkout(main, place)}
    marks |= {("index of the main checkout", name): mark for name, mark in _index(main)}
    marks |= {("ref", name): mark for name, mark in _refs(main, place) if name not in moving}
    marks |= {("repository", name): mark for name, mark in (*_settings(place), *_links(place))}
    return Proof(marks, place.branch)


def _branch(git: Git, place: Place) -> str:
    """Return the name that HEAD holds, empty for none. Git is asked where HEAD's file does not name one."""
    said = read_small(str(place.git_dir / "HEAD")) or b""
    name = said.removeprefix(b"ref: ").removesuffix(b"\n")
    if said == b"ref: " + name + b"\n" and BRANCH.fullmatch(name):
        return name.decode()
    return git.find("symbolic-ref", "--quiet", "HEAD")


def _index(git: Git) -> Iterator[tuple[str, str]]:
    """Yield what is staged, with the marks that make git look away; times of files are left out, reading renews them."""
    for entry in paths(git.run("ls-files", "--stage", "-v", "-z")):
        what, _, path = entry.partition("\t")
        yield f"{path}:{what[-1:]}", what


def _checkout(main: Git, place: Place) -> Iterator[tuple[str, str]]:
    listed = main.run("ls-files", "--others", "--ignored", "--exclude-standard", "-z")
    inside = place.common.relative_to(place.checkout) if place.common.is_relative_to(place.checkout) else None
    return marks_below(str(place.checkout), leave={str(inside)} if inside else (), by_status=set(paths(listed)))


def _refs(main: Git, place: Place) -> Iterator[tuple[str, str]]:
    for line in os.fsdecode(main.run("for-each-ref", "--format=%(refname) %(objectname) %(symref)")).splitlines():
        name, _, value = line.partition(" ")
        yield name, value
    yield "HEAD of the main checkout", mark_of(str(place.common / "HEAD"))


def _settings(place: Place) -> Iterator[tuple[str, str]]:
    for base, names in ((place.common, SETTINGS), (place.git_dir, OWN_SETTINGS)):
        for name in names:
            path = str(base / name)
            shown = os.path.relpath(path, place.common)
            yield shown, mark_of(path)
            for below, mark in marks_below(path):
                whole = os.path.join(shown, below)
                if not _rewritten(whole):
                    yield whole, mark


def _links(place: Place) -> Iterator[tuple[str, str]]:
    """Yield links, sockets and the like in those places that a commit writes: git makes none there, and follows them."""
    refs = (place.common / place.branch).parent
    logs = place.common / "logs" / refs.relative_to(place.common)
    found = [
        (place.common / "objects", name, mark_of(str(place.common / "objects" / name)))
        for name in os.listdir(place.common / "objects")
    ]
    found += [(base, name, mark) for base in (place.git_dir, refs, logs) for name, mark in marks_below(str(base))]
    for base, name, mark in found:
        if mark.startswith(("link", "special")):
            yield os.path.relpath(base / name, place.common), mark


def _rewritten(name: str) -> bool:
    """Tell whether git itself may rewrite a file while nobody changes anything, as ``gc`` does."""
    if name.startswith("modules/"):
        return "/objects/" in name or name.endswith(("/index", "/FETCH_HEAD", "/ORIG_HEAD", "/gc.log", "/packed-refs"))
    return name.startswith(REWRITTEN_BY_GIT)


def _line(key: tuple[Area, str], before: str | None, after: str | None) -> str:
    absent = (None, "missing")
    happened = "added" if before in absent else "removed" if after in absent else "changed"
    area, name = key
    return f"{area}: {happened}" if area == name else f"{area}: {printable(name)} {happened}"
