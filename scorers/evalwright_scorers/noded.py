"""Reports of node's test runner under a seal: the runner's own process writes them, and code under test runs in others."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from importlib.resources import files
from pathlib import PurePosixPath

from evalwright.interfaces import Session

__all__ = ["install_reporter", "runs_node_tests"]

REPORTER, CONTROL = "evalwright_reporter.mjs", "evalwright_control.cjs"


def runs_node_tests(argv: Sequence[str]) -> bool:
    """Tell whether a command starts node's test runner in a way that options can be added to."""
    return "node" in map(_name, argv) and "--test" in argv


def install_reporter(session: Session, argv: Sequence[str]) -> list[str]:
    """Place reporter and control beside the workspace, and return the command with the options that make node use them."""
    place = session.exchange / secrets.token_hex(16)
    for name in (REPORTER, CONTROL):
        session.put((files("evalwright_scorers") / "_drivers" / name).read_bytes(), place / name)
    options = [
        "--require",
        str(place / CONTROL),
        f"--test-reporter={place / REPORTER}",
        "--test-reporter-destination=stdout",
    ]
    after = [_name(word) for word in argv].index("node") + 1
    return [*argv[:after], *options, *argv[after:]]


def _name(word: str) -> str:
    return PurePosixPath(word).name
