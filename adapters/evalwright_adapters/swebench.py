"""Writes a run as SWE-bench predictions: the patch that each trial left, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ValidationError

from evalwright.interfaces import Exporter, RunView

__all__ = ["SwebenchConfig", "SwebenchExporter"]


class _Usage(BaseModel, extra="ignore"):
    model: str | None = None


class _Runner(BaseModel, extra="ignore"):
    usage: _Usage | None = None


class SwebenchConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """``model`` is the name to give in every line; without it, the model that the trial used, else the arm, else the run."""

    model: str | None = None


class SwebenchExporter(Exporter[SwebenchConfig]):
    """Writes ``{instance_id, model_name_or_path, model_patch}`` for every case, with an empty patch where nothing changed."""

    api = "exporter/1.0"
    Config = SwebenchConfig
    suffix = ".jsonl"

    def write(self, run: RunView, target: Path) -> None:
        """Write the predictions to the file ``target``, by case."""
        lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in self._predictions(run)]
        target.write_text("".join(lines), encoding="utf-8", newline="")

    def _predictions(self, run: RunView) -> Iterator[dict[str, str]]:
        for case in run.report["cases"]:
            name = str(case["id"])
            model = self.config.model or _model(run, name) or run.report.get("arm") or run.run_id
            yield {"instance_id": name, "model_name_or_path": model, "model_patch": _patch(run, name)}


def _patch(run: RunView, case_id: str) -> str:
    try:
        return run.artifact(case_id, "workspace.diff").decode("utf-8", "replace")
    except OSError:
        return ""


def _model(run: RunView, case_id: str) -> str | None:
    """Return the one model that a trial is known to have used."""
    try:
        runner = _Runner.model_validate_json(run.artifact(case_id, "runner.json"))
    except (OSError, ValidationError):
        return None
    return runner.usage.model if runner.usage else None
