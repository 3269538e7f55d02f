"""Records of runs: replay and verify of own and foreign ledgers, and foreign runs that are read like own ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Project
from tests.workflow.work_project import WorkProject, work_project
from tests.zygote import Zygote

from evalwright.errors import LedgerDamaged, SourceMissing
from evalwright.ledger import Ledger
from evalwright_plugins.workflow.commands.evidence import checked_events
from evalwright_plugins.workflow.commands.tally import tally

DATA = Path(__file__).parent.parent / "data" / "ledgers"
DEMO = DATA / "RUN-DEMO-01.events.jsonl"
FIRST = "sha256:fcb1a24156f7aa647d4d8056b18b751269bdc0620cd43008333168ef35933783"
LAST = "sha256:4cf28fc50b2dd4a154590589706b38d37652489f1afd960afdadb8a877e00415"
CREATED = {"base": "c0", "entry": "build", "workflowRef": "w"}


@pytest.fixture
def repository(tmp_path: Path, zygote: Zygote) -> WorkProject:
    """Return a repository without runs."""
    place = tmp_path / "repository"
    place.mkdir()
    return work_project(place, zygote)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> WorkProject:
    """Return a repository with a finished run."""
    made = work_project(tmp_path_factory.mktemp("finished"), zygote)
    made.driven(on_gate="approve")
    return made


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """Return the directory of a foreign run, with one piece of evidence as it was recorded."""
    place = tmp_path / "foreign"
    (place / "logs").mkdir(parents=True)
    shutil.copy(DEMO, place)
    (place / "logs" / "build-1.log").write_text("another text\n")
    return place


@pytest.mark.parametrize("path", sorted(DATA.glob("*.events.jsonl")), ids=lambda path: path.name.partition(".")[0])
def test_foreign_ledgers_are_whole_and_by_the_rules(path: Path) -> None:
    events, state = checked_events(path)

    assert (len(events), state.seq) == (path.read_bytes().count(b"\n"), path.read_bytes().count(b"\n"))


def test_verify_of_a_file_needs_no_repository(project: Project) -> None:
    answer = project.call("work", "verify", str(DEMO))

    assert answer.exit_code == 0
    expected = {
        "ok": True,
        "events": 82,
        "first_digest": FIRST,
        "last_digest": LAST,
        "run": "RUN-DEMO-01",
        "status": "SUCCEEDED",
    }
    assert answer.data.items() >= expected.items()
    assert answer.warning_codes == ["W_LEDGER_UNVOUCHED"]


@pytest.mark.parametrize(("name", "damage"), [("missing-newline-append", "not_json"), ("torn-tail", "torn_tail")])
def test_verify_names_the_place_of_the_damage(project: Project, name: str, damage: str) -> None:
    answer = project.call("work", "verify", str(DATA / f"{name}.CORRUPT.jsonl"))

    assert answer.exit_code == 1
    error = answer.envelope["errors"][0]
    assert (error["code"], error["line"], error["after_seq"], error["damage"]) == ("E_RUN_CORRUPT", 26, 25, damage)
    assert error["reason"]
    assert project.call("work", "replay", str(DATA / f"{name}.CORRUPT.jsonl")).error_codes == ["E_RUN_CORRUPT"]


def test_verify_refuses_a_whole_chain_that_breaks_the_rules(project: Project) -> None:
    path = project.path / "ledger.jsonl"
    with Ledger(path, run="R", work="W") as ledger:
        ledger.append("RUN_CREATED", CREATED)
        ledger.append("STEP_STARTED", {"step": "build", "attempt": 1})
        ledger.commit()

    error = project.call("work", "verify", "./ledger.jsonl").envelope["errors"][0]

    assert (error["line"], error["after_seq"], error["damage"]) == (2, 1, "not_allowed")
    assert "while the run is CREATED" in error["reason"]


@pytest.mark.parametrize(
    ("name", "figure", "count"),
    [
        ("cache-reused", "reuse_hits", 1),
        ("infra-exit75", "infrastructure_failures", 2),
        ("crash-recovery", "interruptions", 1),
        ("RUN-DEMO-01", "review_rounds", 2),
        ("RUN-DEMO-01", "human_waits", 4),
        ("RUN-DEMO-01", "steps", 8),
    ],
)
def test_figures_of_foreign_ledgers_are_counted(name: str, figure: str, count: int) -> None:
    events, _ = checked_events(DATA / f"{name}.events.jsonl")

    figures = tally(name, events)

    assert figures[figure] == count
    assert figures["tokens"] is None
    assert 0 <= figures["wall_seconds"] <= figures["elapsed_seconds"]


GARBLED: dict[str, list[tuple[str, Any]]] = {
    "a request without a kind": [("RUN_CREATED", CREATED), ("RUN_STARTED", {}), ("HUMAN_REQUESTED", {"transition": "t"})],
    "amounts that are texts": [("RUN_CREATED", CREATED | {"budgets": {"cost": "much"}}), ("RUN_STARTED", {})],
    "a finding that is none": [
        ("RUN_CREATED", CREATED),
        ("RUN_STARTED", {}),
        ("STEP_STARTED", {"step": "build", "attempt": 1}),
        ("EVIDENCE_RECORDED", {"kind": "review", "subject": "c", "findings": [{"severity": "\x1b[2J"}, 7]}),
    ],
}


@pytest.fixture(scope="module")
def garbled(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> WorkProject:
    """Return a repository with a run for each kind of nonsense, ``g0`` and on."""
    made = work_project(tmp_path_factory.mktemp("garbled"), zygote)
    for number, events in enumerate(GARBLED.values()):
        directory = made.run_files(f"g{number}")
        directory.mkdir(parents=True)
        with Ledger(directory / "ledger.jsonl", run="x", work="W") as ledger:
            for name, data in events:
                ledger.append(name, data)
            ledger.commit()
    return made


@pytest.mark.parametrize(
    "words", ["status", "metrics", "inbox", "doctor", "gc", "verify g0", "replay g1", "events g0", "metrics g2"]
)
def test_whole_chain_of_nonsense_is_no_defect(garbled: WorkProject, words: str) -> None:
    answer = garbled.work(*words.split(), "--format", "text")

    assert "internal error" not in answer.stderr
    assert answer.exit_code == (1 if words in ("verify g0", "metrics g2") else 0)
    assert "\x1b" not in answer.stdout + answer.stderr


def cut(ledger: Path) -> None:
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:-1]))


def edited(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes().replace(b'"exitCode":0', b'"exitCode":1', 1))


def swapped(ledger: Path) -> None:
    first, second, *rest = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join([second, first, *rest]))


@pytest.mark.parametrize("change", [cut, edited, swapped])
def test_verify_notices_every_change_of_an_own_ledger(
    finished: WorkProject, tmp_path: Path, change: Callable[[Path], None]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(finished.run_files("w-1"), copy)
    change(copy / "ledger.jsonl")

    with pytest.raises(LedgerDamaged) as caught:
        checked_events(copy / "ledger.jsonl")

    assert {"line", "after_seq", "damage", "reason", "file"} <= set(caught.value.details)


def test_verify_checks_the_evidence_of_an_own_run(finished: WorkProject) -> None:
    whole = finished.work("verify", "w-1")
    logs = finished.run_files("w-1") / "logs"
    kept = {path: path.read_bytes() for path in logs.iterdir()}
    (logs / "verify-1.log").write_text("forged\n")
    changed = finished.work("verify", "w-1")
    (logs / "verify-1.log").unlink()
    missing = finished.work("verify", "w-1")
    for path, content in kept.items():
        path.write_bytes(content)

    assert whole.data["evidence"] == {"intact": 2, "missing": [], "changed": []}
    assert (changed.exit_code, changed.envelope["errors"][0]["changed"]) == (1, ["logs/verify-1.log"])
    assert (missing.exit_code, missing.envelope["errors"][0]["missing"]) == (1, ["logs/verify-1.log"])
    assert finished.work("verify", "w-1").exit_code == 0


def test_link_in_the_place_of_evidence_is_not_followed(finished: WorkProject, tmp_path: Path) -> None:
    log = finished.run_files("w-1") / "logs" / "verify-1.log"
    same = tmp_path / "same"
    shutil.move(log, same)
    log.symlink_to(same)
    answer = finished.work("verify", "w-1")
    shutil.move(same, log)

    assert answer.envelope["errors"][0]["missing"] == ["logs/verify-1.log"]


def test_replay_gives_the_state_that_the_events_add_up_to(project: Project) -> None:
    state = project.call("work", "replay", str(DEMO)).data["state"]

    assert (state["status"], state["attempts"]) == ("SUCCEEDED", {"build": 1, "verify": 3, "fix": 2, "review": 2})
    assert (state["review_rounds"], state["decisions"]) == (2, 4)
    text = project.call("work", "replay", str(DATA / "stopAt.events.jsonl"), "--format", "text").stdout
    assert text.startswith("R1 · W · WAITING_HUMAN at review after 19 events\n")
    assert "waits (boundary): automation boundary: stopAt includes review" in text


@pytest.mark.parametrize("target", ["no-such", "./no-such.jsonl", ".", "../../etc"])
def test_what_is_not_there_is_an_error_that_says_what_is_needed(repository: WorkProject, target: str) -> None:
    answer = repository.work("verify", target)

    assert answer.exit_code == 1
    assert answer.error_codes[0] in ("E_RUN_NOT_FOUND", "E_IMPORT_SOURCE_MISSING")
    assert answer.envelope["errors"][0]["hint"]


def test_imported_run_is_read_like_an_own_one(repository: WorkProject, foreign: Path) -> None:
    before = {path: path.read_bytes() for path in foreign.rglob("*") if path.is_file()}

    answer = repository.work("import", str(foreign))

    assert (answer.exit_code, answer.data["created"], answer.data["run"]) == (0, True, "RUN-DEMO-01")
    assert answer.warning_codes == ["W_PATH_UNREADABLE", "W_ARTIFACT_TAMPERED"]
    assert {path: path.read_bytes() for path in foreign.rglob("*") if path.is_file()} == before
    assert (repository.run_files("RUN-DEMO-01") / "ledger.jsonl").read_bytes() == DEMO.read_bytes()
    assert repository.work("import", str(foreign)).data["created"] is False
    status = repository.work("status", "RUN-DEMO-01")
    assert (status.exit_code, status.data["foreign"], status.data["status"]) == (0, True, "SUCCEEDED")
    assert repository.work("events", "RUN-DEMO-01").stdout == DEMO.read_text()
    assert repository.work("metrics", "RUN-DEMO-01").data["total"]["findings"] == {"P0": 0, "P1": 1, "P2": 1, "P3": 0}
    assert repository.work("replay", "RUN-DEMO-01").data["state"]["seq"] == 82
    assert repository.work("verify", "RUN-DEMO-01").envelope["errors"][0]["changed"] == ["logs/build-1.log"]


def test_imported_run_without_its_evidence_verifies_and_says_so(repository: WorkProject, foreign: Path) -> None:
    (foreign / "logs" / "build-1.log").unlink()
    repository.work("import", str(foreign))

    answer = repository.work("verify", "RUN-DEMO-01")

    assert (answer.exit_code, answer.data["evidence"]["intact"]) == (0, 0)
    assert "logs/build-1.log" in answer.data["evidence"]["missing"]
    assert answer.data["head"] is True


def test_imported_run_is_never_driven(repository: WorkProject, tmp_path: Path) -> None:
    place = tmp_path / "waiting"
    place.mkdir()
    shutil.copy(DATA / "stopAt.events.jsonl", place / "events.jsonl")
    repository.work("import", str(place), "--run-id", "theirs")
    ledger = repository.run_files("theirs") / "ledger.jsonl"

    for words in (["resume"], ["approve"], ["reject"], ["stop"], ["adopt"]):
        answer = repository.work(*words, "theirs", *(["HEAD"] if words == ["adopt"] else []))
        assert (answer.exit_code, answer.error_codes) == (5, ["E_RUN_CONFLICT"]), words
        assert "imported" in answer.envelope["errors"][0]["message"]
    repository.driven("W", stop_at=["build"])
    assert ledger.read_bytes() == (DATA / "stopAt.events.jsonl").read_bytes()
    assert [row["run"] for row in repository.work("inbox").data["requests"]] == ["W-1"]
    assert repository.work("status", "theirs").exit_code == 10


@pytest.mark.parametrize("name", ["missing-newline-append", "torn-tail"])
def test_damaged_run_is_not_imported_and_not_repaired(repository: WorkProject, tmp_path: Path, name: str) -> None:
    place = tmp_path / "damaged"
    place.mkdir()
    shutil.copy(DATA / f"{name}.CORRUPT.jsonl", place / "events.jsonl")
    before = (place / "events.jsonl").read_bytes()

    answer = repository.work("import", str(place))

    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
    assert answer.envelope["errors"][0]["line"] == 26
    assert (place / "events.jsonl").read_bytes() == before
    assert [path.name for path in place.iterdir()] == ["events.jsonl"]
    assert not (repository.state / "runs").exists() or not list((repository.state / "runs").iterdir())


@pytest.mark.parametrize("run_id", ["../outside", "a/b", ".", "x.lock"])
def test_imported_run_gets_no_id_that_leads_elsewhere(repository: WorkProject, foreign: Path, run_id: str) -> None:
    answer = repository.work("import", str(foreign), "--run-id", run_id)

    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert {path.name for path in repository.path.iterdir()} == {".git", "calc.txt"}


def test_import_leaves_links_out_and_takes_no_id_twice(repository: WorkProject, foreign: Path) -> None:
    (foreign / "logs" / "fix-1.log").symlink_to("/etc/passwd")
    repository.waiting()

    taken = repository.work("import", str(foreign), "--run-id", "w-1")
    answer = repository.work("import", str(foreign))

    assert (taken.exit_code, taken.error_codes) == (5, ["E_RUN_CONFLICT"])
    assert any("fix-1.log" in record["message"] for record in answer.envelope["warnings"])
    assert [path.name for path in (repository.run_files("RUN-DEMO-01") / "logs").iterdir()] == ["build-1.log"]


def test_directory_with_no_ledger_or_with_two_is_refused(repository: WorkProject, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    none = repository.work("import", str(place))
    for name in ("a", "b"):
        shutil.copy(DEMO, place / f"{name}.events.jsonl")
    two = repository.work("import", str(place))

    assert [none.error_codes, two.error_codes] == [["E_IMPORT_SOURCE_MISSING"]] * 2
    assert "holds no ledger" in none.envelope["errors"][0]["message"]
    assert "has 2 ledgers" in two.envelope["errors"][0]["message"]


def test_ledger_that_cannot_be_read_is_no_defect(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="cannot be read"):
        checked_events(tmp_path)


def test_mark_of_an_imported_run_says_where_it_came_from(repository: WorkProject, foreign: Path) -> None:
    repository.work("import", str(foreign))

    mark = json.loads((repository.run_files("RUN-DEMO-01") / "foreign.json").read_bytes())

    assert mark["source"] == str(foreign / DEMO.name)
