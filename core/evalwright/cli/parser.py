"""Words to options: argparse built from the contract, errors with the nearest valid name."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NoReturn

from evalwright.cli.contract import GLOBAL_FLAGS, VERBS, Flag, Verb
from evalwright.cli.help import usage
from evalwright.errors import UnknownCommand, UnknownFlag, UsageError

__all__ = ["parse", "unknown_verb"]

MAX_COUNT = 10**9
DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
AUTHORING = frozenset({"suite", "case", "scorer"})
DESTINATIONS = {"format": "foreign_format"}
"""Arguments whose name a flag of every verb has."""
SURROGATE = "\\udc"
FORMATTER = partial(argparse.HelpFormatter, width=100)
"""With a width it does not ask for the terminal's, which takes longer to import than all of argparse."""


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of printing and leaving."""

    verb = usage = ""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.verb}: {message}", hint=f"usage: {self.usage}")


def parse(verb: str, words: list[str], definition: Verb) -> argparse.Namespace:
    """Return the verb's options. Raises ``UnknownFlag`` or ``UsageError`` that names what is wrong and the cure."""
    if verb in AUTHORING and any(SURROGATE in ascii(word) for word in words):
        raise UsageError(f"{verb}: an argument is not UTF-8, so no suite can hold it", hint="use UTF-8")
    parser = _Parser(prog=f"evalwright {verb}", formatter_class=FORMATTER, add_help=False, allow_abbrev=False)
    parser.verb, parser.usage = verb, usage(verb, definition)
    for arg in definition.args:
        _add_argument(parser, arg)
    for flag in definition.flags:
        _add_flag(parser, flag)
    for name in ("--json", "--no-color", "--version"):
        parser.add_argument(name, action="store_true")
    if not any(flag.name == "--format" for flag in definition.flags):
        parser.add_argument("--format", choices=("text", "json"))
    options, rest = parser.parse_known_intermixed_args(words)
    if rest:
        raise _unexpected(verb, words, rest[0], definition)
    return options


def unknown_verb(verb: str, words: list[str]) -> UnknownCommand:
    """Return the error for a verb that nobody offers."""
    near = _nearest(verb, VERBS)
    return UnknownCommand(
        f"unknown command {verb!r}",
        hint=f"did you mean {near[0]}?" if near else "see: evalwright --help",
        did_you_mean=near[0] if near else None,
        corrected_command=_joined(near[0], *words) if near else None,
        valid_values=list(VERBS),
    )


def _unexpected(verb: str, words: list[str], word: str, definition: Verb) -> UsageError:
    if not word.startswith("-"):
        return UsageError(f"{verb}: unexpected argument {word!r}", hint=f"usage: {usage(verb, definition)}")
    name = word.partition("=")[0]
    known = sorted({*(flag.name for flag in definition.flags), *GLOBAL_FLAGS})
    near = _nearest(name, known)
    corrected = _joined(verb, *(_corrected(word, name, near[0]) for word in words)) if near else None
    return UnknownFlag(
        f"{verb} has no flag {name}",
        hint=f"did you mean {near[0]}?" if near else f"see: evalwright {verb} --help",
        did_you_mean=near[0] if near else None,
        corrected_command=corrected,
        valid_values=known,
    )


def _corrected(word: str, name: str, right: str) -> str:
    flag, equals, value = word.partition("=")
    return f"{right}{equals}{value}" if flag == name else word


def _joined(*words: str) -> str:
    import shlex

    return shlex.join(["evalwright", *words])


def _nearest(word: str, known: Iterable[str]) -> list[str]:
    import difflib

    return difflib.get_close_matches(word, list(known), 1)


def _add_argument(parser: argparse.ArgumentParser, arg: str) -> None:
    if "|" in arg or arg.islower():
        parser.add_argument("action", choices=arg.split("|"), metavar=arg)
    else:
        name = arg.rstrip("?").lower()
        name = DESTINATIONS.get(name, name)
        parser.add_argument(name, nargs="?" if arg.endswith("?") else None, metavar=arg.rstrip("?"))


def _add_flag(parser: argparse.ArgumentParser, flag: Flag) -> None:
    if flag.kind == "flag":
        parser.add_argument(flag.name, action="store_true")
        return
    extra: dict[str, Any] = {"metavar": flag.metavar or None}
    if flag.choices:
        extra = {"choices": flag.choices}
    if flag.kind == "list":
        extra |= {"action": "append", "default": []}
    if flag.kind in KINDS:
        extra["type"] = KINDS[flag.kind]
    parser.add_argument(flag.name, **extra)


def _count(text: str) -> int:
    try:
        value = int(text) if text.isascii() and text.isdigit() else 0
    except ValueError:
        value = 0
    if not 1 <= value <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1 (got {text})")
    return value


def _seconds(text: str) -> float:
    value = _written(text)
    if not 0 < value <= MAX_COUNT:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0 (got {text})")
    return value


def _written(text: str) -> float:
    """Return a number that is written as one in ASCII, NaN for anything else: no ``1_000``, no other digits."""
    return float(text) if DECIMAL.fullmatch(text) else math.nan


def _real(what: str, low: float, high: float, *, closed: bool = False) -> Callable[[str], float]:
    """Return a reader of numbers above ``low`` (or equal to it if ``closed``) and below ``high``."""

    def read(text: str) -> float:
        value = _written(text)
        if not (low < value < high or (closed and value == low)):
            raise argparse.ArgumentTypeError(f"must be {what} (got {text})")
        return value

    return read


KINDS: dict[str, Callable[[str], Any]] = {
    "count": _count,
    "seconds": _seconds,
    "usd": _real("an amount of US dollars above 0", 0, math.inf),
    "number": _real("a number of at least 0", 0, math.inf, closed=True),
    "fraction": _real("a number between 0 and 1", 0, 1),
}
