"""Fixtures of the workflow tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workflow.repositories import made
from tests.workflow.toy import Toy
from tests.zygote import Zygote

from evalwright.processes import Supervisor
from evalwright_plugins.workflow.workspace import Repository, Workspace


@pytest.fixture
def toy(tmp_path: Path, zygote: Zygote) -> Iterator[Toy]:
    """Give a repository with one commit."""
    toy = Toy(tmp_path / "repository", zygote)
    yield toy
    toy.supervisor.close()


@pytest.fixture(scope="session")
def supervisor() -> Iterator[Supervisor]:
    """Return what runs git."""
    with Supervisor() as supervisor:
        yield supervisor


@pytest.fixture
def bound(tmp_path: Path, supervisor: Supervisor) -> tuple[Repository, Workspace, str]:
    """Return a repository, the worktree of run R1 in it, and the commit that it began from."""
    return made(tmp_path / "repository", supervisor)


@pytest.fixture
def repository(bound: tuple[Repository, Workspace, str]) -> Repository:
    """Return the repository."""
    return bound[0]


@pytest.fixture
def workspace(bound: tuple[Repository, Workspace, str]) -> Workspace:
    """Return the worktree of run R1."""
    return bound[1]


@pytest.fixture
def base(bound: tuple[Repository, Workspace, str]) -> str:
    """Return the commit that run R1 began from."""
    return bound[2]


@pytest.fixture
def root(workspace: Workspace) -> Path:
    """Return the directory of the worktree."""
    return workspace.place.root
