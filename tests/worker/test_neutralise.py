"""What a grader's clone keeps of the agent's files, and what goes back to the fixture's state."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.store import DirectoryStore
from evalwright.worker.hidden import neutralise
from evalwright.worker.precedence import found_before

SETTINGS = "[tool.pytest.ini_options]\nxfail_strict = true\n"


def neutralised(place: Path, fixture: dict[str, str], left: dict[str, str | None]) -> dict[str, str]:
    """Let an agent leave files (``None`` deletes) on a fixture, and return what the tests then see."""
    store = DirectoryStore(place / "store")
    before, after = place / "before", place / "after"
    for directory, files in ((before, dict[str, str | None](fixture)), (after, {**fixture, **left})):
        directory.mkdir()
        for name, text in files.items():
            if text is not None:
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                (directory / name).write_text(text)
    neutralise(after, store.tree(store.put_tree(before)), store)
    return {path.relative_to(after).as_posix(): path.read_text() for path in after.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name",
    ["conftest.py", "tests/test_a.py", "tests/data.json", "a.spec.ts", "node_modules/mocha/lib/run.js", "node_modules/.bin/x",
     ".npmrc", "pytest.toml", "x.pth", "lib/pluggy/hooks.py", "bin/pytest", "tests/__init__.py"],
)  # fmt: skip
@pytest.mark.parametrize("left", ["edited", None], ids=["edited", "deleted"])
def test_tests_and_configuration_of_the_fixture_come_back(tmp_path: Path, name: str, left: str | None) -> None:
    assert neutralised(tmp_path, {name: "fixture's"}, {name: left}) == {name: "fixture's"}


@pytest.mark.parametrize(
    "name",
    ["conftest.py", "a/b/conftest.py", "node_modules/chai/index.js", "node_modules/.bin/node", ".mocharc.cjs",
     "jest.config.mjs", "x-1.0.dist-info/METADATA", "types.py", "argparse.py", "re/__init__.py", "__init__.py",
     "tests/__init__.py", "python3", ".venv/bin/python3.12", ".venv/pyvenv.cfg", "a/__pycache__/b.pyc", "unittest/case.py",
     "shutil.py", "locale.py", "_weakrefset.py", "argparse.abi3.so", "_heapq.cpython-311-x86_64-linux-gnu.so", "types.pyd",
     "re/__init__.so", "tests/argparse.py", "tests/locale.py", "conftest.so", "a/sitecustomize.abi3.so", "_pytest.py"],
)  # fmt: skip
def test_intruders_are_removed(tmp_path: Path, name: str) -> None:
    assert neutralised(tmp_path, {"f.py": "x"}, {name: "agent's"}) == {"f.py": "x"}


@pytest.mark.parametrize(
    "name",
    ["f.py", "pkg/__init__.py", "pkg/types.py", "types/index.d.ts", "python/lib.py", "node/a.js", "tests/test_new.py",
     "json.py", "fast.abi3.so", "pkg/_heapq.py", "node_modules/left-pad/index.js",
     "package.json", "pyproject.toml", "setup.cfg", "Makefile", "pytester.py"],
)  # fmt: skip
def test_work_of_the_agent_stays(tmp_path: Path, name: str) -> None:
    text = {"package.json": '{"scripts": {"build": "make"}}', "pyproject.toml": "[project]\n", "setup.cfg": "[metadata]\n"}
    left: dict[str, str | None] = {name: text.get(name, "agent's")}

    assert neutralised(tmp_path, {}, left) == left


IN_THE_WAY = {
    "tests/helper.py": ["tests/helper/__init__.py", "tests/helper/__init__.abi3.so", "tests/helper.so"],
    "tests/pkg/__init__.py": ["tests/pkg/__init__.cpython-311-x86_64-linux-gnu.so"],
    "a/tests/unit/helper.py": ["a/tests.py", "a/tests.abi3.so"],
    "tests/want.js": ["tests/want"],
    "tests/want.json": ["tests/want", "tests/want.js"],
    "tests/want.node": ["tests/want.json"],
    "tests/want/index.js": ["tests/want.js", "tests/want.json", "tests/want/package.json"],
}


@pytest.mark.parametrize(("meant", "planted"), [(meant, name) for meant, names in IN_THE_WAY.items() for name in names])
def test_what_an_import_would_find_before_a_test_file_is_removed(tmp_path: Path, meant: str, planted: str) -> None:
    assert neutralised(tmp_path, {meant: "fixture's"}, {planted: "agent's"}) == {meant: "fixture's"}


@pytest.mark.parametrize(("meant", "other"), [(meant, name) for meant, names in IN_THE_WAY.items() for name in names])
def test_what_the_fixture_itself_has_beside_a_test_file_stays(tmp_path: Path, meant: str, other: str) -> None:
    both = {meant: "fixture's", other: "fixture's"}

    assert neutralised(tmp_path, both, {}) == both


def test_what_an_import_would_find_later_stays(tmp_path: Path) -> None:
    later = {"tests/want/index.js": "agent's", "tests/want.node": "agent's", "tests/want_more.py": "agent's"}

    assert neutralised(tmp_path, {"tests/want.json": "x"}, dict(later)) == {"tests/want.json": "x"} | later


@pytest.mark.parametrize("name", ["index.js", "tests.py", "want.txt"])
def test_nothing_beside_the_workspace_and_nothing_unrelated_is_found(tmp_path: Path, name: str) -> None:
    workspace = tmp_path / "tests"
    workspace.mkdir()
    for place in (tmp_path / "tests.js", tmp_path / "tests.py", workspace / name, workspace / "want"):
        place.write_text("x")

    assert list(found_before(workspace / name, workspace)) == []


def test_module_that_the_fixture_has_is_the_agents_to_change(tmp_path: Path) -> None:
    assert neutralised(tmp_path, {"types.py": "old"}, {"types.py": "new"}) == {"types.py": "new"}


@pytest.mark.parametrize(
    ("name", "before", "after", "kept"),
    [
        ("pyproject.toml", SETTINGS, SETTINGS + "[project]\n", True),
        ("pyproject.toml", SETTINGS, "[project]\n", False),
        ("pyproject.toml", SETTINGS, "not [ toml", False),
        ("tox.ini", "[testenv]\ncommands = pytest\n", "[testenv]\ncommands = true\n", False),
        ("setup.cfg", "[metadata]\n", "[tool:pytest]\naddopts = --co\n", False),
        ("package.json", '{"scripts": {"test": "mocha"}}', '{"scripts": {"test": "mocha", "build": "x"}}', True),
        ("package.json", '{"scripts": {"test": "mocha"}}', '{"scripts": {"test": "mocha", "pretest": "x"}}', False),
        ("package.json", '{"scripts": {"test": "npm run a", "a": "b"}}', '{"scripts": {"test": "npm run a", "a": "c"}}', False),
        ("package.json", "{}", '{"scripts": ["test"]}', False),
        ("package.json", '{"mocha": {}}', '{"mocha": {"require": "./evil"}}', False),
    ],
)
def test_mixed_files_are_kept_while_test_runners_read_the_same(
    tmp_path: Path, name: str, before: str, after: str, kept: bool
) -> None:
    assert neutralised(tmp_path, {name: before}, {name: after}) == {name: after if kept else before}


def test_mixed_file_that_was_deleted_comes_back(tmp_path: Path) -> None:
    assert neutralised(tmp_path, {"pyproject.toml": SETTINGS}, {"pyproject.toml": None}) == {"pyproject.toml": SETTINGS}


def test_link_in_place_of_a_mixed_file_is_replaced(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    before, after = tmp_path / "before", tmp_path / "after"
    for directory in (before, after):
        directory.mkdir()
    (before / "pyproject.toml").write_text(SETTINGS)
    (after / "other.toml").write_text("[project]\n")
    (after / "pyproject.toml").symlink_to("other.toml")

    neutralise(after, store.tree(store.put_tree(before)), store)

    assert not (after / "pyproject.toml").is_symlink()
    assert (after / "pyproject.toml").read_text() == SETTINGS
