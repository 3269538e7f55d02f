"""The command line. What it can answer from literals it answers before anything else is imported."""

from __future__ import annotations

import gc
import os
import sys

from evalwright import __version__

__all__ = ["main"]

PIPE_CLOSED = 0
UNWRITABLE = 4


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit status. A reader that closes the pipe ends it quietly."""
    words = sys.argv[1:] if argv is None else argv
    try:
        status = _answer(words)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence()
        return PIPE_CLOSED
    except OSError as error:
        _silence()
        sys.stderr.write(f"cannot write the answer: {error.strerror or error}\n")
        return UNWRITABLE
    return status


def _silence() -> None:
    """Send what is still buffered nowhere, so that the interpreter's exit does not complain again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answer(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        sys.stdout.write(f"{__version__}\n")
        return 0
    if not words or words[0] in {"--help", "-h", "help"}:
        from evalwright.cli.help import overview

        sys.stdout.write(overview())
        return 0
    gc.disable()
    try:
        from evalwright.cli.dispatch import dispatch

        return dispatch(words)
    finally:
        gc.enable()
