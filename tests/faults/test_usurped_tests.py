"""Agents that plant what an import finds before the hidden tests, before their helpers, or before a module of Python's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened
from tests.faults.hostile import attempted

if TYPE_CHECKING:
    from tests.conftest import Project

UNIT = {
    "t_hidden.py": (
        "import unittest\nfrom helper import WANTED\nfrom f import f\n\n\n"
        "class Hidden(unittest.TestCase):\n    def test(self):\n        self.assertEqual(f(), WANTED)\n"
    ),
    "helper.py": "WANTED = 42\n",
    "t.sh": 'python3 -m unittest t_hidden && printf "1..1\\nok 1 - works\\n" > "$EVALWRIGHT_REPORT_FILE"\n',
}
UNIT_TESTS: dict[str, Any] = {"use": "tests", "argv": ["sh", "./t.sh"], "format": "tap", "fail_to_pass": ["works"]}
LEAVES = "import os\nos._exit(0)\n"
USURPERS: dict[str, tuple[dict[str, str | bytes], str]] = {
    "package for the test": ({"t_hidden/__init__.py": ""}, "true"),
    "linked package for the test": ({"away/__init__.py": ""}, "ln -s away t_hidden"),
    "linked package file": ({"away.py": ""}, "mkdir t_hidden && ln -s ../away.py t_hidden/__init__.py"),
    "package for a helper": ({"helper/__init__.py": "WANTED = 41\n"}, "true"),
    "argparse needs it": ({"shutil.py": LEAVES}, "true"),
    "gettext needs it": ({"locale.py": LEAVES}, "true"),
    "private module": ({"_weakrefset.py": LEAVES}, "true"),
}


@pytest.mark.parametrize("name", shortened(USURPERS, list(USURPERS)[::3]))
@pytest.mark.parametrize(("answer", "status"), [(41, "fail"), (42, "pass")])
def test_nothing_stands_in_for_a_hidden_module_or_one_of_pythons(project: Project, name: str, answer: int, status: str) -> None:
    planted, then = USURPERS[name]

    assert attempted(project, planted, answer, hidden=UNIT, scorer=UNIT_TESTS, then=then).status == status


def test_extension_that_bears_the_name_of_a_hidden_module_is_not_loaded(project: Project) -> None:
    planted: dict[str, str | bytes] = {"t_hidden.abi3.so": b"not even a library", "argparse.so": b"nor this"}

    assert attempted(project, planted, 42, hidden=UNIT, scorer=UNIT_TESTS).status == "pass"


def test_link_in_place_of_a_package_is_removed_and_its_target_is_not(project: Project) -> None:
    outside = project.path / "outside"
    outside.mkdir()
    (outside / "__init__.py").write_text("precious = 1\n")

    attempt = attempted(project, {}, 41, hidden=UNIT, scorer=UNIT_TESTS, then=f"ln -s {outside} t_hidden")

    assert attempt.status == "fail"
    assert (outside / "__init__.py").read_text() == "precious = 1\n"


NODE_TEST = (
    "const test = require('node:test'), assert = require('node:assert');\n"
    "test('works', () => assert.strictEqual(require('./f').f(), require('./want').value));\n"
)
NODE_USURPERS: dict[str, tuple[str, dict[str, str | bytes]]] = {
    "file without an ending": ("want.js", {"want": "exports.value = 41;\n"}),
    "program for data": ("want.json", {"want.js": "exports.value = 41;\n"}),
    "file for a directory": ("want/index.js", {"want.js": "exports.value = 41;\n"}),
    "other entry of a directory": (
        "want/index.js",
        {"want/package.json": '{"main": "other.js"}', "want/other.js": "exports.value = 41;\n"},
    ),
}


@pytest.mark.parametrize("name", shortened(NODE_USURPERS, list(NODE_USURPERS)[:1]))
def test_nothing_stands_in_for_what_a_hidden_node_test_requires(project: Project, name: str) -> None:
    helper, planted = NODE_USURPERS[name]
    hidden = {"a.test.js": NODE_TEST, helper: '{"value": 42}' if helper.endswith(".json") else "exports.value = 42;\n"}
    scorer = {"use": "tests", "argv": ["node", "--test", "a.test.js"], "format": "node", "fail_to_pass": ["works"]}

    attempt = attempted(project, {"f.js": "exports.f = () => 41;\n", **planted}, 41, hidden=hidden, scorer=scorer)

    assert attempt.status == "fail"
    assert [finding["why"] for finding in attempt.findings if "test" in finding] == ["failed"]
