"""A run changed after it was sealed: the report says so, and never shows another verdict in silence."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalwright.canonical import digest_bytes, digest_json
from evalwright.errors import RunCorrupt
from evalwright.ledger import Ledger, read_events
from evalwright.report import project, verify_run
from evalwright.rundir import RunDirectory

BEFORE = {"a": "pass", "b": "pass", "c": "fail"}
Change = Callable[[RunDirectory], object]


def statuses(run: RunDirectory) -> dict[str, str]:
    return {case.id: case.status for case in project(run).cases}


def codes(run: RunDirectory) -> list[str]:
    return [warning["code"] for warning in project(run).warnings]


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Let ``change`` change the object that a JSON document holds, and write it back."""
    document = json.loads(path.read_bytes())
    change(document)
    path.write_text(json.dumps(document))


def resealed(run: RunDirectory, name: str) -> None:
    """Let the manifest name an artifact's new digest, as a careful forger would."""
    digest = digest_bytes((run.cases / "c" / name).read_bytes())
    edit(run.manifest, lambda manifest: next(e for e in manifest["cases"] if e["id"] == "c")["digests"].update({name: digest}))


def passing(document: Any) -> Any:
    document["status"], document["ok"] = "pass", True
    for score in document["scores"]:
        score.update(ok=True, score=1.0, label="pass", findings=[])


def of_case(name: str) -> Callable[[RunDirectory], Path]:
    return lambda run: run.cases / "c" / name


def test_untouched_run_is_sealed_and_whole(run: RunDirectory) -> None:
    report = project(run)
    assert (statuses(run), report.sealed, report.warnings) == (BEFORE, True, [])
    assert verify_run(run)["ok"] is True


CASE_CHANGES: dict[str, Change] = {
    "answer": lambda run: (run.cases / "c" / "output.txt").write_text("ok"),
    "verdict": lambda run: edit(run.cases / "c" / "score.json", passing),
    "verdict and answer": lambda run: (
        edit(run.cases / "c" / "score.json", passing),
        (run.cases / "c" / "output.txt").write_text("ok"),
    ),
    "expectation": lambda run: edit(run.cases / "c" / "input.json", lambda case: case["expect"].update(exact="no")),
    "stored score": lambda run: edit(run.cases / "c" / "scorers" / "judge.json", lambda score: score.update(score=0.5)),
    "workspace": lambda run: edit(run.cases / "c" / "workspace-after.json", lambda tree: tree["entries"].clear()),
    "removed answer": lambda run: (run.cases / "c" / "output.txt").unlink(),
    "removed verdict": lambda run: (run.cases / "c" / "score.json").unlink(),
    "answer as a link": lambda run: (
        (run.cases / "c" / "output.txt").unlink(),
        (run.cases / "c" / "output.txt").symlink_to("../a/output.txt"),
    ),
    "answer as a directory": lambda run: (
        (run.cases / "c" / "output.txt").unlink(),
        (run.cases / "c" / "output.txt").mkdir(),
    ),
    "broken verdict": lambda run: (run.cases / "c" / "score.json").write_text("{"),
    "empty verdict": lambda run: (run.cases / "c" / "score.json").write_text("{}"),
}


@pytest.mark.parametrize("change", CASE_CHANGES.values(), ids=CASE_CHANGES.keys())
def test_changed_artifact_makes_its_case_an_error_with_a_warning(run: RunDirectory, change: Change) -> None:
    change(run)
    assert statuses(run) == BEFORE | {"c": "error"}
    assert "W_ARTIFACT_TAMPERED" in codes(run)
    damage = verify_run(run)
    assert damage["ok"] is False
    assert damage["first_damage"]["path"].startswith("cases/c/")


@pytest.mark.parametrize("name", ["score.json", "output.txt", "input.json"])
def test_changed_artifact_with_its_digest_in_the_manifest_is_found_by_the_ledger(run: RunDirectory, name: str) -> None:
    CASE_CHANGES[{"score.json": "verdict", "output.txt": "answer", "input.json": "expectation"}[name]](run)
    resealed(run, name)
    assert statuses(run)["c"] == "error"
    assert "W_ARTIFACT_TAMPERED" in codes(run)
    assert verify_run(run)["ok"] is False


MANIFEST_CHANGES: dict[str, Callable[[Any], Any]] = {
    "verdict": lambda manifest: manifest["cases"][2].update(status="pass"),
    "case left out": lambda manifest: manifest["cases"].pop(),
    "case twice": lambda manifest: manifest["cases"].append(manifest["cases"][0]),
    "case renamed": lambda manifest: manifest["cases"][2].update(id="a"),
    "digests left out": lambda manifest: manifest["cases"][2].pop("digests"),
    "suite": lambda manifest: manifest["suite"].update(name="other"),
    "run id": lambda manifest: manifest.update(run_id="other"),
}


