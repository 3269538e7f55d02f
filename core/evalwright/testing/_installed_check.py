"""Run the kit on an installed plugin, for ``evalwright plugins check NAME``."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

__all__ = ["check_installed"]

MODULE = """
from pathlib import Path

from evalwright.registry import Registry
from evalwright.testing import {contract}


class TestInstalled({contract}):
    def make(self, host):
        return Registry(Path()).create({kind!r}, {reference!r}, {{}}, host)
"""


class _Results:
    """Collects what pytest reports."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed: list[dict[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one phase of one check."""
        if report.failed:
            why = report.longreprtext.strip().splitlines()
            self.failed.append({"check": report.nodeid.rpartition("::")[2], "why": why[-1] if why else report.when or ""})
        elif report.when == "call" and report.passed:
            self.passed += 1


def check_installed(kind: str, reference: str) -> dict[str, Any]:
    """Return ``{passed, failed[{check, why}]}`` of the plugin's contract; it is created with an empty configuration."""
    results = _Results()
    text = MODULE.format(contract=f"{kind.capitalize()}Contract", kind=kind, reference=reference)
    with tempfile.TemporaryDirectory(prefix="evalwright-check-") as scratch, open(os.devnull, "w") as nowhere:
        path = Path(scratch) / "test_installed.py"
        path.write_text(text, encoding="utf-8")
        words = [str(path), "--rootdir", scratch, "-p", "no:terminal", "-p", "no:cacheprovider", "-c", os.devnull]
        with contextlib.redirect_stdout(nowhere):
            pytest.main(words, plugins=[results])
    return {"passed": results.passed, "failed": results.failed}
