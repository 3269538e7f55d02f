"""How arms are compared: by a metric that the suite's scorers can give, at an alpha, both named once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.model import METRICS
from evalwright.suite.shape import AnalysisShape

__all__ = ["analysis_of", "metric_problems"]


def analysis_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``primary`` and ``alpha`` of a suite whose document was checked."""
    shape = AnalysisShape(**document.get("analysis", {}))
    return {"primary": shape.metric or document.get("primary"), "alpha": shape.alpha}


def metric_problems(document: Mapping[str, Any], ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is wrong with ``primary`` and ``analysis.metric`` of a suite whose scorers have these ids."""
    analysis: Mapping[str, Any] = document.get("analysis", {})
    primary, metric = document.get("primary"), analysis.get("metric")
    found: list[dict[str, Any]] = []
    if primary is not None and metric is not None:
        message = "analysis.metric: primary names the metric already"
        found.append({"message": message, "key": "analysis.metric", "hint": "leave one of them out"})
    if primary is not None and primary not in ids:
        found.append(_unknown("primary", f'no scorer has the id "{primary}"', primary, ids))
    known = [*METRICS, *ids]
    if metric is not None and metric not in known and not any(metric.startswith(f"{name}.") for name in ids):
        found.append(_unknown("analysis.metric", f'no scorer gives "{metric}"', metric, known))
    return found


def _unknown(key: str, why: str, name: str, known: Sequence[str]) -> dict[str, Any]:
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
    record = {"message": f"{key}: {why}", "key": key, "hint": hint, "valid_values": list(known)}
    return record | ({"did_you_mean": near[0]} if near else {})
