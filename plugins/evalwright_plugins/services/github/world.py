"""The state of a fake GitHub: plain mutable values, changed by one thread at a time, and a log of what happened to them.

Ids, times and commit ids follow from what was done, never from a clock, so that equal calls leave equal states.
"""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Check", "Comment", "Commit", "Issue", "Label", "Pull", "Repository", "Review", "World", "blob_sha"]

EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
Files = dict[str, bytes]


def blob_sha(content: bytes) -> str:
    """Return the id that git gives a file of this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class Label:
    """A label of a repository."""

    id: int
    name: str
    color: str = "ededed"
    description: str | None = None


@dataclass
class Comment:
    """A comment; ``path`` and ``line`` place one on a pull request's diff."""

    id: int
    user: str
    body: str
    time: str
    path: str | None = None
    line: int | None = None


@dataclass
class Review:
    """A review of a pull request."""

    id: int
    user: str
    state: str
    body: str
    commit: str
    time: str


@dataclass
class Check:
    """A check run on a commit; ``conclusion`` is ``None`` while it runs. ``state`` is set for a commit status instead."""

    id: int
    name: str
    conclusion: str | None
    log: str = ""
    state: str | None = None
    description: str | None = None


@dataclass
class Commit:
    """A commit with all files of its tree."""

    sha: str
    message: str
    parents: list[str]
    files: Files
    time: str


@dataclass
class Pull:
    """What makes an issue a pull request. ``files`` are those of the seed, ``None`` where branches tell."""

    base: str
    head: str
    head_sha: str
    draft: bool = False
    mergeable: bool = True
    merged: bool = False
    merge_sha: str | None = None
    merged_by: str | None = None
    auto_merge: str | None = None
    files: list[dict[str, Any]] | None = None
    reviews: list[Review] = field(default_factory=list[Review])
    comments: list[Comment] = field(default_factory=list[Comment])
    reviewers: list[str] = field(default_factory=list[str])


@dataclass
class Issue:
    """An issue, or with ``pull`` a pull request."""

    id: int
    number: int
    title: str
    body: str | None
    user: str
    time: str
    state: str = "open"
    reason: str | None = None
    closed: str | None = None
    labels: list[str] = field(default_factory=list[str])
    assignees: list[str] = field(default_factory=list[str])
    comments: list[Comment] = field(default_factory=list[Comment])
    pull: Pull | None = None


@dataclass
class Repository:
    """A repository. ``branches`` names the commit of each; labels are keyed by their names in small letters."""

    id: int
    name: str
    default_branch: str = "main"
    description: str | None = None
    private: bool = False
    labels: dict[str, Label] = field(default_factory=dict[str, Label])
    issues: dict[int, Issue] = field(default_factory=dict[int, Issue])
    branches: dict[str, str] = field(default_factory=dict[str, str])
    commits: dict[str, Commit] = field(default_factory=dict[str, Commit])
    checks: dict[str, list[Check]] = field(default_factory=dict[str, list[Check]])
    required_checks: list[str] = field(default_factory=list[str])

    @property
    def pulls(self) -> list[Issue]:
        """Return the pull requests, oldest first."""
        return [issue for issue in self.issues.values() if issue.pull]

    def commit(self, ref: str) -> str | None:
        """Return the commit that a branch, a full ref or the beginning of a commit's id means."""
        ref = ref.removeprefix("refs/").removeprefix("heads/")
        if ref in self.branches:
            return self.branches[ref]
        known = {*self.commits, *self.checks, *(issue.pull.head_sha for issue in self.pulls if issue.pull)}
        return next((sha for sha in sorted(known) if len(ref) >= 7 and sha.startswith(ref)), None)

    def files(self, ref: str) -> Files:
        """Return the files of a branch or commit, none where it is not known."""
        commit = self.commits.get(self.commit(ref) or "")
        return commit.files if commit else {}


@dataclass
class World:
    """Everything. ``events`` says what was done, in order."""

    user: str = "evalwright[bot]"
    repositories: dict[str, Repository] = field(default_factory=dict[str, Repository])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    steps: int = 0

    def id(self) -> int:
        """Return an id that nothing has yet."""
        self.steps += 1
        return 1000 + self.steps

    def now(self) -> str:
        """Return a time that is later than all before."""
        self.steps += 1
        return (EPOCH + datetime.timedelta(seconds=self.steps)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def tell(self, event: str, repository: Repository, number: int | None = None, **more: Any) -> None:
        """Note an event."""
        self.events.append({"event": event, "repository": repository.name, "number": number, "actor": self.user, **more})

    def commit(self, repository: Repository, branch: str, message: str, files: Files, *, parents: list[str]) -> Commit:
        """Put a commit on a branch, which is made if it is not there."""
        time = self.now()
        text = "\n".join(
            [branch, message, time, *parents, *(f"{path} {blob_sha(data)}" for path, data in sorted(files.items()))]
        )
        sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
        repository.commits[sha] = Commit(sha, message, parents, files, time)
        repository.branches[branch] = sha
        for issue in repository.pulls:
            if issue.pull and issue.pull.head == branch and issue.state == "open" and parents:
                issue.pull.head_sha = sha
        return repository.commits[sha]

    def label(self, repository: Repository, name: str) -> Label:
        """Return a repository's label, made if it is not there, as GitHub does when an unknown one is added to an issue."""
        return repository.labels.setdefault(name.lower(), Label(self.id(), name))
