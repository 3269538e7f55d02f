"""Git fixtures arrive with what HEAD reaches and nothing else: no future commits, reflogs, remotes or hooks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evalwright.errors import SuiteError
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright.workspace.write import copy_tree

__all__ = ["find_repositories", "without_history"]

KEPT_SETTINGS = frozenset({"autocrlf", "eol", "filemode", "ignorecase", "precomposeunicode", "safecrlf", "symlinks"})
SECTION = "[core]\n\trepositoryformatversion = {}\n\tfilemode = true\n\tbare = false\n"
OBJECT_FORMAT = "[extensions]\n\tobjectformat = {}\n"
WORD = re.compile("[A-Za-z]+")
LINK_TO_COMMIT = "160000"
GIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class _Staged:
    """An entry of the index that HEAD does not have; ``mode`` is zero for a deletion."""

    mode: str
    digest: str
    path: bytes

    @property
    def has_object(self) -> bool:
        return int(self.mode, 8) != 0 and self.mode != LINK_TO_COMMIT


def find_repositories(root: Path) -> list[Path]:
    """Return the directories below ``root``, itself included, that hold a ``.git`` directory."""
    return sorted(_repositories(root))


def without_history(source: Path, target: Path, repositories: list[Path]) -> None:
    """Copy ``source`` to ``target``, each repository with the objects that its HEAD reaches, packed afresh.

    Staged changes stay staged where the working tree holds the same; what is only in the index is no more reachable than a
    stash, and is left out. The result depends only on the source and on git's version. Raises ``SuiteError`` when git is
    missing or cannot read a repository.
    """
    inside = {os.fsencode(repository.relative_to(source)) for repository in repositories}
    skipped = {os.path.join(place, b".git") if place != b"." else b".git" for place in inside}
    copy_tree(source, target, skip=lambda path: path in skipped)
    with Supervisor() as supervisor:
        for repository in repositories:
            _transplant(supervisor, repository, target / repository.relative_to(source))


def _repositories(root: Path) -> Iterator[Path]:
    for directory, names, _ in os.walk(root):
        if ".git" in names:
            names.remove(".git")
            yield Path(directory)


def _transplant(supervisor: Supervisor, source: Path, target: Path) -> None:
    source, target = source.resolve(), target.resolve()
    head = _git(supervisor, source, "rev-parse", "--verify", "--quiet", "HEAD^{commit}", failing_is_fine=True)
    branch = _git(supervisor, source, "symbolic-ref", "--quiet", "HEAD", failing_is_fine=True)
    name = branch.stdout.text.strip() if branch.exit_code == 0 else ""
    commit = head.stdout.text.strip() if head.exit_code == 0 else ""
    git = target / ".git"
    for directory in ("info", "objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (git / directory).mkdir(parents=True)
    (git / "config").write_text(_config(supervisor, source), newline="")
    (git / "HEAD").write_text(f"ref: {name}\n" if name else f"{commit}\n", newline="")
    exclude = source / ".git" / "info" / "exclude"
    if exclude.is_file():
        (git / "info" / "exclude").write_bytes(exclude.read_bytes())
    if commit:
        _keep_boundary(supervisor, source, git)
        if name:
            reference = git / name
            reference.parent.mkdir(parents=True, exist_ok=True)
            reference.write_text(f"{commit}\n", newline="")
    _fill(supervisor, source, target, commit)


def _fill(supervisor: Supervisor, source: Path, target: Path, commit: str) -> None:
    """Pack what HEAD and the kept part of the index name, and write that index."""
    staged = _staged(supervisor, source, commit)
    named = [*([commit] if commit else []), *(entry.digest for entry in staged if entry.has_object)]
    if named:
        prefix = str(target / ".git/objects/pack/pack")
        listed = "".join(f"{digest}\n" for digest in named).encode()
        _git(supervisor, source, "pack-objects", "--revs", "--threads=1", "-q", prefix, stdin=listed)
    if commit:
        _git(supervisor, target, "read-tree", "HEAD")
    if staged:
        lines = b"".join(f"{entry.mode} {entry.digest}\t".encode() + entry.path + b"\0" for entry in staged)
        _git(supervisor, target, "update-index", "-z", "--index-info", stdin=lines)


def _staged(supervisor: Supervisor, source: Path, commit: str) -> list[_Staged]:
    """Return what the index adds to HEAD, where the working tree says the same."""
    base = commit or _git(supervisor, source, "hash-object", "-t", "tree", "--stdin").stdout.text.strip()
    listed = _fields(supervisor, source, "diff-index", "--cached", "--raw", "-z", "--no-renames", "--no-abbrev", base)
    rows = list(zip(listed[::2], listed[1::2], strict=False))
    if not rows:
        return []
    edited = set(_fields(supervisor, source, "diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"))
    found: list[_Staged] = []
    for row, path in rows:
        _, mode, _, digest, status = row.decode("ascii").split(" ")
        if status != "U" and path not in edited:
            found.append(_Staged(mode, digest, path))
    return found


def _fields(supervisor: Supervisor, source: Path, *words: str) -> list[bytes]:
    output = _git(supervisor, source, *words).stdout
    if output.truncated:
        raise SuiteError(f"the index of {source} differs in too many files", hint="commit the fixture's changes")
    return output.head.split(b"\0")


def _config(supervisor: Supervisor, source: Path) -> str:
    """Return a configuration that names no remote, no program and nobody: only what decides whether files are clean."""
    object_format = _git(supervisor, source, "rev-parse", "--show-object-format").stdout.text.strip()
    listed = _git(supervisor, source, "config", "--local", "--null", "--list").stdout.text.split("\0")
    pairs = (item.partition("\n") for item in listed)
    kept = {key[5:]: value for key, _, value in pairs if key.startswith("core.") and key[5:] in KEPT_SETTINGS}
    settings = "".join(f"\t{key} = {value}\n" for key, value in sorted(kept.items()) if WORD.fullmatch(value))
    extended = object_format != "sha1"
    return SECTION.format(int(extended)) + settings + (OBJECT_FORMAT.format(object_format) if extended else "")


def _keep_boundary(supervisor: Supervisor, source: Path, git: Path) -> None:
    """Write where a shallow history ends, as far as HEAD reaches."""
    shallow = source / ".git" / "shallow"
    if shallow.is_file():
        reached = set(_git(supervisor, source, "rev-list", "--max-parents=0", "HEAD").stdout.text.split())
        ends = [line for line in shallow.read_text(encoding="ascii").split() if line in reached]
        (git / "shallow").write_text("".join(f"{end}\n" for end in ends), newline="")


def _git(
    supervisor: Supervisor, directory: Path, *words: str, stdin: bytes | None = None, failing_is_fine: bool = False
) -> Completed:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": str(directory / ".git"),
        "GIT_WORK_TREE": str(directory),
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    argv = ["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", "-c", "protocol.allow=never", *words]
    done = supervisor.run(Command(argv=argv, cwd=str(directory), env=environment, stdin=stdin, timeout=GIT_SECONDS))
    if done.spawn_error:
        raise SuiteError(f"{directory} is a git repository, but git cannot be started", hint="install git")
    if done.exit_code != 0 and not failing_is_fine:
        raise SuiteError(
            f"git cannot read the repository {directory}: {done.stderr.text.strip()[-300:]}",
            hint="repair the fixture's repository",
        )
    return done
