"""Which paths of a workspace steer a test runner, and which are tests: the same answer for graders and for scorers."""

from __future__ import annotations

import re
import sys
from itertools import pairwise

__all__ = [
    "MIXED_FILES",
    "TEST_DIRECTORIES",
    "is_program",
    "is_test",
    "module_name",
    "shadows_standard",
    "starts_early",
    "steers",
]

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
    | {"bunfig.toml", "node.config.json", "noxfile.py", "pytest.ini", "pytest.toml", "pyvenv.cfg"}
)
MODULES = PYTHON_PACKAGES | {"conftest", "sitecustomize", "usercustomize"}
PATTERN = re.compile(
    r"\.(mocharc|nycrc|c8rc|babelrc)(\.\w+)?|(ava|babel|cypress|jasmine|jest|karma|playwright|vitest)\.(config|conf)\.\w+"
    r"|.+\.(pth|dist-info|egg-info)"
)
PROGRAM = re.compile(r"python3\.\d+")
MODULE = re.compile(r"(?P<name>[^.]+)(\.py|(\.[\w-]+)?\.(so|pyd))")
STARTUP_MODULES = frozenset(
    {"abc", "annotationlib", "argparse", "ast", "bz2", "codecs", "codeop", "collections", "compression", "contextlib", "copy"}
    | {"copyreg", "dataclasses", "difflib", "dis", "encodings", "enum", "fnmatch", "functools", "genericpath", "gettext"}
    | {"heapq", "importlib", "inspect", "io", "keyword", "linecache", "locale", "lzma", "opcode", "operator", "os", "posixpath"}
    | {"pprint", "re", "reprlib", "runpy", "shutil", "signal", "site", "stat", "textwrap", "token", "tokenize", "traceback"}
    | {"types", "warnings", "weakref", "zipimport", "zlib", "_colorize", "_compression"}
    | {name for name in sys.stdlib_module_names if name.startswith("_")}
)
"""Modules that Python has imported before a test runner looks at a test: of that name only an intruder is ever found."""

TEST_DIRECTORIES = frozenset({"__tests__", "spec", "test", "tests"})
"""Directories of tests: what lies below them is one."""

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
    module = module_name(name)
    if module == "__init__":
        *further, package = above or [""]
        return not above or package in TEST_DIRECTORIES or (_leads(further) and package in STARTUP_MODULES)
    return _leads(above) and module in STARTUP_MODULES


def shadows_standard(path: str) -> bool:
    """Tell whether tests that import a module of Python's own would be given this file in its place."""
    *above, name = path.split("/")
    module = module_name(name)
    if module == "__init__" and above:
        *above, module = above
    return _leads(above) and module in sys.stdlib_module_names


def module_name(name: str) -> str | None:
    """Return the name under which Python imports a file, as source or as a compiled extension; ``None`` for other files."""
    module = MODULE.fullmatch(name)
    return module["name"] if module else None


def is_test(path: str) -> bool:
    """Tell whether a file, by its name or that of a directory above it, is one of the tests that a workspace shows."""
    *above, name = path.split("/")
    return TEST_NAME.fullmatch(name) is not None or not TEST_DIRECTORIES.isdisjoint(above)


def _named(name: str, directory: bool) -> bool:
    if directory:
        return name in PYTHON_PACKAGES or name.endswith((".dist-info", ".egg-info"))
    return name in FILES or module_name(name) in MODULES or PATTERN.fullmatch(name) is not None


def _leads(directory: list[str]) -> bool:
    """Tell whether Python looks for modules in a directory before its own: the workspace, or one of tests."""
    return not directory or directory[-1] in TEST_DIRECTORIES


def _in_node_package(parts: list[str]) -> bool:
    return any(parent == "node_modules" and child in NODE_PACKAGES for parent, child in pairwise(parts))
