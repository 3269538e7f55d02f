"""What all contracts share: versions of checks, the checks of every kind, the fakes' own promises."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from evalwright.errors import PluginAmbiguous, PluginNotFound
from evalwright.interfaces import Host, Problem, ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright.registry import Catalog, Registry
from evalwright.testing import (
    Contract,
    ExporterContract,
    FakeClock,
    FakeHost,
    ImporterContract,
    JudgeContract,
    QueueContract,
    RunnerContract,
    SandboxContract,
    ScorerContract,
    ServiceContract,
    in_threads,
    installed,
    since,
    soon,
    within,
)


class Plain(Scorer[Any]):
    api = "scorer/1.0"

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        return Score.passed()


class Careless(BaseModel):
    word: str = ""


class WithoutApi(Plain):
    api = None  # type: ignore[assignment]  # that is what is wrong with it


class ForAnotherKind(Plain):
    api = "judge/1.0"


class ForALaterMinor(Plain):
    api = "scorer/1.99"


class AcceptingAnyKey(Plain):
    Config = Careless


class Boasting(Plain):
    capabilities = frozenset({"unbreakable"})


class RaisingInPreflight(Plain):
    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        raise OSError("no daemon")


class SayingTextInPreflight(Plain):
    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Any]:
        return ["no daemon"]


class UsingOneString(Plain):
    def uses(self) -> Sequence[str]:
        return "judges.strict"


API = "test_api_names_a_version_of_the_interface_that_this_core_offers"
PREFLIGHT = "test_preflight_lists_problems_and_never_raises"
BROKEN: list[tuple[str, type[Plain]]] = [
    (API, WithoutApi),
    (API, ForAnotherKind),
    (API, ForALaterMinor),
    ("test_config_forbids_unknown_keys", AcceptingAnyKey),
    ("test_capabilities_are_known_words", Boasting),
    (PREFLIGHT, RaisingInPreflight),
    (PREFLIGHT, SayingTextInPreflight),
    ("test_uses_names_references", UsingOneString),
]


class TestPlain(ScorerContract):
    def make(self, host: Host) -> Plain:
        return Plain(None, host)


@pytest.mark.parametrize(("check", "cls"), BROKEN, ids=lambda value: getattr(value, "__name__", value))
def test_check_of_every_kind_fails_on_its_broken_plugin(check: str, cls: type[Plain], prove: Any) -> None:
    class Broken(ScorerContract):
        def make(self, host: Host) -> Plain:
            return cls(Careless(), host)

    prove(Broken, check)


def test_every_check_of_every_kind_has_a_broken_plugin() -> None:
    assert {name for name in dir(Contract) if name.startswith("test_")} == {check for check, _ in BROKEN}


class Tomorrow(ScorerContract):
    kit = "1.1"

    @since("1.1")
    def test_something_new(self) -> None:
        raise AssertionError("a check of a later kit")


def test_checks_that_are_newer_than_the_author_s_kit_are_left_out() -> None:
    class Later(Tomorrow):
        pass

    class Earlier(Tomorrow):
        kit = "1.0"

    assert callable(Later.test_something_new)
    assert Earlier.test_something_new is None
    assert callable(Earlier.test_applies_agrees_with_score)


CONTRACTS: list[type[Contract[Any]]] = [
    ExporterContract,
    ImporterContract,
    JudgeContract,
    QueueContract,
    RunnerContract,
    SandboxContract,
    ScorerContract,
    ServiceContract,
]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_check_says_since_when_and_what_it_checks(contract: type[Contract[Any]]) -> None:
    checks = [getattr(contract, name) for name in dir(contract) if name.startswith("test_")]
    assert all(check.since == "1.0" and check.__doc__ for check in checks)


def test_installed_plugin_is_found_by_name_with_its_distribution() -> None:
    with installed("scorer", "plain", Plain, distribution="acme", version="3.2") as name:
        loaded = Registry().load("scorer", name)
    assert (loaded.cls, loaded.distribution, loaded.version) == (Plain, "acme", "3.2")
    with pytest.raises(PluginNotFound):
        Catalog().find("scorer", "plain")


def test_two_installed_plugins_of_one_name_are_ambiguous() -> None:
    with (
        installed("scorer", "plain", Plain, distribution="one"),
        installed("scorer", "plain", Boasting, distribution="two"),
        pytest.raises(PluginAmbiguous),
    ):
        Registry().load("scorer", "plain")


def test_fake_clock_moves_only_forward_and_only_when_told() -> None:
    clock = FakeClock(5.0)
    clock.advance(2.5)
    assert clock() == 7.5
    with pytest.raises(ValueError, match="never goes back"):
        clock.advance(-1)


def test_fake_host_gives_what_the_test_gave() -> None:
    plugin = object()
    with FakeHost({"judges.strict": plugin}) as host:
        assert host.create("judges.strict") is plugin
        with pytest.raises(PluginNotFound):
            host.create("judges.lenient")


def test_call_that_hangs_is_given_up() -> None:
    never = threading.Event()
    with pytest.raises(AssertionError, match="did not return"):
        within(0.05, never.wait, "waiting for ever")
    never.set()


def test_condition_that_never_comes_true_is_given_up() -> None:
    assert not soon(lambda: False, 0.05)


def test_error_of_one_thread_is_the_error_of_all() -> None:
    def fail(number: int) -> None:
        if number == 3:
            raise OSError("only one")

    with pytest.raises(AssertionError, match="only one"):
        in_threads(fail)
