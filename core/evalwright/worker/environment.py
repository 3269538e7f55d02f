"""The environment of a trial's commands: a small base, what the suite allows, and the trial's own paths."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from evalwright.interfaces import Session
from evalwright.workspace import TrialPlace

__all__ = ["PREFIXES", "base_environment", "case_variables", "expand_prefixes"]

PREFIXES = ("EVALWRIGHT_", "EVALCTL_")
PLAIN_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base_environment(agent: Mapping[str, Any], session: Session, place: TrialPlace) -> dict[str, str]:
    """Return the base, the allow-listed variables and ``runner.env``; later ones win.

    The base is ``LANG``, a private ``HOME`` and ``TMPDIR``, a plain ``PATH`` and git's ceiling. Nothing else of this
    process's environment is passed on.
    """
    base = {
        "GIT_CEILING_DIRECTORIES": str(session.workspace.parent),
        "HOME": str(session.home or place.home),
        "LANG": "C.UTF-8",
        "PATH": PLAIN_PATH,
        "TMPDIR": str(session.temporary or place.temporary),
    }
    allowed = {name: os.environ[name] for name in agent["env_allowlist"] if name in os.environ}
    return base | allowed | dict(agent["env"])


def case_variables(session: Session, *, has_diff: bool, **extra: str) -> dict[str, str]:
    """Return the trial's paths as commands see them, under both prefixes."""
    exchange = session.exchange
    paths = {
        "CASE_FILE": f"{exchange}/case.json",
        "DIFF_FILE": f"{exchange}/input.diff" if has_diff else "",
        "OUTPUT_FILE": f"{exchange}/output.txt",
        "TASK_FILE": f"{exchange}/task.txt",
        "WORKSPACE": str(session.workspace),
    }
    return expand_prefixes(paths | extra)


def expand_prefixes(variables: Mapping[str, str]) -> dict[str, str]:
    """Return each variable under the project's own prefix and under evalctl's."""
    return {prefix + name: value for name, value in variables.items() for prefix in PREFIXES}
