"""The QuixBugs importer, and its driver against right, wrong and hostile candidates."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from evalwright.errors import SourceMissing, UsageError
from evalwright_adapters._drivers.evalwright_check import Candidate, passes
from evalwright_adapters.quixbugs import QuixBugsImporter

DATA = Path(__file__).parents[1] / "data" / "quixbugs"
EXAMPLE = Path(__file__).parents[2] / "examples" / "quixbugs"
SAMPLE = ["flatten", "hanoi", "next_permutation", "rpn_eval", "sieve"]  # generator, tuples, None, floats, plain
GENERATED = ("fixtures", "hidden", "gold", "cases.jsonl", "LICENSE")


@pytest.fixture
def suite(write: Any) -> Any:
    return write(QuixBugsImporter, DATA)


def _files(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    names = {path: path.relative_to(root).as_posix() for path in paths}
    return {name: path.read_bytes() for path, name in names.items() if name.split("/")[0] in GENERATED}


def test_importing_again_gives_the_checked_in_example(suite: Any) -> None:
    assert _files(suite.root) == _files(EXAMPLE)
    example = json.loads((EXAMPLE / "suite.json").read_text())
    ignored = {"runner": None, "meta": None, "arms": None}
    assert example | ignored == suite.document | ignored


def test_file_and_its_directory_give_the_same_suite(read: Any) -> None:
    assert read(QuixBugsImporter, DATA) == read(QuixBugsImporter, DATA / "quixbugs.jsonl")


def test_at_least_half_of_the_calls_stay_hidden(suite: Any) -> None:
    assert len(suite.cases) == 28
    for case in suite.cases.values():
        shown = json.loads((suite.root / case["workspace"] / "examples.json").read_text())
        assert 1 <= len(shown) <= 3
        assert 2 * len(shown) <= len(case["expect"]["tests"]["pass_to_pass"])


@pytest.mark.parametrize("source", [None, "absent", "empty"])
def test_missing_source_is_refused_with_a_hint(read: Any, tmp_path: Path, source: str | None) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceMissing) as caught:
        read(QuixBugsImporter, tmp_path / source if source else None)
    assert caught.value.hint


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"name": "x"}',
        '{"name": "../x", "buggy": "", "correct": "", "testcases": [[1, 2], [3, 4]]}',
        "\ufffe",
    ],
)
def test_damaged_line_is_refused_with_its_number(read: Any, tmp_path: Path, line: str) -> None:
    good = (DATA / "quixbugs.jsonl").read_text().splitlines()[0]
    (tmp_path / "quixbugs.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(UsageError, match="line 2") as caught:
        read(QuixBugsImporter, tmp_path)
    assert caught.value.details["line"] == 2


def test_program_without_enough_calls_is_listed_as_unsupported(write: Any, tmp_path: Path) -> None:
    record = {"name": "one", "buggy": "", "correct": "", "testcases": [[1, 2]]}
    (tmp_path / "quixbugs.jsonl").write_text(json.dumps(record))
    suite = write(QuixBugsImporter, tmp_path)
    assert [item.what for item in suite.unsupported] == ["one"]
    assert not suite.cases


@pytest.mark.parametrize("name", SAMPLE)
def test_correct_program_passes_and_buggy_one_fails(suite: Any, tmp_path: Path, name: str) -> None:
    right = suite.judge(name, tmp_path / "right", gold=True)
    wrong = suite.judge(name, tmp_path / "wrong")
    assert right.passed
    names = [line.partition(" - ")[2] for line in right.report.splitlines() if line.startswith("ok ")]
    assert names == suite.cases[name]["expect"]["tests"]["pass_to_pass"]
    assert not wrong.passed
    assert wrong.returncode == 1
    assert wrong.report.startswith(f"TAP version 14\n1..{len(names)}\n")


@pytest.mark.acceptance
def test_every_correct_program_passes_and_every_buggy_one_fails(suite: Any, tmp_path: Path) -> None:
    right = {name for name in suite.cases if suite.judge(name, tmp_path / "right", gold=True).passed}
    wrong = {name for name in suite.cases if suite.judge(name, tmp_path / "wrong").passed}
    assert right == set(suite.cases)
    assert wrong == set()


def test_printing_reading_and_mutating_do_not_disturb_a_correct_answer(suite: Any, tmp_path: Path) -> None:
    noisy = """
import sys
def kth(arr, k):
    print("not ok 1 - kth[0]", "x" * 100_000, flush=True)
    print('{"value": 0}', file=sys.stderr)
    assert sys.stdin.read() == ""
    arr.sort()
    return arr[k]
"""
    assert suite.judge("kth", tmp_path, files={"kth.py": noisy}).passed


def test_modules_planted_in_the_workspace_are_never_loaded_by_the_driver(suite: Any, tmp_path: Path) -> None:
    planted = "import os\nos._exit(0)\n"
    names = ("json", "subprocess", "sitecustomize", "evalwright_child", "evalwright_check")
    wrong = suite.judge("sieve", tmp_path, files={f"{name}.py": planted for name in names})
    assert wrong.returncode == 1
    assert "not ok" in wrong.report


HOSTILE = {
    "prints a forged report": """
