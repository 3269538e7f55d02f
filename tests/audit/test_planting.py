"""What the leak test plants, and by which of the user's own files it knows gold."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.audit.canaries import CONTROLS, PLACES, new_codes, token
from evalwright.audit.planting import Planted, gold_digests
from evalwright.audit.text import leak_text
from evalwright.rundir import Layout
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

LONG = "long enough to be told from other files, " * 3


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_gold_files_count_unless_they_are_small_or_shown_to_the_agent(project: Project) -> None:
    files = {
        "hidden/a/test_it.py": f"hidden {LONG}",
        "hidden/a/helper.py": f"shared {LONG}",
        "hidden/a/small.py": "x = 1\n",
        "fixtures/w/helper.py": f"shared {LONG}",
        "gold/a.patch": f"patch {LONG}",
        "unused/notes.txt": f"notes {LONG}",
    }
    case = {"id": "a", "hidden": "hidden/a", "gold": "gold/a.patch", "expect": {"exact": LONG}}
    suite = project.suite(cases=[case], scorers=[{"use": "exact"}], files=files)

    known = gold_digests(load_suite(suite).suite)

    cases = (suite / "cases.jsonl").read_text()
    assert {d for digests in known.values() for d in digests} == {
        digest(cases),
        digest(f"hidden {LONG}"),
        digest(f"patch {LONG}"),
    }
    assert digest(cases) in known[str(len(cases))]


def known(project: Project, cases: list[dict[str, Any]], files: dict[str, str]) -> set[str]:
    """Return the digests by which gold of a suite is known, but for that of its cases."""
    suite = project.suite(
        runner={"argv": ["true"], "files": ["agent"]},
        cases=[{"expect": {"exact": LONG}} | case for case in cases],
        scorers=[{"use": "exact"}],
        files={"agent/run.sh": "true\n"} | files,
    )
    digests = {digest for digests in gold_digests(load_suite(suite).suite).values() for digest in digests}
    return digests - {digest((suite / "cases.jsonl").read_text())}


@pytest.mark.parametrize("copy", ["fixtures/w/notes/old.py", "fixtures/w/b.py", "agent/b.py"])
@pytest.mark.parametrize("gold", ["gold", "gold/a.patch", "hidden"])
def test_gold_that_was_copied_into_its_own_fixture_or_to_the_agent_counts(project: Project, gold: str, copy: str) -> None:
    kind = "hidden" if gold == "hidden" else "gold"

    assert known(project, [{"id": "a", kind: gold}], {f"{kind}/a.patch": LONG, copy: LONG}) == {digest(LONG)}


def test_what_gold_leaves_as_the_fixture_has_it_does_not_count(project: Project) -> None:
    files = {"gold/lib/a.py": LONG, "fixtures/w/lib/a.py": LONG, "gold/b.py": f"{LONG}b"}

    assert known(project, [{"id": "a", "gold": "gold"}], files) == {digest(f"{LONG}b")}


def test_what_one_case_ends_with_and_another_begins_with_does_not_count(project: Project) -> None:
    files = {"gold/a.py": LONG, "fixtures/later/a.py": LONG}
    cases = [{"id": "a", "gold": "gold"}, {"id": "b", "workspace": "fixtures/later"}]

    assert known(project, cases, files) == set()


def layout(project: Project) -> Layout:
    return Layout(project.path / "evals", project.path / "evals" / "runs")


def test_planted_suite_is_a_valid_one_without_the_user_s_gold(project: Project) -> None:
    files = {"hidden/a/test_it.py": LONG, "fixtures/other/b.txt": "b\n", "agent/run.sh": "true\n"}
    cases = [{"id": "a", "hidden": "hidden/a", "expect": {"exact": LONG}}, {"id": "b", "workspace": "fixtures/other"}]
    runner = {"argv": ["true"], "files": ["agent"], "env": {"WORD": "x"}}
    scorers = [{"use": "exact", "exact": "z"}]
    suite = load_suite(project.suite(cases=cases, scorers=scorers, files=files, runner=runner)).suite
    planted = Planted(project.path / "place", new_codes())

    places = planted.plant(suite, suite.cases[0], layout(project), seconds=5.0, since=0.0)

    checked = load_suite(planted.suite).suite
    assert [case.task for case in checked.cases] == ["finished", "graded", "spy"]
    assert (checked.agent.files, dict(checked.agent.env)) == (("agent",), {"WORD": "x"})
    held = {str(path.relative_to(planted.suite)) for path in planted.suite.rglob("*") if path.is_file()}
    assert held == {
        "suite.json",
        "cases.jsonl",
        "agent/run.sh",
        "fixtures/w/a.txt",
        "leak-test/hidden/canary.txt",
        "leak-test/gold/canary.txt",
    }
    assert LONG not in (planted.suite / "cases.jsonl").read_text()
    assert set(places) == set(PLACES) - {"history", "unknown"}


def test_no_record_of_the_test_holds_a_whole_canary(project: Project) -> None:
    suite = load_suite(project.suite(cases=[{"id": "a", "expect": {"exact": "x"}}], scorers=[{"use": "exact"}])).suite
    planted = Planted(project.path / "place", new_codes())
    planted.plant(suite, suite.cases[0], layout(project), seconds=5.0, since=0.0)

    records = (planted.suite / "suite.json").read_text() + (planted.root / "known.json").read_text()

    assert [place for place in planted.codes if token(planted.codes, place) in records] == []
    assert set(CONTROLS) < set(planted.codes)


def test_text_of_an_unfinished_search_never_says_clean() -> None:
    searched = {"files": 12345, "bytes": 2_000_000, "seconds": 1.0}
    result = {"sandbox": "s", "isolation": "i", "promised": True, "spy": "python3", "places": ["expect"], "hits": []}
    result["left_out"] = []

    text = leak_text(result | {"searched": searched, "complete": False})

    assert "clean" not in text
    assert "searched 12,345 files, read 2.0 MB in 1.0 s" in text
    assert "--seconds" in text
    assert leak_text(result | {"searched": searched, "complete": True}).startswith("leak: clean.")
    closed = leak_text(result | {"searched": searched, "complete": False, "left_out": [{"path": "/opt/closed", "why": "why"}]})
    assert "not searched: /opt/closed: why" in closed
    assert "clean" not in closed
