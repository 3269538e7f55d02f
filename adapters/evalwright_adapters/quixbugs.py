"""Imports QuixBugs: small programs, each with a defect on a single line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints

from evalwright.errors import SourceMissing
from evalwright.interfaces import Imported, ImportedCase, ImportedFile, Importer, Unsupported
from evalwright_adapters._driven_suite import file_of, hidden_files, suite_of
from evalwright_adapters._records import find_file, read_records

__all__ = ["QuixBugsImporter"]

_SHOWN_AT_MOST = 3
_TASK = (
    "The function in {name}.py has a single-line defect. "
    "examples.json lists a few calls of it, each with its arguments and the result that a correct version returns. "
    "Find the defect and fix {name}.py in place; keep the function's name and parameters. "
    "The fix is judged by further calls that you do not see."
)


_Single = str | bool | int | float | dict[str, Any] | None


class _Program(BaseModel):
    """One line of ``quixbugs.jsonl``."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]
    buggy: str
    correct: str
    testcases: list[tuple[list[Any] | _Single, Any]]


class QuixBugsImporter(Importer[None]):
    """Reads ``quixbugs.jsonl``, one program with its test cases a line."""

    api = "importer/1.0"

    def read(self, source: Path | None) -> Iterator[Imported]:
        """Describe a suite with one case per program; ``source`` is the file or a directory that holds it."""
        if source is None:
            hint = "Give the path of a quixbugs.jsonl file, or of the directory that holds it."
            raise SourceMissing("QuixBugs has no installed data set", hint=hint)
        path = find_file(source, "quixbugs.jsonl")
        programs = read_records(path, _Program)
        meta = {"source": "QuixBugs (jkoppel/QuixBugs)", "license": "MIT"}
        yield suite_of("quixbugs", meta, timeout=30)
        yield from _license_beside(path)
        for program in programs:
            yield from _case_of(program)


def _license_beside(path: Path) -> Iterator[ImportedFile]:
    license_file = path.with_name("LICENSE")
    if license_file.is_file():
        yield ImportedFile(PurePosixPath("LICENSE"), license_file.read_bytes())


def _case_of(program: _Program) -> Iterator[Imported]:
    name = program.name
    if len(program.testcases) < 2:
        yield Unsupported(name, "it has fewer than two test cases, so none can be shown and none hidden")
        return
    examples = [
        {"name": f"{name}[{number}]", "arguments": _arguments(given), "expected": expected}
        for number, (given, expected) in enumerate(program.testcases)
    ]
    yield ImportedCase(
        {
            "id": name,
            "task": _TASK.format(name=name),
            "workspace": f"fixtures/{name}",
            "expect": {"tests": {"pass_to_pass": [example["name"] for example in examples]}},
            "hidden": f"hidden/{name}",
            "gold": f"gold/{name}",
            "tags": ["quixbugs"],
        }
    )
    yield file_of(f"fixtures/{name}/{name}.py", program.buggy)
    yield file_of(f"fixtures/{name}/examples.json", _shown(examples))
    yield file_of(f"gold/{name}/{name}.py", program.correct)
    plan = {"file": f"{name}.py", "function": name, "seconds": 2, "budget_seconds": 8, "examples": examples}
    yield from hidden_files(name, plan)


def _arguments(given: list[Any] | _Single) -> list[Any]:
    return given if isinstance(given, list) else [given]


def _shown(examples: list[dict[str, Any]]) -> str:
    """Return the first examples, one a line, so that at least half stay hidden."""
    shown = examples[: min(_SHOWN_AT_MOST, len(examples) // 2)]
    lines = [json.dumps({key: example[key] for key in ("arguments", "expected")}) for example in shown]
    return "[\n" + ",\n".join(lines) + "\n]\n"
