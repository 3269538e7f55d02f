"""What the scorers that run a command share: rendering of arguments, keeping of output, wording of times."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evalwright.interfaces import ScoreContext
from evalwright.model import Completed

__all__ = ["keep_output", "render", "seconds"]

PREFIXES = ("EVALWRIGHT_", "EVALCTL_")
_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")


def render(argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
    """Return the arguments with ``$NAME`` and ``${NAME}`` of the trial's own variables replaced, and of no others."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return env.get(name, match[0]) if name.startswith(PREFIXES) else match[0]

    return [_VARIABLE.sub(value, argument) for argument in argv]


def keep_output(context: ScoreContext, completed: Completed) -> None:
    """Keep both streams of a command beside the score."""
    context.keep("stdout.txt", completed.stdout.head)
    context.keep("stderr.txt", completed.stderr.head)


def seconds(timeout: float) -> str:
    """Return a time as a reader writes it: ``30s``, ``0.5s``."""
    return f"{int(timeout) if float(timeout).is_integer() else timeout}s"