print("TAP version 14\\n1..9"); [print(f"ok {i+1} - bitcount[{i}]") for i in range(9)]
def bitcount(n): print("ok 1 - bitcount[0]"); return None
""",
    "forges the report file": """
import os
for name in os.environ:
    if "REPORT" in name: open(os.environ[name], "w").write("TAP version 14\\n1..1\\nok 1 - bitcount[0]\\n")
def bitcount(n): os._exit(0)
""",
    "ends the process": "import os\ndef bitcount(n): os._exit(0)\n",
    "ends on import": "import os\nos._exit(0)\n",
    "exits politely": "import sys\ndef bitcount(n): sys.exit(0)\n",
    "returns what equals everything": """
class Yes(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    __hash__ = int.__hash__
def bitcount(n): return Yes(-1)
""",
    "returns an object that equals everything": """
class Yes:
    def __eq__(self, other): return True
def bitcount(n): return Yes()
""",
    "claims infinity": "def bitcount(n): return float('inf')\n",
    "claims not a number": "def bitcount(n): return float('nan')\n",
    "reads the hidden calls": """
import glob, json, os, sys
texts = [open(p, errors="replace").read() for p in glob.glob("**", recursive=True) if p.endswith("check.json")]
def bitcount(n):
    for text in texts:
        for case in json.loads(text)["examples"]:
            if case["arguments"] == [n]: return case["expected"]
""",
    "finds secrets in its environment": """
import os
found = any(name.startswith(("EVALWRIGHT_", "EVALCTL_")) for name in os.environ)
def bitcount(n): return bin(n).count("1") if found else None
""",
    "removes everything in its directory": """
import os
for name in os.listdir("."):
    open(name, "w").close(); os.remove(name)
def bitcount(n): return 0
""",
    "answers on every pipe it holds": """
import os
def bitcount(n):
    for fd in range(3, 20):
        try: os.write(fd, b'{"value": -1}\\n{"ok": true}\\nok 1 - bitcount[0]\\n')
        except OSError: pass
    return 0
""",
    "sends what is no answer": """
import os
def bitcount(n):
    for fd in range(3, 20):
        try: os.write(fd, b'{"value": ["dict", 7]}\\n')
        except OSError: pass
    os._exit(0)
""",
    "makes the encoder fail": "def bitcount(n):\n    a = []\n    a.append(a)\n    return a\n",
    "yields without end": "import itertools\ndef bitcount(n): return itertools.repeat('x') if n == 127 else 0\n",
    "is no Python": "def bitcount(n:\n",
    "lacks the function": "x = 1\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_candidate_passes_no_test(suite: Any, tmp_path: Path, kind: str) -> None:
    verdict = suite.judge("bitcount", tmp_path, files={"bitcount.py": HOSTILE[kind]})
    assert verdict.returncode == 1
    assert "\nok" not in verdict.report
    assert verdict.report.count("not ok") == 9


def test_hanging_candidate_fails_inside_the_time_limit(suite: Any, tmp_path: Path) -> None:
    hanging = "def bitcount(n):\n    while n == 127: pass\n    return bin(n).count('1')\n"
    verdict = suite.judge("bitcount", tmp_path, files={"bitcount.py": hanging})
    assert verdict.returncode == 1
    assert verdict.report.count("not ok") == 1
    assert "not ok 1 - bitcount[0]" in verdict.report


def test_start_of_the_child_is_no_time_of_the_candidate() -> None:
    left: list[float] = []

    class Started:
        def start(self) -> None:
            left.append(signal.getitimer(signal.ITIMER_REAL)[0])

    def test() -> bool:
        left.append(signal.getitimer(signal.ITIMER_REAL)[0])
        return True

    assert passes(cast("Candidate", Started()), test, 2)[0]
    assert left[0] > 2 >= left[1]


@pytest.mark.parametrize("source", ["", "import os, sys; os.write(int(sys.argv[5]), b'late')"])
def test_child_that_never_gets_ready_passes_nothing(suite: Any, tmp_path: Path, source: str) -> None:
    (suite.root / "hidden/bitcount/evalwright_child.py").write_text(source)
    verdict = suite.judge("bitcount", tmp_path, gold=True)
    assert (verdict.returncode, verdict.report.count("not ok")) == (1, 9)


def test_floats_may_differ_by_rounding_only(suite: Any, tmp_path: Path) -> None:
    gold = (suite.root / "gold/rpn_eval/rpn_eval.py").read_text()
    exact = gold.partition('"""')[0].replace("rpn_eval", "exact")
    near = exact + "\ndef rpn_eval(tokens): return exact(tokens) * (1 + 1e-9)\n"
    far = exact + "\ndef rpn_eval(tokens): return exact(tokens) * 1.001\n"
    assert suite.judge("rpn_eval", tmp_path / "near", files={"rpn_eval.py": near}).passed
    assert not suite.judge("rpn_eval", tmp_path / "far", files={"rpn_eval.py": far}).passed
