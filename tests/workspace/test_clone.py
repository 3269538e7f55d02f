"""Clones by every strategy: the workspace is the fixture, and what became of it is told exactly as reading all of it would."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workspace.conftest import Scene, mounted_below
from tests.workspace.edits import EDITS, add_special, open_for_writing_and_change_nothing

from evalwright.errors import SandboxError
from evalwright.model import Manifest
from evalwright.store import DirectoryStore
from evalwright.workspace import Clone, Cloner, Fixture, Scratch, UnreadableError, clear_abandoned
from evalwright.workspace.clone import KEPT_BASES
from evalwright.workspace.mounts import unmount, unmount_below
from evalwright.workspace.scan import scan
from evalwright.workspace.stamps import notes_writes


def told(clone: Clone) -> tuple[Manifest, Manifest]:
    """Return what the clone says it holds, and what reading everything says."""
    fast = clone.scan()
    return fast, scan(clone.place.workspace)


def rendered(manifest: Manifest) -> str:
    """Return everything that a manifest says."""
    return repr(manifest.entries) + json.dumps(manifest.as_json())


def test_clone_is_the_fixture_and_shares_no_inode_with_it(scene: Scene) -> None:
    clone = scene.clone()

    fast, whole = told(clone)

    assert rendered(fast) == rendered(whole) == rendered(scan(scene.root))
    written = clone.place.workspace / "d1" / "s1" / "f1"
    with written.open("r+b") as file:
        file.write(b"X")
    again = scene.clone()
    assert (again.place.workspace / "d1" / "s1" / "f1").read_bytes() == (scene.root / "d1" / "s1" / "f1").read_bytes()


@pytest.mark.parametrize("seed", range(12))
def test_after_random_edits_the_quick_answer_is_the_whole_one(scene: Scene, seed: int) -> None:
    clone = scene.clone()
    source = random.Random(seed)
    for _ in range(source.choice([1, 3, 40])):
        with contextlib.suppress(OSError):
            source.choice(EDITS)(clone.place.workspace, source)

    fast, whole = told(clone)

    assert rendered(fast) == rendered(whole)
    assert rendered(clone.scan(whole=True)) == rendered(whole)
    assert rendered(clone.scan()) == rendered(whole), "a second answer differs"


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_each_edit_leaves_a_trace(scene: Scene, edit: Callable[[Path, random.Random], None]) -> None:
    clone = scene.clone()
    for seed in range(4):
        edit(clone.place.workspace, random.Random(seed))

    fast, whole = told(clone)

    assert rendered(fast) == rendered(whole)
    if edit is not open_for_writing_and_change_nothing:
        assert rendered(fast) != rendered(scene.fixture.manifest), "the edit left no trace"


def test_link_is_broken_once_its_aim_is_gone_although_it_was_not_touched(scene: Scene) -> None:
    clone = scene.clone()
    (clone.place.workspace / "d0" / "s0" / "f0").unlink()
    (clone.place.workspace / "nowhere").write_text("now it leads somewhere")

    entries = {entry.path: entry.broken for entry in clone.scan().entries}

    assert (entries["link"], entries["dangling"]) == (True, False)


def test_write_through_a_mapping_that_was_read_first_is_seen_on_a_memory_disk(scene: Scene) -> None:
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("there is no memory disk")
    scratch = Scratch(Path("/dev/shm"))
    try:
        clone = Cloner(scene.strategy).clone(scene.fixture, scratch.place(0))
        path = clone.place.workspace / "large"
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapping:
            assert mapping[4096] == 0
            mapping[4096] = 7

        fast, whole = told(clone)

        assert rendered(fast) == rendered(whole)
        assert rendered(fast) != rendered(scene.fixture.manifest)
    finally:
        scratch.close()


def test_only_what_changed_is_read_again(tmp_path: Path, scene: Scene) -> None:
    if scene.strategy == "copy" and not notes_writes(tmp_path):
        pytest.skip("this file system does not note every write")
    clone = scene.clone()
    (clone.place.workspace / "new").write_text("new")

    before = {entry.path: entry for entry in clone.scan().entries}

    held = {entry.path: entry for entry in scene.fixture.manifest.entries}
    assert before["large"] is held["large"]
    assert before["new"] is not held.get("new")


def test_graders_clone_holds_the_final_workspace_and_keeps_its_changes_to_itself(scene: Scene) -> None:
    clone = scene.clone()
    for seed in range(60):
        with contextlib.suppress(OSError):
            source = random.Random(seed)
            source.choice([edit for edit in EDITS if edit is not add_special])(clone.place.workspace, source)
    final = clone.scan()
    ours, other = scene.scratch.place(0), scene.scratch.place(0)

    clone.copy_to(ours)
    (ours.workspace / "grader").write_text("x")
    shutil.rmtree(ours.workspace / "d1", ignore_errors=True)
    clone.copy_to(other)

    def content(manifest: Manifest) -> dict[str, object]:
        """Return what there is; a copy has no set-user and set-group bits."""
        return {entry.path: (entry.kind, entry.sha256, (entry.mode or 0) & 0o1777) for entry in manifest.entries}

    assert content(scan(other.workspace)) == content(scan(clone.place.workspace)) == content(final)
    assert (ours.workspace / "grader").exists()


def test_discarded_place_is_unmounted_and_its_base_serves_the_next(scene: Scene) -> None:
    cloner = Cloner(scene.strategy)
    first = cloner.clone(scene.fixture, scene.scratch.place(0))
    shutil.rmtree(first.place.workspace / "d0")

    scene.scratch.discard(first.place)

    assert not first.place.root.exists()
    second = cloner.clone(scene.fixture, scene.scratch.place(0))
    assert rendered(scan(second.place.workspace)) == rendered(scene.fixture.manifest)


def test_place_in_use_is_discarded_all_the_same(scene: Scene) -> None:
    clone = scene.clone()
    with (clone.place.workspace / "large").open("rb") as file:
        scene.scratch.discard(clone.place)

        assert not clone.place.root.exists()
        assert len(file.read()) == 256 * 8192


KILLED = """
import sys
from pathlib import Path
from evalwright.store import DirectoryStore
from evalwright.workspace import Cloner, Fixture, Scratch
store = DirectoryStore(Path(sys.argv[1]))
fixture = Fixture(sys.argv[2], store.tree(sys.argv[2]), store.verified)
place = Scratch(Path(sys.argv[3])).place(0)
Cloner(sys.argv[4]).clone(fixture, place)
(place.workspace / "d0/s0/f0").write_bytes(b"changed")
print(place.root, flush=True)
sys.stdin.read()
"""


def test_mounts_of_a_killed_process_are_gone_with_its_files_and_nothing_else_is(
    tmp_path: Path, scene: Scene, stored: tuple[Path, DirectoryStore, str]
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "f").write_text("x")
    command = [sys.executable, "-c", KILLED, str(stored[1].root), scene.fixture.digest, str(tmp_path / "other")]
    process = subprocess.Popen([*command, scene.strategy], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    place = Path(process.stdout.readline().strip())
    if scene.strategy == "overlay":
        base, own = mounted_below(tmp_path / "other")
        assert (Path(base).name, own) == ("b", str(place / "w"))
        (place / "x" / "bound").mkdir()
        subprocess.run(["mount", "--bind", str(precious), str(place / "x" / "bound")], check=True)
    process.kill()
    process.communicate()

    clear_abandoned(place.parent.parent)

    assert mounted_below(tmp_path / "other") == []
    assert not place.parent.exists()
    assert (precious / "f").read_text() == "x", "deleted through a mount"


@pytest.mark.parametrize("scene", ["overlay"], indirect=True)
def test_link_in_the_place_of_an_abandoned_directory_unmounts_nothing(tmp_path: Path, scene: Scene) -> None:
    clone = scene.clone()
    (tmp_path / "planted").symlink_to(clone.place.root)

    unmount_below(tmp_path / "planted")

    assert mounted_below(clone.place.root) == [str(clone.place.workspace)]


@pytest.mark.parametrize("scene", ["overlay"], indirect=True)
def test_overlay_that_was_unmounted_behind_our_back_is_unreadable_and_not_empty(scene: Scene) -> None:
    clone = scene.clone()
    unmount(clone.place.workspace)

    with pytest.raises(UnreadableError):
        clone.scan()


def test_path_with_characters_that_mean_something_to_mount_is_no_obstacle(tmp_path: Path, scene: Scene) -> None:
    scratch = Scratch(tmp_path / "a:b,c d\\e\nf")
    try:
        clone = Cloner(scene.strategy).clone(scene.fixture, scratch.place(0))
        assert rendered(clone.scan()) == rendered(scene.fixture.manifest)
        scratch.discard(clone.place)
        assert not clone.place.root.exists()
    finally:
        scratch.close()


def test_files_of_a_clone_belong_to_its_owner(scene: Scene) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    place = scene.scratch.place(0, owner=65534)

    Cloner(scene.strategy).clone(scene.fixture, place)

    paths = [place.workspace, *place.workspace.rglob("*")]
    assert {path.lstat().st_uid for path in paths} == {65534}


def test_small_fixture_is_copied_whatever_could_be_mounted(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "f").write_text("x")
    store = DirectoryStore(tmp_path / "store")
    digest = store.put_tree(tmp_path / "s")
    scratch = Scratch(tmp_path / "scratch")

    clone = Cloner().clone(Fixture(digest, store.tree(digest), store.verified), scratch.place(0))

    assert mounted_below(tmp_path) == []
    (clone.place.workspace / "f").write_text("y")
    assert clone.scan() == scan(clone.place.workspace)
    scratch.close()


def test_strategy_that_is_impossible_is_refused_with_the_cure(tmp_path: Path, scene: Scene) -> None:
    if Path("/dev/shm").stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("store and workspaces lie on one file system")
    scratch = Scratch(Path("/dev/shm"))
    try:
        with pytest.raises(SandboxError, match="reflink") as failed:
            Cloner("reflink").clone(scene.fixture, scratch.place(0))
        assert "EVALWRIGHT_CLONE" in (failed.value.hint or "")
    finally:
        scratch.close()


@pytest.mark.parametrize("scene", ["overlay"], indirect=True)
def test_bases_that_nobody_uses_make_room_and_those_in_use_stay(tmp_path: Path, scene: Scene) -> None:
    store, cloner = DirectoryStore(tmp_path / "store"), Cloner("overlay")
    clones: list[Clone] = []
    for number in range(KEPT_BASES + 4):
        source = tmp_path / f"s{number}"
        source.mkdir()
        (source / "f").write_text(f"{number}")
        digest = store.put_tree(source)
        clones.append(cloner.clone(Fixture(digest, store.tree(digest), store.verified), scene.scratch.place(0)))
        if number != 0:
            scene.scratch.discard(clones[-1].place)

    bases = [path for path in clones[0].place.root.parent.iterdir() if (path / "b").is_dir()]

    assert len(bases) == KEPT_BASES + 1
    assert (clones[0].place.workspace / "f").read_text() == "0"
