"""Real repositories for tests, and git as a user or an agent runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from evalwright.processes import Supervisor
from evalwright_plugins.workflow.workspace import Repository, Workspace

__all__ = ["COMMITTER", "commit", "git", "made", "status_of"]

COMMITTER = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
}


def git(place: Path, *words: str) -> str:
    """Run git as an agent would, and return what it says."""
    return subprocess.run(["git", *words], cwd=place, env=COMMITTER, check=True, capture_output=True, text=True).stdout.strip()


def status_of(place: Path, *words: str) -> int:
    """Run git as an agent would, and return its exit status."""
    return subprocess.run(["git", *words], cwd=place, env=COMMITTER, check=False, capture_output=True).returncode


def commit(place: Path, **files: str) -> str:
    """Write files, commit everything that is not ignored, and return the commit; ``_`` in a name stands for a slash."""
    for name, text in files.items():
        path = place / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(place, "add", "--all")
    git(place, "commit", "--quiet", "--allow-empty", "-m", "change")
    return git(place, "rev-parse", "HEAD")


def made(place: Path, supervisor: Supervisor, run: str = "R1") -> tuple[Repository, Workspace, str]:
    """Return a repository with some files, the worktree of a run in it, and the commit that it began from."""
    place.mkdir(exist_ok=True)
    git(place, "init", "--quiet", "--initial-branch=main")
    base = commit(place, src__a="a\n", src__b="b\n", docs__text="text\n", **{".gitignore": "*.log\nbuild/\n"})
    repository = Repository.find(place, supervisor.run)
    return repository, repository.bind(run, base), base
