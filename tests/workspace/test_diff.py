"""The unified diff of a trial: git and patch apply it to the fixture and get the agent's tree."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.model.manifest import changes_between
from evalwright.workspace import copy_tree, unified_diff
from evalwright.workspace.scan import scan

Tree = dict[str, bytes]


def written(root: Path, tree: Tree) -> Path:
    root.mkdir()
    for name, content in tree.items():
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + os.fsencode(name)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def diff_of(old: Path, new: Path) -> bytes:
    def reader(root: Path) -> Callable[[str], bytes | None]:
        return lambda path: (root / path).read_bytes() if (root / path).is_file() else None

    return unified_diff(changes_between(scan(old), scan(new)), reader(old), reader(new))


def applied(old: Path, diff: bytes, target: Path) -> None:
    copy_tree(old, target)
    environment = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(target.parent), "HOME": "/"}
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-p1", "-"], cwd=target, input=diff, capture_output=True, env=environment
    )
    assert done.returncode == 0, done.stderr.decode()


CASES: dict[str, tuple[Tree, Tree]] = {
    "added": ({"a": b"a\n"}, {"a": b"a\n", "d/new.py": b"x\ny\n"}),
    "deleted": ({"a": b"a\n", "old": b"1\n2\n"}, {"a": b"a\n"}),
    "modified": ({"a": b"1\n2\n3\n"}, {"a": b"1\nTWO\n3\n"}),
    "newline lost": ({"a": b"1\n2\n"}, {"a": b"1\n2"}),
    "newline won": ({"a": b"1\n2"}, {"a": b"1\n2\n"}),
    "never a newline": ({"a": b"1"}, {"a": b"2"}),
    "emptied": ({"a": b"1\n"}, {"a": b""}),
    "filled": ({"a": b""}, {"a": b"1\n"}),
    "empty added": ({"x": b"x"}, {"x": b"x", "e": b""}),
    "empty deleted": ({"x": b"x", "e": b""}, {"x": b"x"}),
    "windows lines": ({"a": b"1\r\n2\r\n"}, {"a": b"1\r\n3\r\n"}),
    "odd breaks": ({"a": b"a\x0cb\x0b\xe2\x80\xa8c\x85\rd\n"}, {"a": b"a\x0cb\x0b\xe2\x80\xa8c\x85\rD\n"}),
    "latin": ({"a": b"caf\xe9\nx\n"}, {"a": b"caf\xe9\ny\xff\n"}),
    "blanks in names": ({"a b": b"1\n"}, {"a b": b"2\n", " lead": b"x\n", "trail ": b"y\n"}),
    "quotes in names": ({'q"uote': b"1\n"}, {'q"uote': b"2\n", "back\\slash": b"x\n"}),
    "controls in names": ({"tab\there": b"1\n"}, {"tab\there": b"2\n", "new\nline": b"x\n", "bell\x07": b"y\n"}),
    "unicode names": ({"é": b"1\n"}, {"é": b"2\n", "日本": b"x\n"}),
    "looks like a diff": ({"a": b"--- a/b\n+++ b/b\n@@ -1 +1 @@\n"}, {"a": b"--- a/b\n+++ b/c\n@@ -1 +1 @@\n\\ No newline\n"}),
    "file to directory": ({"a": b"1\n"}, {"a/b": b"2\n"}),
    "directory to file": ({"a/b": b"1\n"}, {"a": b"2\n"}),
}


@pytest.mark.parametrize("name", CASES)
def test_applied_diff_gives_the_agents_tree(tmp_path: Path, require: Callable[[str], None], name: str) -> None:
    require("git")
    old, new = (written(tmp_path / side, tree) for side, tree in zip(("old", "new"), CASES[name], strict=True))

    diff = diff_of(old, new)

    applied(old, diff, tmp_path / "target")
    after = {entry.path: entry.sha256 for entry in scan(tmp_path / "target").entries if entry.kind == "file"}
    assert after == {entry.path: entry.sha256 for entry in scan(new).entries if entry.kind == "file"}
    assert diff.endswith(b"\n")


def test_applied_diff_of_random_edits_gives_the_agents_tree(tmp_path: Path, require: Callable[[str], None]) -> None:
    require("git")
    source = random.Random(3)
    old_tree: Tree = {}
    new_tree: Tree = {}
    for number in range(60):
        lines = [source.choice(["", "x", "y" * 9, f"l{source.randint(0, 9)}"]) for _ in range(source.randint(0, 40))]
        edited = [line for line in lines if source.random() > 0.2]
        for _ in range(source.randint(0, 4)):
            edited.insert(source.randint(0, len(edited)), source.choice(["new", "x", ""]))
        end = source.choice(["", "\n"])
        old_tree[f"f{number}"], new_tree[f"f{number}"] = ("\n".join(lines) + end).encode(), "\n".join(edited).encode()
    old, new = written(tmp_path / "old", old_tree), written(tmp_path / "new", new_tree)

    applied(old, diff_of(old, new), tmp_path / "target")

    assert {name: (tmp_path / "target" / name).read_bytes() for name in new_tree} == new_tree


def test_name_that_is_not_utf8_has_its_real_diff(tmp_path: Path) -> None:
    old, new = written(tmp_path / "old", {"x": b"x"}), written(tmp_path / "new", {"x": b"x", "n\udce9": b"content\n"})
    by_name = {os.fsdecode(entry.raw_path): entry for entry in scan(new).entries}
    assert "n\udce9" in by_name

    diff = diff_of(old, new)

    assert b"+content" in diff
    assert b"\\351" in diff or b"n\xe9" in diff


def test_binary_file_is_named_and_not_shown(tmp_path: Path) -> None:
    old, new = written(tmp_path / "old", {"b": b"\0\1"}), written(tmp_path / "new", {"b": b"\0\2"})

    diff = diff_of(old, new)

    assert b"Binary files a/b and b/b differ\n" in diff
    assert b"\0" not in diff


def test_large_rewritten_file_has_an_exact_diff(tmp_path: Path, require: Callable[[str], None]) -> None:
    require("git")
    old_tree = {"big": b"".join(b"%d\n" % n for n in range(9000))}
    new_tree = {"big": b"".join(b"%d x\n" % n for n in range(9000))}
    old, new = written(tmp_path / "old", old_tree), written(tmp_path / "new", new_tree)

    applied(old, diff_of(old, new), tmp_path / "target")

    assert (tmp_path / "target" / "big").read_bytes() == new_tree["big"]
