"""Experiments made of rows, for the renderers: arms, passes and cases without a run behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.model import Usage
from evalwright.report import ExperimentView, RunRows, Trial
from evalwright.rundir import RunDirectory
from evalwright.rundir.experiment import Cell

ODD = "\u001b[31mred\u0000 ]]> <script>alert(1)</script> & \"'`*_|$\ud800\ufffe\u202e\u2028 \r\n::error::x\n# heading"
STATUSES = {
    "p": ("pass", None),
    "f": ("fail", None),
    "h": ("error", "harness"),
    "a": ("error", "agent"),
    "u": ("unscored", None),
}


def trial(arm: str, repeat: int, case: str, letter: str, **more: Any) -> Trial:
    """Return a trial; ``letter`` is its status: p, f, h (harness fault), a (agent's fault) or u."""
    status, fault = STATUSES[letter]
    scores = [score(ok=status == "pass")] if status in ("pass", "fail") else []
    fields: dict[str, Any] = {"scores": scores, "usage": None, "duration_ms": 1000.0} | more
    return Trial(run_id=f"x.{arm}.{repeat}", arm=arm, repeat=repeat, case=case, status=status, fault=fault, **fields)


def score(**fields: Any) -> dict[str, Any]:
    """Return a score record; one that is not ok has a finding with a place."""
    ok = fields.get("ok", False)
    finding = {"why": "took 12 tries", "path": "src/a.py", "line": 3}
    record: dict[str, Any] = {"scorer": "exact", "ok": False, "score": float(ok), "label": "pass" if ok else "fail"}
    return record | {"findings": [] if ok else [finding], "required": True} | fields


def view(
    arms: Mapping[str, Sequence[str]],
    *,
    cases: Sequence[str] = ("a", "b", "c"),
    place: Path = Path("/nowhere"),
    cost: Mapping[str, float | None] | None = None,
    **fields: Any,
) -> ExperimentView:
    """Return an experiment. ``arms`` gives each one string a pass: a status letter for each case, a blank for no result.

    ``cost`` is what a trial of an arm costs, in US dollars.
    """
    runs: list[RunRows] = []
    cells: list[Cell] = []
    for arm, passes in arms.items():
        for repeat, letters in enumerate(passes, 1):
            price = (cost or {}).get(arm)
            usage = None if price is None else Usage(input=900, output=100, cost=price)
            trials = [trial(arm, repeat, c, s, usage=usage) for c, s in zip(cases, letters, strict=True) if s != " "]
            run = RunDirectory(place / f"x.{arm}.{repeat}")
            finished = " " not in letters
            runs.append(RunRows(run=run, suite="demo", arm=arm, repeat=repeat, finished=finished, planned=cases, trials=trials))
            cells.append(Cell(repeat, arm, f"x.{arm}.{repeat}", len(cases)))
    whole: dict[str, Any] = {"id": "x", "suite": "demo", "primary": None, "alpha": 0.05, "cells": cells, "runs": runs} | fields
    return ExperimentView(**whole)


MIXED = view(
    {"small": ["pfh", "ffa"], "large": ["ppu", "pf "]},
    cost={"small": 0.00123, "large": 0.0456},
)
"""Two arms, two passes, three cases: every status, and one place without a result."""
