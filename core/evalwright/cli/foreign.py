"""Verbs that other packages offer under ``evalwright.commands``: listed without an import, loaded when called."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

from evalwright.cli.contract import Flag, Verb
from evalwright.cli.envelope import Reply

__all__ = ["ForeignVerb", "foreign_summaries", "load_foreign"]

SECTION = "[evalwright.commands]"
HEAD_BYTES = 1000


class ForeignVerb:
    """A loaded verb of another package: its definition, and what answers it."""

    def __init__(self, name: str, verb: Any, help: str) -> None:
        flags = tuple(Flag(flag.name, flag.kind, flag.help, tuple(flag.choices), flag.metavar) for flag in verb.flags)
        self.name = name
        self.definition = Verb(
            help,
            tuple(verb.args),
            flags,
            tuple(verb.exit_codes),
            verb.mutates,
            meanings=dict(verb.meanings),
            actions=dict(verb.actions),
        )
        self._verb = verb

    def answer(self, session: Any) -> Reply:
        """Carry it out in a session of the command line."""
        found = self._verb().answer(session.options, session.warn)
        reply = Reply(data=found.data, text=found.text, body=found.body, exit_code=found.exit_code)
        for command, rationale in found.next_steps.items():
            reply.then(command, rationale)
        return reply


def load_foreign(name: str) -> ForeignVerb | Callable[[list[str]], int] | None:
    """Import a verb: a ``PluginVerb``, or a plain function of its words. ``None`` when nobody offers it.

    Raises ``PluginBroken`` or ``PluginAmbiguous``.
    """
    from evalwright.errors import PluginNotFound
    from evalwright.interfaces import PluginVerb
    from evalwright.registry import Catalog
    from evalwright.registry.loading import load_object

    try:
        listing = Catalog().find("command", name)
    except PluginNotFound:
        return None
    found: Any = load_object(listing)
    if isinstance(found, type) and issubclass(found, PluginVerb):
        return ForeignVerb(name, found, _first_line(sys.modules[found.__module__].__doc__ or ""))
    return cast("Callable[[list[str]], int]", found)


def foreign_summaries() -> dict[str, str]:
    """Return the help of every installed verb of another package, read from files."""
    return {name: _summary(target) for name, target in sorted(_entries())}


def _entries() -> Iterator[tuple[str, str]]:
    """Yield name and ``module:attribute`` of every entry point, as the packages' own files have them."""
    for directory in sys.path:
        try:
            names = [entry.name for entry in os.scandir(directory or ".") if entry.name.endswith(".dist-info")]
        except OSError:
            continue
        for name in names:
            text = _text(os.path.join(directory, name, "entry_points.txt"))
            lines = text.partition(SECTION)[2].partition("\n[")[0].splitlines()
            for verb, equals, target in (line.partition("=") for line in lines):
                if equals:
                    yield verb.strip(), target.strip()


def _summary(target: str) -> str:
    """Return the first line of a module's docstring without importing the module."""
    path = target.partition(":")[0].replace(".", "/")
    for directory in sys.path:
        for file in (f"{path}.py", f"{path}/__init__.py"):
            text = _text(os.path.join(directory, file))
            if text:
                return _first_line(text.lstrip("\"'"))
    return ""


def _first_line(docstring: str) -> str:
    line = docstring.strip().partition("\n")[0].rstrip("\"'").rstrip(".")
    return line[:1].lower() + line[1:]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(HEAD_BYTES) if path.endswith(".py") else file.read()
    except OSError:
        return ""
