"""Judges before the first trial: what would keep them from answering."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from evalwright.errors import JudgeError

if TYPE_CHECKING:
    from evalwright.interfaces import Judge
    from evalwright.registry import PluginHost

__all__ = ["check_judges"]


def check_judges(host: PluginHost, references: Iterable[str]) -> list[tuple[str, str]]:
    """Check the judges behind references, and those that they ask; references of other kinds are passed by.

    Return the kind and reference of every plugin that they use. Raises ``JudgeError``, which names what is missing.
    """
    used: list[tuple[str, str]] = []
    for name, found in host.reach("judges", references).items():
        judge: Judge[Any] = found
        for problem in judge.check("coordinator"):
            if problem.fatal:
                raise JudgeError(
                    f"judges.{name}: {problem.message}", hint=problem.hint, key=f"judges.{name}", **problem.details
                )
        used += [host.resolve(other) for other in judge.uses()]
    return used
