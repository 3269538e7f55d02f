"""Judges before the first trial: what would keep them from answering."""

from __future__ import annotations

from typing import Any

from evalwright.errors import JudgeError
from evalwright.interfaces import Judge
from evalwright.registry import PluginHost

__all__ = ["check_judge"]


def check_judge(host: PluginHost, reference: str) -> list[tuple[str, str]]:
    """Check the judge behind a reference, and those that it asks; references of other kinds are passed by.

    Return the kind and reference of every other plugin that they use. Raises ``JudgeError``, which names what is missing.
    """
    if not reference.startswith("judges."):
        return []
    judge: Judge[Any] = host.create(reference)
    for problem in judge.check("coordinator"):
        if problem.fatal:
            raise JudgeError(f"{reference}: {problem.message}", hint=problem.hint, key=reference, **problem.details)
    used: list[tuple[str, str]] = []
    for other in judge.uses():
        used += [host.resolve(other), *check_judge(host, other)]
    return used