@pytest.mark.parametrize("change", MANIFEST_CHANGES.values(), ids=MANIFEST_CHANGES.keys())
def test_changed_manifest_vouches_for_nothing(run: RunDirectory, change: Callable[[Any], Any]) -> None:
    edit(run.manifest, change)
    assert verify_run_says_damaged(run)
    try:
        report = project(run)
    except RunCorrupt:
        return
    assert report.sealed is False
    assert not report.ok
    assert all(case.status == "error" for case in report.cases)
    assert "W_ARTIFACT_TAMPERED" in codes(run)


@pytest.mark.parametrize("name", ["../../x", "../a", "/etc", "", ".", "a/../c", "a\0b"])
def test_manifest_case_id_that_is_a_path_is_corrupt(run: RunDirectory, name: str) -> None:
    edit(run.manifest, lambda manifest: manifest["cases"][2].update(id=name))
    with pytest.raises(RunCorrupt):
        project(run)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "7", "{}", '{"cases": 7}', '{"cases": [7]}', '{"cases": {"id": "a"}}', "\xff"]
)
def test_manifest_that_is_no_manifest_is_corrupt(run: RunDirectory, text: str) -> None:
    run.manifest.write_bytes(text.encode("latin-1"))
    with pytest.raises(RunCorrupt):
        project(run)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7"])
def test_run_record_that_is_no_record_is_corrupt(run: RunDirectory, text: str) -> None:
    run.run_json.write_text(text)
    with pytest.raises(RunCorrupt):
        project(run)
    with pytest.raises(RunCorrupt):
        verify_run(run)


def exit_code_instead(document: Any) -> Any:
    document["scorers"] = [{"use": "exit-code", "exit_code": 0}]


SNAPSHOT_CHANGES: dict[str, Change] = {
    "other scorers": lambda run: edit(run.snapshot / "suite.json", exit_code_instead),
    "other description": lambda run: edit(run.snapshot / "suite.json", lambda document: document.update(meta={"x": 1})),
    "broken": lambda run: (run.snapshot / "suite.json").write_text("{"),
    "removed": lambda run: (run.snapshot / "suite.json").unlink(),
}


@pytest.mark.parametrize("change", SNAPSHOT_CHANGES.values(), ids=SNAPSHOT_CHANGES.keys())
def test_changed_suite_snapshot_never_makes_a_failure_pass(run: RunDirectory, change: Change) -> None:
    change(run)
    assert "W_ARTIFACT_TAMPERED" in codes(run)
    assert statuses(run)["c"] in {"fail", "error"}
    assert not project(run).ok


@pytest.mark.parametrize("change", SNAPSHOT_CHANGES.values(), ids=SNAPSHOT_CHANGES.keys())
def test_changed_suite_snapshot_is_damage_to_verify(run: RunDirectory, change: Change) -> None:
    change(run)
    assert verify_run_says_damaged(run)


@pytest.mark.parametrize("file", ["cases.jsonl", "fresh.txt"])
def test_other_changes_of_the_snapshot_never_change_a_verdict(run: RunDirectory, file: str) -> None:
    (run.snapshot / file).write_text("changed")
    assert statuses(run) == BEFORE


def test_changed_run_record_is_damage_to_verify(run: RunDirectory) -> None:
    edit(run.run_json, lambda record: record["suite_identity"].update(suite_hash="sha256:other"))
    assert verify_run_says_damaged(run)


def test_ledger_of_an_older_version_that_names_every_case_vouches_for_the_record(run: RunDirectory) -> None:
    events = read_events(run.ledger)
    identity = json.loads(run.run_json.read_bytes())["suite_identity"]
    run.ledger.unlink()
    run.ledger.with_name("ledger.head.json").unlink()
    with Ledger(run.ledger, run=run.path.name) as ledger:
        for event in events:
            started = event["type"] == "RUN_STARTED"
            ledger.append(event["type"], event["data"] | ({"identity": identity} if started else {}))
        ledger.commit()
    assert verify_run(run)["ok"] is True

    edit(run.run_json, lambda record: record["suite_identity"]["cases"].pop())

    assert verify_run(run)["first_damage"]["code"] == "wrong_identity"


def test_streamed_report_hash_is_that_of_the_whole_report(run: RunDirectory) -> None:
    report = project(run)
    assert report.report_hash == digest_json(report.normalized)


def test_manifest_in_another_order_gives_the_same_report(run: RunDirectory) -> None:
    disowned(run)
    report = project(run)
    edit(run.manifest, lambda manifest: manifest["cases"].reverse())
    again = project(run)
    assert (again.report_hash, again.content_hash, again.cases) == (report.report_hash, report.content_hash, report.cases)


def ledger_lines(run: RunDirectory) -> list[bytes]:
    return run.ledger.read_bytes().splitlines(keepends=True)


