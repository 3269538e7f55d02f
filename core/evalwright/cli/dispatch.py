"""One verb from its words to its exit status: parse, import the verb, call it, print the answer."""

from __future__ import annotations

import argparse
import gc
import importlib
import keyword
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from evalwright import __version__
from evalwright.cli.contract import VERBS
from evalwright.cli.envelope import Reply, envelope
from evalwright.cli.foreign import ForeignVerb, load_foreign
from evalwright.cli.help import verb_help
from evalwright.cli.parser import parse, unknown_verb
from evalwright.errors import EvalwrightError

__all__ = ["Session", "dispatch"]

RAW_FORMATS = frozenset({"text", "markdown", "junit", "sarif", "github"})
Warnings = list[dict[str, Any]]


class Session:
    """What a verb needs of the outside: its options, whether a person reads, and a place for warnings.

    Codes in ``unspoken`` stand in the envelope, but no person is told again.
    """

    def __init__(self, verb: str, options: argparse.Namespace, words: list[str]) -> None:
        self.verb = verb
        self.options = options
        self.argv = ["evalwright", verb, *words]
        self.environment = os.environ
        self.warnings: Warnings = []
        self.unspoken: set[str] = set()
        wanted = getattr(options, "format", None)
        self.json: bool = options.json or wanted == "json" or (wanted not in RAW_FORMATS and not sys.stdout.isatty())

    def warn(self, code: str, message: str) -> None:
        """Add a warning to the answer, once."""
        record = {"code": code, "message": message}
        if record not in self.warnings:
            self.warnings.append(record)


def dispatch(words: list[str]) -> int:
    """Carry out one command and return its exit status."""
    started = time.monotonic()
    _use_utf8()
    verb, *rest = _verb_first(words)
    flags = rest[: rest.index("--")] if "--" in rest else rest
    session: Session | None = None
    try:
        foreign = None if verb in VERBS else load_foreign(verb)
        if foreign and not isinstance(foreign, ForeignVerb):
            _collect_garbage()
            return foreign(rest)
        definition = foreign.definition if foreign else VERBS.get(verb)
        if definition is None:
            raise unknown_verb(verb, rest)
        if {"--help", "-h", "--version"} & set(flags):
            sys.stdout.write(f"{__version__}\n" if "--version" in flags else verb_help(verb, definition))
            return 0
        session = Session(verb, parse(verb, rest, definition), rest)
        if session.options.no_color:
            os.environ["NO_COLOR"] = "1"
        answer = foreign.answer if foreign else _verb(verb)
        _collect_garbage()
        reply = answer(session)
    except BrokenPipeError:
        raise
    except EvalwrightError as error:
        reply = Reply(data=None, errors=error.records(), text=error.message)
        reply.exit_code = min(record["exit_code"] for record in reply.errors)
    except Exception as error:
        reply = _defect(error)
    if session:
        reply.warnings = session.warnings + reply.warnings
    as_json = session.json if session else _wants_json(flags)
    _print(reply, as_json=as_json, started=started, unspoken=session.unspoken if session else set())
    return reply.exit_code


def _collect_garbage() -> None:
    """Have garbage collected from here on, but none looked for in what was imported: that stays, and takes long to look at."""
    gc.freeze()
    gc.enable()


def _wants_json(flags: list[str]) -> bool:
    """Tell from words that could not be parsed what their author wants to read."""
    wanted = None
    for number, word in enumerate(flags):
        name, equals, value = word.partition("=")
        if name == "--format":
            wanted = value if equals else "".join(flags[number + 1 : number + 2])
    return "--json" in flags or wanted == "json" or (wanted not in RAW_FORMATS and not sys.stdout.isatty())


def _verb_first(words: list[str]) -> list[str]:
    """Return the words with the verb in front: flags of every verb may stand before it."""
    start = next((number for number, word in enumerate(words) if word not in ("--json", "--no-color")), 0)
    return [*words[start:], *words[:start]]


def _verb(name: str) -> Callable[[Session], Reply]:
    file = name.replace("-", "_") + ("_" if keyword.iskeyword(name) else "")
    module = importlib.import_module(f"evalwright.cli.verbs.{file}")
    function: Callable[[Session], Reply] = module.answer
    return function


def _print(reply: Reply, *, as_json: bool, started: float, unspoken: set[str]) -> None:
    if reply.errors:
        for record in reply.errors:
            sys.stderr.write(_error_text(record))
        if reply.text and len(reply.errors) > 1:
            sys.stderr.write(f"{reply.text}\n")
    if as_json and reply.body is None:
        sys.stdout.write(envelope(reply, started) + "\n")
        return
    for warning in [record for record in reply.warnings if record["code"] not in unspoken]:
        sys.stderr.write(f"warning: {warning['message']} ({warning['code']})\n")
    if not reply.errors:
        sys.stdout.write(reply.text if reply.body is None else reply.body)


def _error_text(record: dict[str, Any]) -> str:
    hint = f"\n  {record['hint']}" if record.get("hint") else ""
    return f"{record['message']} ({record['code']}){hint}\n"


def _defect(error: Exception) -> Reply:
    """Return the answer for a defect of ours: one line, and the traceback on request."""
    if os.environ.get("EVALWRIGHT_DEBUG"):
        import traceback

        sys.stderr.write("".join(traceback.format_exception(error)))
    record = {
        "code": "E_INTERNAL",
        "message": f"internal error: {type(error).__name__}: {error}",
        "hint": "this is a defect; set EVALWRIGHT_DEBUG=1 for the traceback and report it",
        "exit_code": 3,
    }
    return Reply(data=None, errors=[record], exit_code=3)


def _use_utf8() -> None:
    """Print UTF-8 whatever the locale says; what cannot be encoded is escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
