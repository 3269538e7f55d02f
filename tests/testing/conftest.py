"""Prove that a check can fail: run one check of a contract over a plugin that is broken in one way."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalwright.testing import Contract

Prove = Callable[[type[Contract[Any]], str], None]


@pytest.fixture
def prove(tmp_path: Path) -> Prove:
    """Return what asserts that a check fails on the plugin that the contract makes."""

    def check_fails(contract: type[Contract[Any]], check: str) -> None:
        method = getattr(contract(), check)
        arguments = {"tmp_path": tmp_path} if "tmp_path" in inspect.signature(method).parameters else {}
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            method(**arguments)

    return check_fails


@pytest.fixture
def checks() -> Callable[[type[Contract[Any]]], set[str]]:
    """Return what lists the checks that a contract adds to those of every kind."""

    def listed(contract: type[Contract[Any]]) -> set[str]:
        return {name for name in dir(contract) if name.startswith("test_") and not hasattr(Contract, name)}

    return listed
