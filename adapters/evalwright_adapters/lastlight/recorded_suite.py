"""A suite of which only results are known: it names scorers and cases, and cannot be run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalwright.interfaces import ImportedCase, ImportedSuite

__all__ = ["recorded_case", "recorded_suite"]

NOTE = "Only results were imported; the suite cannot be run."


def recorded_suite(name: str, source: str, scorers: Sequence[str]) -> ImportedSuite:
    """Return the ``suite.json``. Where findings were judged, they are the primary score."""
    return ImportedSuite(
        {
            "schema_version": 2,
            "name": name,
            "runner": {"argv": ["false"]},
            "scorers": [{"use": scorer} for scorer in scorers],
            **({"primary": "findings"} if "findings" in scorers else {}),
            "meta": {"source": source, "license": "MIT", "note": NOTE},
        }
    )


def recorded_case(case_id: str, task: str, **more: Any) -> ImportedCase:
    """Return a case whose workspace nobody has."""
    return ImportedCase({"id": case_id, "task": task, "workspace": "fixtures/none", **more})
