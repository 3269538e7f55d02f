"""A stored run as exporters see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.canonical import is_object
from evalwright.errors import RunCorrupt
from evalwright.report.projection import Projection, project
from evalwright.rundir import IDENTITY_CASES, RunDirectory, changed_artifacts, read_around, sealed_digests

__all__ = ["StoredRun", "report_document"]


class StoredRun:
    """See :class:`evalwright.interfaces.RunView`. Raises as :func:`evalwright.report.project` when it is made."""

    def __init__(self, run: RunDirectory) -> None:
        report = project(run)
        self.run_id = report.run_id
        self.suite = report.suite
        self.warnings = report.warnings
        self.report: Mapping[str, Any] = report_document(report) | {"arm": _arm(run)}
        self._run = run

    def artifact(self, case_id: str, name: str) -> bytes:
        """Return a stored artifact. Raises ``OSError`` when it is absent, ``RunCorrupt`` when it is not what was sealed.

        A run of another tool has no seals, so its artifacts are taken as they are.
        """
        directory = self._run.case(case_id)
        if name.startswith("/") or ".." in name.split("/"):
            raise FileNotFoundError(f"{name} is no artifact")
        content = (directory / name).read_bytes()
        sealed = sealed_digests(directory)
        if sealed is not None and changed_artifacts(directory, sealed, [name]):
            hint = f"see: evalwright verify {self._run.path.name}"
            raise RunCorrupt(f"cases/{case_id}/{name} is not the file that was sealed", hint=hint)
        return content


def report_document(report: Projection) -> dict[str, Any]:
    """Return a report as JSON: what its hash covers, remarks on cases that passed, and the hashes."""
    return {
        **report.normalized,
        "remarks": [{"id": case.id, "status": case.status, "scores": list(case.remarks)} for case in report.remarked],
        "run_id": report.run_id,
        "report_hash": report.report_hash,
        "content_hash": report.content_hash,
        "sealed": report.sealed,
        "usage": {name: total.as_json() for name, total in report.usage.items()},
    }


def _arm(run: RunDirectory) -> str | None:
    """Return the arm of a run of ours."""
    experiment = read_around(run.run_json, *IDENTITY_CASES)[0].get("experiment") if run.run_json.is_file() else None
    return str(experiment["arm"]) if is_object(experiment) and "arm" in experiment else None
