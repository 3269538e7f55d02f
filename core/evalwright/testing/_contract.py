"""What all contracts share: checks with a version, plugins made and closed around each check, the checks of every kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Generic, Literal, TypeVar

from evalwright.interfaces import API, Deadline, Host, Plugin, Problem
from evalwright.testing._host import FakeHost

__all__ = ["CAPABILITIES", "KIT", "Contract", "since"]

P = TypeVar("P", bound=Plugin[Any])
F = TypeVar("F", bound=Callable[..., Any])

KIT = "1.0"
CAPABILITIES = frozenset(
    {
        "cross-host",
        "cross-process",
        "deterministic",
        "durable",
        "fs-isolated",
        "gold-isolated",
        "needs-judge",
        "network-allowlist",
        "network-off",
        "pid-isolated",
        "ports",
        "resource-limits",
        "snapshot",
        "writable-mounts",
    }
)
UNKNOWN_KEY = "evalwright_unknown_key"
START_SECONDS = 60.0


def since(version: str) -> Callable[[F], F]:
    """Mark a check with the version of the kit that brought it; :attr:`Contract.kit` leaves out newer ones."""

    def mark(check: F) -> F:
        check.since = version  # type: ignore[attr-defined]  # a function takes attributes
        return check

    return mark


class Contract(Generic[P]):
    """The checks of every kind. A subclass named ``Test...`` overrides :meth:`make`.

    ``kit`` is the version of the kit that the author's package was tested with: checks that are newer are left out, so
    that a new kit does not fail an unchanged plugin.
    """

    kit: ClassVar[str] = KIT
    kind: ClassVar[str]
    plugin: P | None = None

    def __init_subclass__(cls) -> None:
        """Take checks out that are newer than ``kit``."""
        super().__init_subclass__()
        for name in dir(cls):
            if name.startswith("test_") and _newer(getattr(cls, name), cls.kit):
                setattr(cls, name, None)

    def make(self, host: Host) -> P:
        """Return a new plugin; called at least once per check."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    @contextlib.contextmanager
    def made(self, make: Callable[[Host], P] | None = None) -> Generator[P]:
        """Give a started plugin; it is closed after the block, however that ends."""
        with FakeHost() as host:
            plugin = self.plugin = (make or self.make)(host)
            try:
                plugin.start(Deadline.after(START_SECONDS))
                yield plugin
            finally:
                plugin.close(Deadline.after(START_SECONDS))

    @since("1.0")
    def test_api_names_a_version_of_the_interface_that_this_core_offers(self) -> None:
        """``api`` is ``kind/major.minor``: the same major, at most the core's minor."""
        with self.made() as plugin:
            declared = getattr(type(plugin), "api", None)
        ours = API[self.kind]
        assert isinstance(declared, str), f'the class says no api; add: api = "{ours}"'
        name, major, minor = _split(declared)
        assert (name, major) == _split(ours)[:2], f"api is {declared!r}; this core offers {ours!r}"
        assert minor <= _split(ours)[2], f"api is {declared!r}; this core offers {ours!r}"

    @since("1.0")
    def test_config_forbids_unknown_keys(self) -> None:
        """A misspelt key of a suite is refused, never ignored."""
        from pydantic import ValidationError

        with self.made() as plugin:
            model = type(plugin).Config
        if model is None:
            return
        found: list[Any] = []
        try:
            model.model_validate({UNKNOWN_KEY: 1})
        except ValidationError as error:
            found = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
        assert (UNKNOWN_KEY,) in found, f'{model.__name__} accepts unknown keys; set model_config = ConfigDict(extra="forbid")'

    @since("1.0")
    def test_capabilities_are_known_words(self) -> None:
        """Suites ask for capabilities by name; your own start with ``x-``."""
        with self.made() as plugin:
            declared = type(plugin).capabilities
        unknown = {name for name in declared if name not in CAPABILITIES and not name.startswith("x-")}
        assert not unknown, f"unknown capabilities {sorted(unknown)}; start your own with x-"

    @since("1.0")
    def test_preflight_lists_problems_and_never_raises(self) -> None:
        """``check`` answers with ``Problem`` values in the coordinator and in a worker."""
        places: tuple[Literal["coordinator", "worker"], ...] = ("coordinator", "worker")
        with self.made() as plugin:
            for where in places:
                try:
                    problems = list(plugin.check(where))
                except Exception as error:
                    raise AssertionError(f"check({where!r}) raised {error!r}") from error
                assert all(isinstance(problem, Problem) for problem in problems), f"check({where!r}) gave {problems!r}"

    @since("1.0")
    def test_uses_names_references(self) -> None:
        """``uses`` lists references as text, such as ``judges.strict``; one string is not a list."""
        with self.made() as plugin:
            references: Any = plugin.uses()
        assert not isinstance(references, str), "uses() returned one string; return a tuple"
        assert all(isinstance(name, str) for name in references)


def _newer(check: Any, kit: str) -> bool:
    version = getattr(check, "since", None)
    return version is not None and _numbers(version) > _numbers(kit)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _split(api: str) -> tuple[str, int, int]:
    """Return kind, major and minor; nonsense becomes a version that fits nothing."""
    name, _, version = api.partition("/")
    major, _, minor = version.partition(".")
    return (name, int(major), int(minor)) if major.isdigit() and minor.isdigit() else (name, -1, -1)
