"""Sealed scores: read once, and shared by the cases that have the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright.canonical import digest_bytes
from evalwright.report import project
from evalwright.report.scores import SealedScores
from evalwright.rundir import RunDirectory, render_compact

PASSED: dict[str, Any] = {"scorer": "exact", "ok": True, "score": 1.0, "label": "pass", "findings": []}


def stored(place: Path, case_id: str, *scores: Mapping[str, Any], **more: Any) -> str:
    """Write a case's scores as a trial does, and return their digest."""
    place.mkdir()
    record = {"case_id": case_id, "ok": True, "scores": list(scores), "status": "pass"} | more
    path = place / "score.json"
    path.write_text(render_compact(record), encoding="utf-8")
    return digest_bytes(path.read_bytes())


def read(scores: SealedScores, place: Path, case_id: str, digest: str | None) -> Mapping[str, Any] | None:
    return scores.read(str(place), case_id, digest)


def test_equal_scores_of_two_cases_are_one_object(tmp_path: Path) -> None:
    scores = SealedScores()
    one = read(scores, tmp_path / "a", "a", stored(tmp_path / "a", "a", PASSED))
    other = read(scores, tmp_path / "b", "b", stored(tmp_path / "b", "b", PASSED))
    assert one is other
    assert one is not None
    assert one["scores"] == [PASSED]


@pytest.mark.parametrize("more", [{"status": "error", "fault": "agent"}, {"scores": [PASSED | {"score": 0.5}]}])
def test_scores_that_differ_in_anything_are_told_apart(tmp_path: Path, more: dict[str, Any]) -> None:
    scores = SealedScores()
    read(scores, tmp_path / "a", "a", stored(tmp_path / "a", "a", PASSED))
    found = read(scores, tmp_path / "b", "b", stored(tmp_path / "b", "b", PASSED, **more))
    assert found is not None
    assert {key: found[key] for key in more} == more


def test_scores_with_findings_are_never_shared(tmp_path: Path) -> None:
    scores, failed = SealedScores(), PASSED | {"ok": False, "findings": [{"why": "x"}]}
    one = read(scores, tmp_path / "a", "a", stored(tmp_path / "a", "a", failed))
    other = read(scores, tmp_path / "b", "b", stored(tmp_path / "b", "b", failed))
    assert one is not other
    assert one is not None
    assert other is not None
    assert one["scores"] == other["scores"] == [failed]


def test_file_of_another_digest_says_nothing(tmp_path: Path) -> None:
    stored(tmp_path / "a", "a", PASSED)
    for digest in (None, digest_bytes(b""), digest_bytes(b"{}")):
        assert read(SealedScores(), tmp_path / "a", "a", digest) is None


def test_absent_link_pipe_and_directory_say_nothing(tmp_path: Path) -> None:
    digest = stored(tmp_path / "real", "a", PASSED)
    for name in ("absent", "link", "pipe", "directory"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "score.json").symlink_to(tmp_path / "real" / "score.json")
    os.mkfifo(tmp_path / "pipe" / "score.json")
    (tmp_path / "directory" / "score.json").mkdir()
    for name in ("absent", "link", "pipe", "directory"):
        assert read(SealedScores(), tmp_path / name, "a", digest) is None


def test_sealed_text_that_is_no_object_says_nothing(tmp_path: Path) -> None:
    for text in ("no JSON", "[1]"):
        (tmp_path / "score.json").write_text(text)
        assert read(SealedScores(), tmp_path, "a", digest_bytes(text.encode())) is None


def test_scores_that_are_too_large_to_tell_at_once_are_reported_all_the_same(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = project(run)
    monkeypatch.setattr("evalwright.report.scores.READ_BYTES", 16)
    after = project(run)
    assert (after.report_hash, after.sealed, after.warnings) == (before.report_hash, True, [])
    assert [case.scores for case in after.cases] == [case.scores for case in before.cases]
