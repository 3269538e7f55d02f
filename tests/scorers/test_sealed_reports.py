"""Reports of pytest under a seal: ordinary test suites read as before, and nobody else can write one."""

from __future__ import annotations

import sys
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened
from tests.scorers.conftest import make, trial

from evalwright.model import Change
from evalwright_scorers import tests as hidden_tests
from evalwright_scorers.reports import ReportUnreadable
from evalwright_scorers.sealed import Seal, read_sealed

if TYPE_CHECKING:
    from tests.scorers.conftest import Bench

Scorer = hidden_tests.Tests


def scored(bench: Bench, text: str, *names: str, options: tuple[str, ...] = (), solution: str = "", **hidden: str) -> Any:
    """Run hidden tests over a solution and return the score."""
    (bench.final / "f.py").write_text(solution)
    for name, content in {"test_f.py": text, **{name.replace("__", "."): content for name, content in hidden.items()}}.items():
        (bench.hidden / name).write_text(content)
    table = {"argv": [sys.executable, "-m", "pytest", "-q", *options, "test_f.py"], "format": "pytest"}
    return bench.score(Scorer, table, {"tests": {"fail_to_pass": list(names)}})


OUTCOMES = """
import pytest
import f

def test_passes(): pass
def test_fails(): assert 1 == 2
def test_skips(): pytest.skip("no")
@pytest.mark.xfail(reason="known")
def test_marked(): assert 0
@pytest.mark.xfail(reason="known")
def test_better(): pass
@pytest.mark.xfail(reason="known", strict=True)
def test_strict(): pass
def test_says_so(): pytest.xfail("known")
def test_calls(): f.f()
@pytest.fixture
def broken(): raise ValueError("set-up")
def test_setup(broken): pass
@pytest.fixture
def leaky():
    yield
    raise ValueError("tear-down")
def test_teardown(leaky): pass
class TestGroup:
    @pytest.mark.parametrize("value", ["a::b", "[x]"])
    def test_each(self, value): pass
"""


WHY = {
    "test_passes": None, "test_fails": "failed", "test_skips": "skipped", "test_marked": None, "test_better": None,
    "test_strict": "failed", "test_says_so": None, "test_calls": "skipped", "test_setup": "error", "test_teardown": "error",
    "TestGroup::test_each[a::b]": None, "TestGroup::test_each[[x]]": None,
}  # fmt: skip


@pytest.mark.parametrize("name", shortened(WHY, list(WHY)[::3]))
@pytest.mark.parametrize("options", shortened([(), ("-p", "xdist", "-n", "2")], [()]), ids=["alone", "xdist"])
def test_each_outcome_is_read_and_found_by_every_name(bench: Bench, require: Any, name: str, options: tuple[str, ...]) -> None:
    require("python:xdist")
    solution = "import pytest\ndef f(): pytest.xfail('known')\n"
    plain = name.removeprefix("TestGroup::")
    node, junit = f"test_f.py::{name}", f"test_f.{name}" if plain != name else f"test_f::{name}"

    score = scored(bench, OUTCOMES, node, junit, plain, options=options, solution=solution)

    assert {finding["why"] for finding in score.findings} == ({WHY[name]} if WHY[name] else set())
    assert score.metrics["total"] == 3.0


EXPECTED_FAILURES = """
import unittest
from unittest import mock
import f

class Each(unittest.TestCase):
    @unittest.expectedFailure
    def test_declares(self): self.assertEqual(f.f(), 42)
    @unittest.expectedFailure
    @mock.patch("os.getcwd")
    def test_declares_above(self, _): self.assertEqual(f.f(), 42)
    @unittest.expectedFailure
    def test_succeeds(self): pass
    def test_does_not(self): self.assertEqual(f.f(), 42)

@unittest.expectedFailure
class All(unittest.TestCase):
    def test_of_class(self): self.assertEqual(f.f(), 42)

class Alone(unittest.IsolatedAsyncioTestCase):
    @unittest.expectedFailure
    async def test_async(self): self.assertEqual(f.f(), 42)
"""


