"""Git fixtures arrive with what HEAD reaches and nothing else: no future commits, reflogs, remotes or hooks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from evalwright.errors import SuiteError
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright.workspace.write import copy_tree

__all__ = ["find_repositories", "without_history"]

CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
CONFIG_OTHER = CONFIG.replace("version = 0", "version = 1") + "[extensions]\n\tobjectformat = {}\n"
GIT_SECONDS = 300.0


def find_repositories(root: Path) -> list[Path]:
    """Return the directories below ``root``, itself included, that hold a ``.git`` directory."""
    return sorted(_repositories(root))


def without_history(source: Path, target: Path, repositories: list[Path]) -> None:
    """Copy ``source`` to ``target``, each repository with the objects that its HEAD reaches, packed afresh.

    The index is that of HEAD; staged changes arrive as changes of the working tree. The result depends only on the source
    and on git's version. Raises ``SuiteError`` when git is missing or cannot read a repository.
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
    git = target / ".git"
    for directory in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (git / directory).mkdir(parents=True)
    object_format = _git(supervisor, source, "rev-parse", "--show-object-format").stdout.text.strip()
    config = CONFIG if object_format == "sha1" else CONFIG_OTHER.format(object_format)
    (git / "config").write_text(config, newline="")
    shallow = source / ".git" / "shallow"
    if shallow.is_file():
        (git / "shallow").write_bytes(shallow.read_bytes())
    name = branch.stdout.text.strip() if branch.exit_code == 0 else ""
    commit = head.stdout.text.strip()
    (git / "HEAD").write_text(f"ref: {name}\n" if name else f"{commit}\n", newline="")
    if head.exit_code != 0:
        return
    if name:
        reference = git / name
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(f"{commit}\n", newline="")
    prefix = str(git / "objects/pack/pack")
    _git(supervisor, source, "pack-objects", "--revs", "--threads=1", "-q", prefix, stdin=b"HEAD\n")
    _git(supervisor, target, "read-tree", "HEAD")


def _git(
    supervisor: Supervisor, directory: Path, *words: str, stdin: bytes | None = None, failing_is_fine: bool = False
) -> Completed:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(directory.parent),
        "LC_ALL": "C",
    }
    argv = ["git", "-c", "safe.directory=*", "-c", "core.fsmonitor=false", *words]
    done = supervisor.run(Command(argv=argv, cwd=str(directory), env=environment, stdin=stdin, timeout=GIT_SECONDS))
    if done.spawn_error:
        raise SuiteError(f"{directory} is a git repository, but git cannot be started", hint="install git")
    if done.exit_code != 0 and not failing_is_fine:
        raise SuiteError(
            f"git cannot read the repository {directory}: {done.stderr.text.strip()[-300:]}",
            hint="repair the fixture's repository",
        )
    return done
