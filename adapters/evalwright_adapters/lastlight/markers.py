"""Marker lines: what an agent of this harness ends its answer with, as instructions and as expectations."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["marker_answer", "marker_instructions", "marker_patterns", "verdicts"]

ANY_OF = "_any_of"
MEASURED = frozenset({"fix_gate", "fix_outcome"})
"""What the agent claims of its own tests and its push: the tests are run here instead."""

CHOICES: Mapping[str, str] = {
    "diagnosis_class": "reproducible, flaky, env-mismatch, infra-dependent or upstream-broken",
    "assessment_impact": "low, medium, high or none",
    "assessment_action": "automerge, comment or rebase-and-human",
}

Markers = Mapping[str, str | list[str]]


def verdicts(markers: Markers) -> Markers:
    """Return the markers that only the agent's answer can show."""
    return {key: value for key, value in markers.items() if key not in MEASURED}


def marker_patterns(markers: Markers) -> list[str]:
    """Return a pattern for each marker: one line gives a right value, and none a wrong one."""
    return [_pattern(key, _values(values)) for key, values in sorted(markers.items())]


def marker_answer(markers: Markers) -> str:
    """Return an answer that is right."""
    names = [(key.removesuffix(ANY_OF), _values(values)[0]) for key, values in sorted(markers.items())]
    return "".join(f"{_line(name)}: {_field(name)}={value}\n" for name, value in names)


def marker_instructions(markers: Markers) -> str:
    """Return the paragraph that asks for the marker lines without telling a value."""
    names = sorted(key.removesuffix(ANY_OF) for key in markers)
    lines = [f"{_line(name)}: {_field(name)}=VALUE, where VALUE is {CHOICES.get(name, 'your verdict')}" for name in names]
    return "End your answer with these lines, each once:\n\n" + "\n".join(lines) + "\n"


def _pattern(key: str, values: list[str]) -> str:
    name = key.removesuffix(ANY_OF)
    right = "|".join(re.escape(value) for value in values)
    given = rf"^{_line(name)}:[^\n]*\b{_field(name)}="
    return rf"\A(?![\s\S]*{given}(?!(?:{right})(?!\S)))[\s\S]*{given}(?:{right})(?!\S)"


def _values(values: str | list[str]) -> list[str]:
    return values if isinstance(values, list) else [values]


def _line(name: str) -> str:
    return f"{name.partition('_')[0].upper()}_COMPLETE"


def _field(name: str) -> str:
    return name.partition("_")[2]