@pytest.mark.parametrize(
    ("name", "why"),
    [("Each::test_declares", None), ("Each::test_declares_above", None), ("Each::test_succeeds", "failed"),
     ("Each::test_does_not", "failed"), ("All::test_of_class", None), ("Alone::test_async", None)],
)  # fmt: skip
def test_expected_failure_of_unittest_is_the_tests_to_declare(bench: Bench, name: str, why: str | None) -> None:
    score = scored(bench, EXPECTED_FAILURES, f"test_f.py::{name}", solution="def f(): return 41\n")

    assert [finding["why"] for finding in score.findings] == ([why] if why else [])


@pytest.mark.parametrize("owner", ["unittest.TestCase", "unittest.case.TestCase.run", "Lenient"])
def test_expected_failure_that_code_under_test_declares_is_none(bench: Bench, owner: str) -> None:
    solution = f"import unittest\nclass Lenient: pass\n{owner}.__unittest_expecting_failure__ = True\ndef f(): return 41\n"
    text = "import unittest, f\nclass T(unittest.TestCase, f.Lenient):\n    def test_a(self): self.assertEqual(f.f(), 42)\n"

    assert not scored(bench, text, "test_a", solution=solution).ok


def test_module_that_cannot_be_imported_is_an_error_with_its_reason(bench: Bench) -> None:
    score = scored(bench, "import no_such_module\n")

    assert not score.ok
    assert (score.findings[0]["test"], score.findings[0]["why"]) == ("test_f.py", "error")
    assert "no_such_module" in score.findings[0]["detail"]


def test_settings_and_conftest_of_the_hidden_files_count(bench: Bench) -> None:
    text = "def check_it(answer): assert answer == 42\n"
    conftest = "import pytest\n@pytest.fixture\ndef answer(): return 42\n"

    score = scored(bench, text, "check_it", pytest__ini="[pytest]\npython_functions = check_*\n", conftest__py=conftest)

    assert score.ok


def test_neither_key_nor_report_is_in_environment_arguments_or_files(bench: Bench) -> None:
    text = """
import os, pathlib, sys

def test_a():
    assert not [name for name in os.environ if name.endswith(("REPORT_FILE", "WITNESS")) or name == "PYTHONPATH"]
    assert not [word for word in sys.argv if "report-" in word]
    assert os.read(0, 1) == b""
    beside = pathlib.Path.cwd().parent / "exchange"
    assert not [path for path in beside.rglob("*") if path.name.startswith("report-")]
"""
    assert scored(bench, text, "test_a").ok


def test_tests_of_a_module_that_the_agent_wrote_are_tampered(bench: Bench) -> None:
    (bench.final / "f.py").write_text("def test_a(): pass\n")
    (bench.hidden / "test_f.py").write_text("from f import test_a\n")
    table = {"argv": [sys.executable, "-m", "pytest", "test_f.py"], "format": "pytest"}
    change = Change(path="f.py", status="added", kind="file", sha256_before=None, sha256_after=None)

    score = make(Scorer, table).score(trial(Scorer, {}, changes=(change,)), bench)

    assert [(finding["test"], finding["why"]) for finding in score.findings] == [("test_f.py::test_a", "tampered")]


def test_a_document_of_another_key_or_without_one_is_refused() -> None:
    one, other = Seal(), Seal()
    document = b'{"tests": []}'

    for forged in (document, b"0" * 64 + b"\n" + document, b""):
        with pytest.raises(ReportUnreadable, match="tampered"):
            one.opened(forged)
    assert one.orders(PurePosixPath("/r"), {}) != other.orders(PurePosixPath("/r"), {})


@pytest.mark.parametrize("document", [b"", b"{}", b"[]", b'{"tests": [{}]}', b'{"tests": 3}', b"\xff"])
def test_what_the_plugin_would_not_write_is_unreadable(document: bytes) -> None:
    with pytest.raises(ReportUnreadable):
        read_sealed(document)
