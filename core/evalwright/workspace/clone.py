"""A trial's own copy of a fixture, by the cheapest way that the place allows, and what became of it."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalwright.errors import SandboxError
from evalwright.model import Manifest
from evalwright.workspace.mounts import close_to_writes, unmount_below
from evalwright.workspace.overlay import Base, Overlay, can_overlay
from evalwright.workspace.scan import Known, Stamped, scan
from evalwright.workspace.scratch import TrialPlace, remove_tree
from evalwright.workspace.stamps import notes_writes, pass_tick
from evalwright.workspace.write import copy_file, copy_tree, restore

__all__ = ["Clone", "Cloner", "Fixture"]

SMALL_FILES = 200
SMALL_BYTES = 1 << 20
KEPT_BASES = 4


@dataclass(frozen=True, slots=True)
class Fixture:
    """A tree of the content store: its digest, what it holds, and what finds a file's content by digest."""

    digest: str
    manifest: Manifest
    blob: Callable[[str], Path]
    size_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size_bytes", self.manifest.total_bytes)

    @property
    def is_small(self) -> bool:
        """Tell whether copying and reading everything costs less than anything cleverer."""
        return len(self.manifest.entries) < SMALL_FILES and self.size_bytes < SMALL_BYTES


class Clone:
    """A filled workspace."""

    def __init__(self, place: TrialPlace, *, known: Known | None = None, overlay: Overlay | None = None) -> None:
        self.place = place
        self._known: Known = known or {}
        self._overlay = overlay

    def scan(self, *, whole: bool = False) -> Manifest:
        """Return what the workspace holds now; ``whole`` reads every file, whatever its status says.

        Raises ``UnreadableError`` for what cannot be read, as :func:`evalwright.workspace.scan` does.
        """
        if self._overlay is not None and not whole:
            return self._overlay.scan()
        return scan(self.place.workspace, known=None if whole else self._known)

    def copy_to(self, place: TrialPlace) -> None:
        """Fill another workspace with what this one holds. It is the last that is written here: no process uses it any more."""
        overlay = self._overlay
        if overlay is None or place.owner != self.place.owner or place.root.parent != self.place.root.parent:
            copy_tree(self.place.workspace, place.workspace, special=True, owner=place.owner)
            return
        overlay.freeze()
        Overlay(overlay.base, place.workspace, place.root / "o", owner=place.owner, below=overlay.layers[:-1])


class Cloner:
    """Fills workspaces. ``strategy`` is ``auto``, ``overlay``, ``reflink`` or ``copy``. Thread-safe.

    ``auto`` tries them in this order, once in each place; small fixtures are copied, which costs less than a mount.
    """

    def __init__(self, strategy: str = "auto") -> None:
        self._strategy = strategy
        self._possible: dict[tuple[str, Path, Path], bool] = {}
        self._bases: OrderedDict[tuple[Path, str, int | None], Base] = OrderedDict()
        self._lock = threading.Lock()

    def clone(self, fixture: Fixture, place: TrialPlace) -> Clone:
        """Fill the empty workspace of a place with a fixture. Raises ``SandboxError`` when the strategy is impossible there."""
        small = fixture.is_small
        strategy = "copy" if self._strategy == "auto" and small else self._chosen(fixture, place)
        if strategy == "overlay":
            overlay = Overlay(self._base(fixture, place), place.workspace, place.root / "o", owner=place.owner)
            return Clone(place, overlay=overlay)
        stamps: Stamped | None = None if small or not notes_writes(place.workspace) else {}
        share = strategy == "reflink"
        restore(fixture.manifest, place.workspace, fixture.blob, owner=place.owner, share=share, stamps=stamps)
        settled = stamps is not None and pass_tick(stamp for stamp, _ in stamps.values())
        return Clone(place, known=stamps if settled else None)

    def check(self, fixture: Fixture, place: TrialPlace) -> None:
        """Raise ``SandboxError`` that says what is possible where the strategy is not."""
        self._chosen(fixture, place)

    def _chosen(self, fixture: Fixture, place: TrialPlace) -> str:
        home = place.root.parent
        for strategy, probe in PROBES.items():
            if self._strategy in ("auto", strategy) and self._can(strategy, probe, fixture, home):
                return strategy
        if self._strategy in PROBES:
            possible = [strategy for strategy, probe in PROBES.items() if self._can(strategy, probe, fixture, home)]
            raise SandboxError(
                f"EVALWRIGHT_CLONE={self._strategy} is impossible for workspaces below {home}",
                hint=f"what works there: EVALWRIGHT_CLONE={', '.join([*possible, 'copy'])} or auto, which takes the best; "
                "EVALWRIGHT_WORKSPACES may name a directory on another file system",
            )
        return "copy"

    def _can(self, strategy: str, probe: Callable[[Fixture, Path], bool], fixture: Fixture, home: Path) -> bool:
        key = strategy, home, _store_of(fixture)
        with self._lock:
            if key not in self._possible:
                self._possible[key] = probe(fixture, home)
            return self._possible[key]

    def _base(self, fixture: Fixture, place: TrialPlace) -> Base:
        key = place.root.parent, fixture.digest, place.owner
        with self._lock:
            if key not in self._bases:
                self._make_room()
                self._bases[key] = _made_base(fixture, place)
            self._bases.move_to_end(key)
            base = self._bases[key]
            base.serve(place.workspace)
            return base

    def _make_room(self) -> None:
        """Remove the bases that were not used lately and are not in use, but a few."""
        idle = [key for key, base in self._bases.items() if not base.in_use]
        for key in idle[: max(0, len(idle) - KEPT_BASES + 1)]:
            root = self._bases.pop(key).root.parent
            unmount_below(root)
            remove_tree(root, inside=root.parent)


def _made_base(fixture: Fixture, place: TrialPlace) -> Base:
    """Write a fixture where no other user finds it and none can change it; every overlay of this process shares it."""
    root = place.root.parent / os.urandom(8).hex()
    (root / "b").mkdir(mode=0o700, parents=True)
    root.chmod(0o700)
    stamps: Stamped = {}
    try:
        restore(fixture.manifest, root / "b", fixture.blob, owner=place.owner, stamps=stamps)
        found = scan(root / "b", known=stamps)
        close_to_writes(root / "b")
    except BaseException:
        unmount_below(root)
        remove_tree(root, inside=root.parent)
        raise
    manifest = fixture.manifest if found == fixture.manifest else found
    return Base(root / "b", manifest)


def _store_of(fixture: Fixture) -> Path:
    """Return a directory of the store: whether blocks can be shared depends on where it lies too."""
    digest = next((entry.sha256 for entry in fixture.manifest.entries if entry.kind == "file"), None)
    return fixture.blob(digest).parent.parent if digest else Path()


def _can_overlay(_: Fixture, home: Path) -> bool:
    return can_overlay(home)


def _can_share(fixture: Fixture, home: Path) -> bool:
    digest = next((entry.sha256 for entry in fixture.manifest.entries if entry.size), None)
    aside = home / os.urandom(8).hex()
    try:
        copy_file(fixture.blob(digest or ""), aside, share=True)
    except OSError:
        return False
    finally:
        aside.unlink(missing_ok=True)
    return True


PROBES: Mapping[str, Callable[[Fixture, Path], bool]] = {"overlay": _can_overlay, "reflink": _can_share}
