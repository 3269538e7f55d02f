"""Fixtures of the workflow tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.workflow.toys import Toy


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Toy]:
    """Give a repository with one commit."""
    made = Toy(tmp_path / "repository")
    yield made
    made.supervisor.close()
