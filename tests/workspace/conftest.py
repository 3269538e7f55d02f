"""A fixture with every kind of thing in it, in a store, and where each strategy can make clones of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalwright.store import DirectoryStore
from evalwright.workspace import Clone, Cloner, Fixture, Scratch
from evalwright.workspace.mounts import MOUNTS
from evalwright.workspace.overlay import can_overlay

STRATEGIES = ("copy", "overlay")
FILES = 260


@dataclass
class Scene:
    """A fixture in a store, and scratch directories for its clones."""

    root: Path
    fixture: Fixture
    scratch: Scratch
    strategy: str

    def clone(self) -> Clone:
        """Return a new clone."""
        return Cloner(self.strategy).clone(self.fixture, self.scratch.place(0))


def write_fixture(root: Path) -> None:
    """Write a tree that is too large to be small, with every kind of thing that a fixture may hold."""
    for number in range(FILES):
        path = root / f"d{number % 7}" / f"s{number % 3}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(f"{number}\n".encode() * (number % 5))
        path.chmod((0o644, 0o755, 0o600, 0o444)[number % 4])
    (root / "link").symlink_to("d0/s0/f0")
    (root / "d1" / "up").symlink_to("../d2")
    (root / "dangling").symlink_to("nowhere")
    (root / "empty").mkdir()
    (root / "open").mkdir(mode=0o777)
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9 \x01")).write_bytes(b"odd")
    (root / "large").write_bytes(bytes(range(256)) * 8192)
    (root / "large2").write_bytes(bytes(range(255)) * 8192)


def possible(strategy: str, home: Path) -> bool:
    """Tell whether a strategy can be tried; with EVALWRIGHT_REQUIRE_ALL=1 root must be able to."""
    if strategy != "overlay" or can_overlay(home):
        return True
    if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1" and os.geteuid() == 0:
        pytest.fail("overlays cannot be mounted")
    return False


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DirectoryStore, str]:
    """Return the fixture's source, and a store that holds it under a digest."""
    place = tmp_path_factory.mktemp("stored")
    (place / "source").mkdir()
    write_fixture(place / "source")
    store = DirectoryStore(place / "store")
    return place / "source", store, store.put_tree(place / "source")


@pytest.fixture(params=STRATEGIES)
def scene(request: pytest.FixtureRequest, tmp_path: Path, stored: tuple[Path, DirectoryStore, str]) -> Iterator[Scene]:
    """Return the scene of one strategy."""
    home = tmp_path / "home"
    home.mkdir()
    if not possible(request.param, home):
        pytest.skip("overlays cannot be mounted here")
    source, store, digest = stored
    scratch = Scratch(tmp_path / "scratch")
    yield Scene(source, Fixture(digest, store.tree(digest), store.verified), scratch, request.param)
    scratch.close()
    assert mounted_below(tmp_path) == []


def mounted_below(root: Path) -> list[str]:
    """Return what is mounted below a directory."""
    points = [line.split(" ")[4] for line in MOUNTS.read_text().splitlines()]
    return [point for point in points if point.startswith(f"{root}/")]
