"""SWE-bench predictions: one JSON object a line with the patch that a model made for an instance."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from evalwright_adapters._records import find_file, read_records
from evalwright_adapters.lastlight.instances import InstanceId

__all__ = ["Prediction", "read_predictions"]


class Prediction(BaseModel, extra="ignore"):
    """One line of ``predictions.jsonl``."""

    instance_id: InstanceId
    model_name_or_path: str = ""
    model_patch: str | None = None


def read_predictions(path: Path) -> dict[str, str]:
    """Return the patches by instance. Raises ``SourceMissing`` or ``UsageError``, naming the wrong line."""
    records = read_records(find_file(path, "predictions.jsonl"), Prediction)
    return {record.instance_id: record.model_patch for record in records if record.model_patch}