LEDGER_CHANGES: dict[str, Change] = {
    "edited": lambda run: (
        run.ledger.write_bytes(run.ledger.read_bytes().replace(b'"status":"fail"', b'"status":"pass"')) and None
    ),
    "tail cut": lambda run: run.ledger.write_bytes(b"".join(ledger_lines(run)[:-1])),
    "middle cut": lambda run: run.ledger.write_bytes(b"".join(ledger_lines(run)[:2] + ledger_lines(run)[3:])),
    "emptied": lambda run: run.ledger.write_bytes(b""),
    "garbage": lambda run: run.ledger.write_bytes(b"\xff\x00garbage\n"),
    "doubled": lambda run: run.ledger.write_bytes(run.ledger.read_bytes() * 2),
}


@pytest.mark.parametrize("change", LEDGER_CHANGES.values(), ids=LEDGER_CHANGES.keys())
def test_changed_ledger_vouches_for_nothing(run: RunDirectory, change: Change) -> None:
    change(run)
    report = project(run)
    assert (report.sealed, report.ok) == (False, False)
    assert "W_ARTIFACT_TAMPERED" in codes(run)
    damage = verify_run(run)
    assert (damage["ok"], damage["first_damage"]["path"]) == (False, "ledger.jsonl")


@pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.head.json"])
def test_run_of_ours_without_its_ledger_or_head_is_corrupt_to_verify(run: RunDirectory, name: str) -> None:
    (run.path / name).unlink()
    with pytest.raises(RunCorrupt):
        verify_run(run)


def test_run_of_ours_without_its_ledger_is_never_reported_as_passed(run: RunDirectory) -> None:
    run.ledger.unlink()
    assert set(statuses(run).values()) == {"error"}
    assert "W_ARTIFACT_TAMPERED" in codes(run)


def test_run_of_ours_without_digests_is_corrupt_to_verify(run: RunDirectory) -> None:
    edit(run.manifest, lambda manifest: [entry.pop("digests") for entry in manifest["cases"]] and None)
    assert verify_run_says_damaged(run)


def disowned(run: RunDirectory) -> None:
    """Make the run look as if another tool had written it."""
    edit(run.run_json, lambda record: record.pop("format") and None)


def test_run_that_is_disowned_is_unsealed_and_its_digests_still_count(run: RunDirectory) -> None:
    disowned(run)
    assert statuses(run) == BEFORE
    assert codes(run) == ["W_UNSEALED"]
    CASE_CHANGES["answer"](run)
    assert "W_ARTIFACT_TAMPERED" in codes(run)


FOREIGN_CHANGES: dict[str, Change] = {
    "score without fields": lambda run: (run.cases / "c" / "scorers" / "judge.json").write_text("{}"),
    "score that is a list": lambda run: (run.cases / "c" / "scorers" / "judge.json").write_text("[]"),
    "input without task": lambda run: (run.cases / "c" / "input.json").write_text('{"id": "c"}'),
    "input that is a list": lambda run: (run.cases / "c" / "input.json").write_text("[]"),
    "runner that is null": lambda run: (run.cases / "c" / "runner.json").write_text("null"),
    "tree without entries": lambda run: (run.cases / "c" / "workspace-after.json").write_text("{}"),
    "suite that is a list": lambda run: (run.snapshot / "suite.json").write_text("[]"),
    "suite of unknown scorers": lambda run: edit(
        run.snapshot / "suite.json", lambda document: document.update(scorers=[{"use": "nosuch"}])
    ),
    "no case directory": lambda run: (run.cases / "c").rename(run.cases / "elsewhere"),
}


@pytest.mark.parametrize("change", FOREIGN_CHANGES.values(), ids=FOREIGN_CHANGES.keys())
def test_foreign_run_that_lacks_what_a_run_holds_is_corrupt_and_no_defect(run: RunDirectory, change: Change) -> None:
    disowned(run)
    edit(run.manifest, lambda manifest: [entry.pop("digests") for entry in manifest["cases"]] and None)
    change(run)
    with pytest.raises(RunCorrupt):
        project(run)


def test_case_overwritten_by_another_is_found(run: RunDirectory) -> None:
    for path in (run.cases / "a").iterdir():
        if path.is_file():
            (run.cases / "c" / path.name).write_bytes(path.read_bytes())
    assert statuses(run)["c"] == "error"
    assert verify_run(run)["ok"] is False


def test_hashes_tell_verdicts_and_contents_apart(run: RunDirectory) -> None:
    report = project(run)
    assert report.report_hash == digest_json(report.normalized)
    assert report.content_hash != report.report_hash
    disowned(run)
    edit(run.manifest, lambda manifest: [entry.pop("digests") for entry in manifest["cases"]] and None)
    again = project(run)
    assert (again.report_hash, again.content_hash) == (report.report_hash, report.content_hash)
    (run.cases / "c" / "output.txt").write_text("another wrong answer")
    other = project(run)
    assert other.report_hash == report.report_hash
    assert other.content_hash != report.content_hash


def verify_run_says_damaged(run: RunDirectory) -> bool:
    try:
        return verify_run(run)["ok"] is False
    except RunCorrupt:
        return True
