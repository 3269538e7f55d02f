"""Predictions hold every case with the patch that its trial left, and come back as they went in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.testing import FakeHost
from evalwright_adapters.swebench import SwebenchConfig, SwebenchExporter

if TYPE_CHECKING:
    from tests.conftest import Project

RESULTS = Path(__file__).parents[1] / "data" / "lastlight" / "results" / "code-fix" / "2026-06-30_075413-6c791c8"


class Run:
    """A run of one case with chosen artifacts."""

    run_id, suite = "run-1", "demo"

    def __init__(self, artifacts: Mapping[str, bytes], **report: Any) -> None:
        self.artifacts = artifacts
        self.report: Mapping[str, Any] = {"cases": [{"id": "a", "status": "pass"}], "failures": [], **report}

    def artifact(self, case_id: str, name: str) -> bytes:
        if name not in self.artifacts:
            raise FileNotFoundError(name)
        return self.artifacts[name]


def exported(run: Run, place: Path, **config: Any) -> dict[str, str]:
    with FakeHost() as host:
        SwebenchExporter(SwebenchConfig(**config), host).write(run, place / "out.jsonl")
    (line,) = (place / "out.jsonl").read_text().splitlines()
    record: dict[str, str] = json.loads(line)
    return record


def test_imported_predictions_are_exported_byte_for_byte(project: Project) -> None:
    run = project.call("import", "lastlight", str(RESULTS), "--out", "fix").data["runs"][0]
    answer = project.call("export", "swebench", run, "--out", "predictions.jsonl")
    assert (answer.exit_code, answer.data["case_count"]) == (0, 1)
    assert (project.path / "predictions.jsonl").read_bytes() == (RESULTS / "predictions.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("artifacts", "report", "config", "name"),
    [
        ({"runner.json": b'{"usage": {"model": "m-1"}}'}, {"arm": "arm"}, {}, "m-1"),
        ({"runner.json": b'{"usage": null}'}, {"arm": "arm"}, {}, "arm"),
        ({"runner.json": b"damaged"}, {"arm": None}, {}, "run-1"),
        ({}, {}, {}, "run-1"),
        ({"runner.json": b'{"usage": {"model": "m-1"}}'}, {}, {"model": "mine"}, "mine"),
    ],
)
def test_model_is_named_by_the_best_that_is_known(
    tmp_path: Path, artifacts: dict[str, bytes], report: dict[str, Any], config: dict[str, Any], name: str
) -> None:
    assert exported(Run(artifacts, **report), tmp_path, **config)["model_name_or_path"] == name


def test_a_trial_that_changed_nothing_has_an_empty_patch(tmp_path: Path) -> None:
    assert exported(Run({}), tmp_path)["model_patch"] == ""
    assert exported(Run({"workspace.diff": b"+\xc3\xa9\n"}), tmp_path)["model_patch"] == "+\u00e9\n"
