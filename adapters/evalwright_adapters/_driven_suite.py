"""The parts shared by suites whose hidden tests are run by the driver in ``_drivers``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from evalwright.interfaces import ImportedFile, ImportedSuite

__all__ = ["file_of", "hidden_files", "suite_of"]

_DRIVER, _CHILD, _PLAN = "evalwright_check.py", "evalwright_child.py", "evalwright_check.json"


def suite_of(name: str, meta: Mapping[str, Any], *, timeout: float) -> ImportedSuite:
    """Return the ``suite.json``: hidden tests by the driver, and a runner that does nothing until it is replaced."""
    note = "The runner is a placeholder that changes nothing: put your agent's argv there."
    return ImportedSuite(
        {
            "schema_version": 2,
            "name": name,
            "cases": "cases.jsonl",
            "runner": {"argv": ["true"]},
            "scorers": [
                {"use": "tests", "argv": ["python3", "-I", "-S", _DRIVER], "format": "tap", "timeout_seconds": timeout}
            ],
            "acknowledged_unsandboxed_runner": True,
            "meta": {**meta, "runner": note},
        }
    )


def hidden_files(case_id: str, plan: Mapping[str, Any]) -> Iterator[ImportedFile]:
    """Yield the driver, its child program and its plan, for the case's hidden directory."""
    templates = files("evalwright_adapters._drivers")
    for name in (_DRIVER, _CHILD):
        yield ImportedFile(PurePosixPath("hidden", case_id, name), templates.joinpath(name).read_bytes())
    yield file_of(f"hidden/{case_id}/{_PLAN}", json.dumps(plan, indent=1, ensure_ascii=False) + "\n")


def file_of(path: str, text: str) -> ImportedFile:
    """Return a UTF-8 file of the suite."""
    return ImportedFile(PurePosixPath(path), text.encode())
