"""Verbs of the command line that come with a package of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

__all__ = ["PluginVerb", "VerbAnswer", "VerbFlag"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbFlag:
    """One flag: ``flag`` takes no value, ``text`` any, ``count`` a whole number from 1; ``list`` is repeatable text."""

    name: str
    help: str
    kind: Literal["flag", "text", "count", "seconds", "list"] = "text"
    metavar: str = ""
    choices: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VerbAnswer:
    """What a verb answers: ``data`` for machines, ``text`` for people, ``next_steps`` as command and reason.

    ``body`` is a raw document that is printed in place of both, whoever reads.
    """

    data: Any
    text: str
    exit_code: int = 0
    next_steps: Mapping[str, str] = field(default_factory=dict[str, str])
    body: str | None = None


class PluginVerb(ABC):
    """A verb, offered under ``evalwright.commands`` by its name.

    The first line of its module's docstring is its help, so that ``evalwright --help`` shows it without importing anything.
    ``args`` are positional: ``NAME`` is needed, ``NAME?`` is not, ``a|b`` is a choice of actions. ``actions`` says for the
    help how each of them is called, and what it does. ``meanings`` explains exit codes of its own. What it needs to import
    it imports in :meth:`answer`, since ``VERB --help`` loads its module too.
    """

    args: ClassVar[Sequence[str]] = ()
    actions: ClassVar[Mapping[str, str]] = {}
    flags: ClassVar[Sequence[VerbFlag]] = ()
    exit_codes: ClassVar[Sequence[int]] = (0, 1)
    meanings: ClassVar[Mapping[int, str]] = {}
    mutates: ClassVar[bool] = False

    @abstractmethod
    def answer(self, options: Any, warn: Callable[[str, str], None]) -> VerbAnswer:
        """Carry it out. ``options`` has an attribute for each argument and flag, ``action`` for a choice of actions.

        ``warn`` adds a warning: its code and its message. Raises ``EvalwrightError``.
        """
