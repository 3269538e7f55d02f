"""Observers: each is told, none can break a run, and one that fails is named."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from evalwright.hooks import Observers
from evalwright.hookspecs import hookimpl


class Listening:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @hookimpl
    def trial_finished(self, case: str, status: str) -> None:
        self.heard.append(f"{case} {status}")


class Failing:
    """Raises what it was made with, each time."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @hookimpl
    def trial_finished(self, case: str) -> None:
        raise self.error


class Misspelt:
    """Implements a hook that does not exist."""

    @hookimpl
    def trial_finnished(self) -> None:
        raise AssertionError


class Greedy:
    """Wants an argument that the hook does not have."""

    @hookimpl
    def trial_finished(self, case: str, password: str) -> None:
        raise AssertionError


def told(*plugins: tuple[str, Any], times: int = 1) -> list[str]:
    """Tell all observers and return the complaints."""
    complaints: list[str] = []
    observers = Observers(plugins, complaints.append)
    for _ in range(times):
        observers.call("trial_finished", event={}, case="a", status="pass")
    return complaints


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(3), KeyError("x"), RecursionError()], ids=repr)
def test_observer_that_fails_is_named_once_and_the_others_are_told(error: BaseException) -> None:
    before, after = Listening(), Listening()

    complaints = told(("pkg:a", before), ("pkg:bad", Failing(error)), ("pkg:z", after), times=3)

    assert before.heard == after.heard == ["a pass"] * 3
    assert len(complaints) == 1
    assert "pkg:bad.trial_finished" in complaints[0]
    assert type(error).__name__ in complaints[0]


@pytest.mark.parametrize("plugin", [Misspelt(), Greedy()], ids=lambda plugin: type(plugin).__name__)
def test_observer_that_fits_no_hook_is_left_out_with_a_reason(plugin: object) -> None:
    other = Listening()

    complaints = told(("pkg:odd", plugin), ("pkg:other", other))

    assert other.heard == ["a pass"]
    assert len(complaints) == 1
    assert "pkg:odd" in complaints[0]


def test_two_observers_of_one_name_are_told_or_one_is_named_and_the_other_told() -> None:
    first, second = Listening(), Listening()

    complaints = told(("pkg:same", first), ("pkg:same", second))

    assert first.heard == ["a pass"]
    assert second.heard or any("pkg:same" in line for line in complaints)


def test_observer_that_two_packages_offer_is_told_once() -> None:
    shared = Listening()

    told(("one:shared", shared), ("two:shared", shared))

    assert shared.heard == ["a pass"]


def test_module_is_an_observer() -> None:
    heard: list[str] = []

    @hookimpl
    def trial_finished(case: str) -> None:
        heard.append(case)

    assert told(("pkg:module", SimpleNamespace(trial_finished=trial_finished))) == []
    assert heard == ["a"]
    assert "evalwright.hooks" in sys.modules
