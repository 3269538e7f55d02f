"""Every cell of the isolation page's table is what happens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import shortened
from tests.isolation.graded import GRADED
from tests.isolation.programs import PROGRAMS, Program
from tests.isolation.table import PAGE, TABLES, graded, outcome, started, written

from evalwright.interfaces import Deadline, Sandbox

TABLE = written(PAGE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=shortened(TABLES, ["subprocess", "bubblewrap"]))
def sandbox(request: pytest.FixtureRequest) -> Iterator[tuple[str, Sandbox[Any]]]:
    """Return the name of a sandbox of the table, and the sandbox."""
    name = request.param
    if name == "vm":
        request.getfixturevalue("vm_image")
    made = started(name)
    yield name, made
    made.close(Deadline.after(30))


@pytest.fixture
def ground() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="evalwright-hostile-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="the page says what holds for an agent that is started by root")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_hostile_program_reaches_what_the_page_says(
    sandbox: tuple[str, Sandbox[Any]], program: Program, ground: Path
) -> None:
    name, made = sandbox
    assert outcome(made, program, ground) == TABLE[program.name][f"`{name}`"]


@pytest.mark.skipif(os.geteuid() != 0, reason="the page says what holds for an agent that is started by root")
@pytest.mark.parametrize("program", shortened(GRADED, list(GRADED)[:2]))
def test_a_program_that_aims_at_the_grader_reaches_what_the_page_says(
    sandbox: tuple[str, Sandbox[Any]], program: str, ground: Path
) -> None:
    assert graded(sandbox[0], program, ground) == TABLE[program][f"`{sandbox[0]}`"]


def test_the_page_lists_every_program_and_no_other() -> None:
    assert list(TABLE) == [*(program.name for program in PROGRAMS), *GRADED]
