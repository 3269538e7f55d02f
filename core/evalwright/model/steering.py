"""Which paths of a workspace steer a test runner, and which are tests: the same answer for graders and for scorers."""

from __future__ import annotations

import re
from itertools import pairwise

__all__ = ["MIXED_FILES", "is_program", "is_test", "starts_early", "steers"]

MIXED_FILES = frozenset(["setup.cfg", "tox.ini", "pyproject.toml", "package.json"])
"""Files that hold settings of test runners among other things."""

PYTHON_PACKAGES = frozenset({"pytest", "_pytest", "pluggy", "unittest"})
NODE_PACKAGES = frozenset(
    {".bin", "@jest", "@vitest", "ava", "c8", "chai", "expect", "jasmine", "jest", "karma", "mocha", "node", "nyc", "should"}
    | {"sinon", "tap", "tape", "uvu", "vitest"}
)
PROGRAMS = frozenset(
    {"ava", "jasmine", "jest", "karma", "mocha", "node", "nox", "npm", "npx", "nyc", "pnpm", "py.test", "pytest", "python"}
    | {"python3", "tap", "tape", "tox", "vitest", "yarn"}
)
FILES = frozenset(
    {".node-options", ".noserc", ".npmrc", ".pnpmfile.cjs", ".pytest.ini", ".pytest.toml", ".taprc", ".yarnrc", ".yarnrc.yml"}
    | {"bunfig.toml", "conftest.py", "node.config.json", "noxfile.py", "pluggy.py", "pytest.ini", "pytest.py", "pytest.toml"}
    | {"pyvenv.cfg", "sitecustomize.py", "unittest.py", "usercustomize.py"}
)
PATTERN = re.compile(
    r"\.(mocharc|nycrc|c8rc|babelrc)(\.\w+)?|(ava|babel|cypress|jasmine|jest|karma|playwright|vitest)\.(config|conf)\.\w+"
    r"|.+\.(pth|dist-info|egg-info)"
)
PROGRAM = re.compile(r"python3\.\d+")
STARTUP_MODULES = frozenset(
    {"abc", "argparse", "ast", "codecs", "collections", "contextlib", "copy", "copyreg", "dataclasses", "difflib", "dis"}
    | {"encodings", "enum", "fnmatch", "functools", "genericpath", "gettext", "heapq", "importlib", "inspect", "io", "keyword"}
    | {"linecache", "opcode", "operator", "os", "posixpath", "pprint", "re", "reprlib", "runpy", "signal", "site", "stat"}
    | {"textwrap", "token", "tokenize", "traceback", "types", "warnings", "weakref", "zipimport"}
)
"""Modules that Python has imported before a test runner looks at a test: of that name only an intruder is ever found."""

TEST_DIRECTORIES = frozenset({"__tests__", "spec", "test", "tests"})
TEST_NAME = re.compile(
    r"test_.+\.py|.+_test\.(py|go|rb|exs?)|tests?\.py|.+[.-](test|spec)\.[cm]?[jt]sx?|.+Tests?\.(java|kt|cs|php)"
)


def steers(path: str, *, directory: bool = False) -> bool:
    """Tell whether a path relative to the workspace steers a test runner, by its own name or that of a directory above it.

    Files of :data:`MIXED_FILES` do not count: what they say has to be read.
    """
    *above, name = path.split("/")
    if not directory and is_program(path):
        return True
    parts = [*above, name] if directory else above
    return _named(name, directory) or any(_named(part, True) for part in above) or _in_node_package([*parts, ""])


def is_program(path: str) -> bool:
    """Tell whether a file bears the name of a test runner, or of a program that starts one."""
    *above, name = path.split("/")
    return name in PROGRAMS or PROGRAM.fullmatch(name) is not None or above[-2:] == ["node_modules", ".bin"]


def starts_early(path: str) -> bool:
    """Tell whether a file is imported before any test: in place of a module of Python's, or as the package of the tests."""
    *above, name = path.split("/")
    if name == "__init__.py":
        return not above or above[-1] in TEST_DIRECTORIES or (len(above) == 1 and above[0] in STARTUP_MODULES)
    return not above and name.endswith(".py") and name.removesuffix(".py") in STARTUP_MODULES


def is_test(path: str) -> bool:
    """Tell whether a file, by its name or that of a directory above it, is one of the tests that a workspace shows."""
    *above, name = path.split("/")
    return TEST_NAME.fullmatch(name) is not None or not TEST_DIRECTORIES.isdisjoint(above)


def _named(name: str, directory: bool) -> bool:
    if directory:
        return name in PYTHON_PACKAGES or name.endswith((".dist-info", ".egg-info"))
    return name in FILES or PATTERN.fullmatch(name) is not None


def _in_node_package(parts: list[str]) -> bool:
    return any(parent == "node_modules" and child in NODE_PACKAGES for parent, child in pairwise(parts))
