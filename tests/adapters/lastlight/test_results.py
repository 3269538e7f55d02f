"""Scorecards, transcripts and judge replies become runs; every figure is that of the raw files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lastlight.conftest import CODE_FIX, DATA, PR_REVIEW, TRIAGE, Describe, Import

from evalwright.errors import RunConflict, UsageError
from evalwright.interfaces import ImportedRun, ImportedTrial, Unsupported
from evalwright.report import project, verify_run
from evalwright.rundir import Layout, read_object
from evalwright.rundir.experiment import ExperimentRecord
from evalwright_adapters.lastlight.reviews import replayed
from evalwright_adapters.lastlight.scorecard import Trace, read_card


def test_triage_has_the_published_figures(bring: Import) -> None:
    summary = bring(TRIAGE)["summary"]
    assert summary["behavioral"] == {"ok": 1, "total": 1, "checks": 3}
    assert (summary["cases"], summary["passed"], summary["trials"]) == (1, 1, 1)
    assert summary["cost_usd"] == 0.0346087
    tokens = {"in": 51, "cached": 50429, "out": 2510, "cache_read": 35677, "cache_write": 14752}
    assert summary["tokens"] == tokens
    assert summary["median_duration_ms"] == 27609


def test_code_fix_has_the_published_figures(bring: Import) -> None:
    answer = bring(CODE_FIX)
    summary = answer["summary"]
    assert summary["resolved"] == {"ok": 1, "total": 1}
    assert summary["cost_usd"] == 0.27458265
    assert [summary["tokens"][name] for name in ("in", "cached", "out")] == [867, 1131748, 18750]
    assert [summary[name] for name in ("turns", "tool_calls", "tool_errors")] == [76, 85, 9]
    assert ["execution.log" in item["what"] for item in answer["unsupported"]] == [True]


def test_prediction_is_the_workspace_diff(bring: Import, layout: Layout) -> None:
    (run,) = bring(CODE_FIX)["runs"]
    prediction = json.loads((CODE_FIX / "predictions.jsonl").read_text())
    diff = layout.run(run).case(prediction["instance_id"]) / "workspace.diff"
    assert diff.read_text() == prediction["model_patch"]


def test_resolved_without_a_named_test_is_remarked(bring: Import, layout: Layout) -> None:
    (run,) = bring(CODE_FIX)["runs"]
    (case,) = project(layout.run(run)).cases
    assert case.ok
    assert "hidden tests" in case.remarks[0]["findings"][0]["why"]


def test_pr_review_has_the_figures_of_its_instances(bring: Import) -> None:
    summary = bring(PR_REVIEW)["summary"]
    assert [summary[name] for name in ("cases", "posted", "gold", "matched")] == [10, 25, 28, 10]
    micro = [round(summary[f"micro_{name}"], 4) for name in ("precision", "recall", "f1")]
    macro = [round(summary[f"macro_{name}"], 4) for name in ("precision", "recall", "f1")]
    assert micro == [0.4, 0.3571, 0.3774]
    assert macro == [0.3667, 0.3333, 0.3250]
    assert summary["cost_usd"] == 3.2395202
    assert [summary["tokens"][name] for name in ("in", "cached", "out")] == [414, 6440549, 100094]
    assert summary["median_duration_ms"] == 209055.5
    severities = {name: (entry["matched"], entry["gold"]) for name, entry in summary["recall_by_severity"].items()}
    assert severities == {"critical": (1, 2), "high": (1, 3), "medium": (4, 14), "low": (4, 9)}


def test_stored_judge_replies_reproduce_every_count(bring: Import) -> None:
    assert bring(PR_REVIEW)["summary"]["judge_replies"] == {"kept": 10, "fenced": 5, "reproduced": 10}


@pytest.mark.parametrize(
    ("extract", "match", "counts"),
    [
        ('{"findings": [1, 2]}', None, (2, 0)),
        ('```json\n{"findings": [1]}```', '{"matches": [{"finding": 0, "gold": 0}]}', (1, 1)),
        ('{"findings": [1, 2]}', '{"matches": [{"finding": 0, "gold": 0}, {"finding": 1, "gold": 0}]}', (2, 1)),
        ('{"findings": [1, 2]}', '{"matches": [{"finding": 0, "gold": 0}, {"finding": 0, "gold": 1}]}', (2, 1)),
        ('{"findings": [1]}', '{"matches": [{"finding": 1, "gold": 0}, {"finding": 0, "gold": 2}]}', (1, 0)),
        ('{"findings": [1]}', '{"matches": [{"finding": -1, "gold": 0}]}', None),
        ('{"findings": 3}', None, None),
        ("no findings", None, None),
        ('{"findings": [1]}', "none", None),
    ],
)
def test_a_match_counts_once_and_only_when_it_exists(extract: str, match: str | None, counts: tuple[int, int] | None) -> None:
    assert replayed(Trace(rawExtract=extract, rawMatch=match), 2) == counts


def test_the_sample_ranks_among_the_tools_of_the_leaderboard(bring: Import) -> None:
    reference = bring(PR_REVIEW)["summary"]["reference"]
    (arm,) = reference["arms"]
    assert (arm["rank"], arm["of"], arm["cases"], arm["interval"]) == (16, 23, 10, [7, 21])
    assert [entry["rank"] for entry in reference["ranking"]] == sorted(entry["rank"] for entry in reference["ranking"])


def test_results_without_a_leaderboard_are_not_ranked(bring: Import, tmp_path: Path) -> None:
    shutil.copytree(PR_REVIEW, tmp_path / "alone" / "results" / "pr-review" / "run")
    source = tmp_path / "alone" / "results" / "pr-review" / "run"
    assert "reference" not in bring(source)["summary"]
    named = bring(source, "ranked", leaderboard=str(DATA / "martian-leaderboard.json"))
    assert named["summary"]["reference"]["arms"][0]["rank"] == 16


def test_leaderboard_becomes_an_experiment_with_an_arm_for_each_tool(bring: Import, layout: Layout) -> None:
    answer = bring(DATA / "martian-leaderboard.json")
    summary = answer["summary"]
    assert (summary["cases"], summary["gold"], summary["tools"], len(answer["runs"])) == (50, 137, 22, 22)
    best = summary["best"]
    assert (best["tool"], best["tp"], best["fp"], best["fn"], round(best["f1"], 4)) == ("cubic-v2", 94, 73, 43, 0.6184)
    assert all(verify_run(layout.run(run))["sealed"] for run in answer["runs"])


def test_repeats_are_read_together(bring: Import) -> None:
    answer = bring(DATA / "band")
    (band,) = answer["summary"]["band"]
    assert [run.rsplit(".", 1)[1] for run in answer["runs"]] == ["1", "2", "3"]
    assert (answer["case_count"], band["gold"], band["recall"]) == (8, 25, [0.32, 0.08, 0.2])
    assert (band["mean"], band["spread"], band["union"], band["intersection"]) == (0.2, 0.24, 11, 1)
    assert band["union_at_k"] == pytest.approx([0.2, 1 / 3, 0.44])
    assert band["intersection_at_k"] == pytest.approx([0.2, 1 / 15, 0.04])
    first = band["mcnemar"][0]
    assert (first["from"], first["to"], first["gained"], first["lost"], round(first["p"], 4)) == (1, 2, 1, 7, 0.0703)


def test_zeros_of_a_card_that_measured_nothing_are_unknown(bring: Import, layout: Layout) -> None:
    answer = bring(DATA / "band")
    assert answer["summary"]["cost_usd"] is None
    assert answer["summary"]["median_duration_ms"] is None
    runner = read_object(next(layout.run(answer["runs"][0]).cases.iterdir()) / "runner.json")
    assert (runner["usage"], runner["duration_ms"]) == (None, None)


def test_imported_runs_are_sealed_and_linked_to_their_experiment(bring: Import, layout: Layout) -> None:
    for source, evidence in ((PR_REVIEW, "full"), (DATA / "band", "scores-only")):
        answer = bring(source)
        record = ExperimentRecord(layout.experiment(answer["experiment"]))
        links = [event["data"] for event in record.events() if event["type"] == "RUN_LINKED"]
        assert [link["run"] for link in links] == answer["runs"] == record.runs()
        assert {(link["relation"], link["evidence"]) for link in links} == {("import", evidence)}
        for run in answer["runs"]:
            checked = verify_run(layout.run(run))
            assert (checked["ok"], checked["sealed"], checked["first_damage"]) == (True, True, None)
            assert project(layout.run(run)).sealed


def test_importing_twice_is_a_conflict_and_leaves_the_first(bring: Import, layout: Layout) -> None:
    (run,) = bring(TRIAGE)["runs"]
    with pytest.raises(RunConflict):
        bring(TRIAGE)
    assert verify_run(layout.run(run))["ok"]
    assert bring(TRIAGE, "again")["runs"] != [run]
    assert not [path for path in layout.runs.iterdir() if path.name.startswith(".new-")]


def test_tampering_with_an_imported_answer_is_seen(bring: Import, layout: Layout) -> None:
    (run,) = bring(TRIAGE)["runs"]
    path = next(layout.run(run).cases.iterdir()) / "output.txt"
    path.write_text("another answer")
    assert verify_run(layout.run(run))["first_damage"]["path"].endswith("output.txt")
    assert [case.status for case in project(layout.run(run)).cases] == ["error"]


def card(place: Path, *results: dict[str, Any], **meta: Any) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / "scorecard.json").write_text(json.dumps({"results": list(results), "meta": {"runId": place.name, **meta}}))
    return place


def result(**more: Any) -> dict[str, Any]:
    return {"instance_id": "one", "model": "a/b", "workflowSucceeded": True, "behavioral": {"ok": True}, **more}


@pytest.mark.parametrize("path", ["../../secret.txt", "/etc/hostname", "link"])
def test_a_path_out_of_the_results_is_never_read(describe: Describe, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    place = card(tmp_path / "deep" / "run", result(modelPatchFile=path))
    (place / "link").symlink_to(tmp_path / "secret.txt")
    items = describe(place)
    (trial,) = [item for item in items if isinstance(item, ImportedTrial)]
    assert trial.diff == b""
    assert ["leads out" in item.why for item in items if isinstance(item, Unsupported)] == [True]


def test_a_failed_check_a_broken_harness_and_a_bad_workflow_keep_their_kinds(bring: Import, tmp_path: Path) -> None:
    failed = {"ok": False, "checks": [{"name": "label", "ok": False, "detail": "labels=[]"}]}
    place = card(
        tmp_path / "run",
        result(instance_id="fail", behavioral=failed),
        result(instance_id="broken", error="the sandbox died"),
        result(instance_id="ended-badly", workflowSucceeded=False),
        {"instance_id": "nothing", "model": "a/b"},
    )
    (run,) = bring(place)["runs"]
    report = project(Layout(tmp_path / "evals", tmp_path / "evals" / "runs").run(run))
    statuses = {case.id: (case.status, case.fault) for case in report.cases}
    assert statuses == {
        "fail": ("fail", None),
        "broken": ("error", "harness"),
        "ended-badly": ("fail", None),
        "nothing": ("unscored", None),
    }


def test_models_of_one_card_are_arms_and_cards_of_one_model_repeats(describe: Describe, tmp_path: Path) -> None:
    for name in ("2026-01-02_000000-b", "2026-01-01_000000-a"):
        card(tmp_path / "all" / name, result(), result(model="c d/e:1"))
    runs = [item for item in describe(tmp_path / "all") if isinstance(item, ImportedRun)]
    assert [(run.arm, run.repeat, run.source[:10]) for run in runs] == [
        ("a-b", 1, "2026-01-01"),
        ("c-d-e-1", 1, "2026-01-01"),
        ("a-b", 2, "2026-01-02"),
        ("c-d-e-1", 2, "2026-01-02"),
    ]
    assert runs[0].created == "2026-01-01T00:00:00Z"


def test_folded_trials_are_said_to_be_folded(describe: Describe, tmp_path: Path) -> None:
    items = describe(card(tmp_path / "run", result(sessions=[{"trial": 1}, {"trial": 2}])))
    assert [item.what for item in items if isinstance(item, Unsupported)] == ["one: 2 trials"]


@pytest.mark.parametrize(
    "document",
    [
        "{",
        "[]",
        '{"results": {}, "meta": {}}',
        '{"results": [{"instance_id": "../x", "model": "m"}], "meta": {}}',
        '{"results": [{"instance_id": "x", "model": "m", "costUsd": -1}], "meta": {}}',
        '{"results": [], "meta": {}}',
        '{"results": [{"instance_id": "x", "model": "m", "review": {"posted": 1, "gold": 1, "matched": 2}}], "meta": {}}',
        '{"results": [{"instance_id": "x", "model": "m"}, {"instance_id": "x", "model": "m"}], "meta": {}}',
    ],
)
def test_damaged_card_is_refused_with_a_hint(describe: Describe, tmp_path: Path, document: str) -> None:
    (tmp_path / "scorecard.json").write_text(document)
    with pytest.raises(UsageError) as caught:
        describe(tmp_path)
    assert caught.value.hint


def test_own_totals_of_a_card_are_not_believed(tmp_path: Path, bring: Import) -> None:
    document = json.loads((PR_REVIEW / "scorecard.json").read_text())
    document["models"][0]["p50DurationMs"] = 1
    document["results"] = document["results"][:4]
    place = tmp_path / "run"
    place.mkdir()
    (place / "scorecard.json").write_text(json.dumps(document))
    times = sorted(result.duration_ms or 0 for result in read_card(place / "scorecard.json").results)
    assert bring(place)["summary"]["median_duration_ms"] == (times[1] + times[2]) / 2
