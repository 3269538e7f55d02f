"""Arms: the suite's own tables with each arm's overrides merged in, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import is_object
from evalwright.suite.shape import AGENT_KEYS

__all__ = ["merged_judges", "overridden"]

Table = Mapping[str, Any]


def _merged(base: Table, override: Table) -> dict[str, Any]:
    """Return ``base`` with the keys of ``override``: objects are merged likewise, everything else replaces."""
    result = dict(base)
    for key, value in override.items():
        former = result.get(key)
        result[key] = _merged(former, value) if is_object(former) and is_object(value) else value
    return result


def overridden(base: Any, override: Any, default: str) -> dict[str, Any]:
    """Return a plugin's table of one arm.

    An arm that names another plugin than the suite keeps only what all runners share: the rest was the former's own.
    """
    former, wanted = _table(base, default), _table(override, "")
    if wanted["use"] in ("", former["use"]):
        return _merged(former, {key: value for key, value in wanted.items() if key != "use"})
    return _merged({key: value for key, value in former.items() if key in AGENT_KEYS}, wanted)


def merged_judges(document: Table, overrides: Table) -> dict[str, dict[str, Any]]:
    """Return the table of every judge of a suite, with an arm's overrides; an arm may add judges of its own."""
    base: Mapping[str, Any] = document.get("judges") or {}
    own: Mapping[str, Any] = overrides.get("judges") or {}
    tables = {name: _table(reference, "") for name, reference in base.items()}
    for name, reference in own.items():
        former = tables.get(name)
        wanted = _table(reference, former["use"] if former else "")
        tables[name] = _merged(former, wanted) if former and former["use"] == wanted["use"] else wanted
    return tables


def _table(reference: Any, default: str) -> dict[str, Any]:
    return {"use": default, **reference} if is_object(reference) else {"use": reference or default}
