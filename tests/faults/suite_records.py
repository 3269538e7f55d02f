"""What the tests of wrong suites share: a case that is right, the loader, and the records of a suite that it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import SuiteError
from evalwright.suite import CheckedSuite, load_suite

JUDGED = {"exact": "ok"}


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "expect": JUDGED} | fields


def load(directory: Path) -> CheckedSuite:
    return load_suite(directory)


def records_of(directory: Path) -> list[dict[str, Any]]:
    with pytest.raises(SuiteError) as caught:
        load_suite(directory)
    return caught.value.records()


def rewritten(directory: Path, **document: Any) -> Path:
    """Write keys of ``suite.json`` anew; ``None`` removes one."""
    whole = json.loads((directory / "suite.json").read_text()) | document
    (directory / "suite.json").write_text(json.dumps({key: value for key, value in whole.items() if value is not None}))
    return directory
