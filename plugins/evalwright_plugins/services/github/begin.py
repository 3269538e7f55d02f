"""From a seed to the state that a fake GitHub starts with, and from a state to what is kept of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evalwright_plugins.services.github.seed import CheckSeed, GithubSeed, IssueSeed, LabelSeed, PullSeed, RepositorySeed
from evalwright_plugins.services.github.world import Check, Comment, Issue, Label, Pull, Repository, Review, World, blob_sha

__all__ = ["begin", "shown"]

MAX_TEXT_BYTES = 16 << 20


def begin(seed: GithubSeed) -> World:
    """Return the state that a seed describes."""
    world = World(user=seed.user)
    for name, repository in seed.repositories.items():
        world.repositories[name.lower()] = _repository(world, name, repository)
    return world


def shown(world: World) -> dict[str, Any]:
    """Return the state as JSON: ``{"user", "events", "repositories": {NAME: {issues, pulls, labels, branches}}}``."""
    return {
        "user": world.user,
        "events": [dict(event) for event in world.events],
        "repositories": {repository.name: _shown(repository) for repository in world.repositories.values()},
    }


def _repository(world: World, name: str, seed: RepositorySeed) -> Repository:
    repository = Repository(
        world.id(), name, seed.default_branch, seed.description, seed.private, required_checks=list(seed.required_checks)
    )
    for label in seed.labels:
        given = LabelSeed(name=label) if isinstance(label, str) else label
        repository.labels[given.name.lower()] = Label(world.id(), given.name, given.color, given.description)
    for branch, files in {seed.default_branch: {}, **seed.branches}.items():
        content = {path: text.encode() for path, text in files.items()}
        world.commit(repository, branch, f"Start of {branch}", content, parents=[])
        repository.checks[repository.branches[branch]] = _checks(world, seed.checks.get(branch, []))
    for item in sorted([*seed.issues, *seed.pulls], key=lambda item: item.number):
        repository.issues[item.number] = _issue(world, repository, item)
    return repository


def _issue(world: World, repository: Repository, seed: IssueSeed) -> Issue:
    time = world.now()
    return Issue(
        id=world.id(),
        number=seed.number,
        title=seed.title,
        body=seed.body,
        user=seed.user,
        time=time,
        state="closed" if isinstance(seed, PullSeed) and seed.merged else seed.state,
        labels=[world.label(repository, name).name for name in dict.fromkeys(seed.labels)],
        assignees=list(seed.assignees),
        comments=[Comment(world.id(), comment.user, comment.body, world.now()) for comment in seed.comments],
        pull=_pull(world, repository, seed) if isinstance(seed, PullSeed) else None,
    )


def _pull(world: World, repository: Repository, seed: PullSeed) -> Pull:
    made_up = hashlib.sha1(f"{repository.name}#{seed.number}".encode(), usedforsecurity=False).hexdigest()
    sha = seed.head_sha or repository.branches.get(seed.head) or made_up
    repository.checks[sha] = [*repository.checks.get(sha, []), *_checks(world, seed.checks)]
    return Pull(
        base=seed.base,
        head=seed.head,
        head_sha=sha,
        draft=seed.draft,
        mergeable=seed.mergeable,
        merged=seed.merged,
        files=seed.files,
        reviews=[Review(world.id(), item.user, item.state, item.body, sha, world.now()) for item in seed.reviews],
    )


def _checks(world: World, seeds: Sequence[CheckSeed]) -> list[Check]:
    return [Check(world.id(), check.name, check.conclusion, check.log) for check in seeds]


def _shown(repository: Repository) -> dict[str, Any]:
    return {
        "default_branch": repository.default_branch,
        "labels": [label.name for label in repository.labels.values()],
        "issues": {str(issue.number): _item(issue) for issue in repository.issues.values() if not issue.pull},
        "pulls": {str(issue.number): _item(issue) for issue in repository.pulls},
        "branches": _branches(repository),
    }


def _branches(repository: Repository) -> dict[str, dict[str, Any]]:
    """Return the files of each branch as text; once that is a lot, the others as their ids, since branches share them."""
    shown: dict[str, dict[str, Any]] = {}
    left = MAX_TEXT_BYTES
    for branch in repository.branches:
        files = shown[branch] = dict[str, Any]()
        for path, data in repository.files(branch).items():
            left -= len(data)
            files[path] = data.decode("utf-8", "replace") if left >= 0 else {"sha": blob_sha(data)}
    return shown


def _item(issue: Issue) -> dict[str, Any]:
    record = asdict(issue)
    pull: dict[str, Any] | None = record.pop("pull")
    if pull is None:
        return record
    del pull["files"]
    return {**record, **pull, "comments": record["comments"], "review_comments": pull["comments"]}
