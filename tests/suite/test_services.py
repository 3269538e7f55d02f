"""Services of a suite and seeds of its cases: every problem is named before anything runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.faults.suite_records import case, records_of

from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

SERVICE = """
from pydantic import BaseModel
from evalwright.interfaces import Service

class Seed(BaseModel):
    open: int

class Desk(Service):
    api = "service/1.0"
    Seed = Seed

    def open(self, seed, deadline):
        raise NotImplementedError
"""
DESK = {"desk": "desk.py:Desk"}


SEEDS = {"desk": "seeds/one.json"}


def suite(project: Project, services: Any = DESK, *, seed: str | None = '{"open": 1}', seeds: Any = SEEDS) -> Path:
    files = {"desk.py": SERVICE} | ({} if seed is None else {"seeds/one.json": seed})
    return project.suite(cases=[case() | {"services": seeds}], services=services, files=files)


def test_services_and_seeds_are_part_of_a_checked_suite(project: Project) -> None:
    checked = load_suite(suite(project)).suite
    assert checked.services["desk"].use == "desk.py:Desk"
    assert checked.cases[0].services == {"desk": "seeds/one.json"}


@pytest.mark.parametrize(
    ("services", "said"),
    [
        ({"desk": 7}, "services.desk"),
        ({"desk": {}}, "must be the name of a service"),
        ({"desk": "nosuch"}, "nosuch"),
        ({"desk": {"use": "desk.py:Desk", "colour": "red"}}, "colour"),
        ({"a b": "desk.py:Desk"}, "services"),
        ({"../x": "desk.py:Desk"}, "services"),
        ({"a-b": "desk.py:Desk", "A_b": "desk.py:Desk"}, "could not tell them apart"),
        ({f"s{number}": "desk.py:Desk" for number in range(21)}, "services"),
        (["desk"], "services"),
    ],
)
def test_wrong_table_of_services_is_refused(project: Project, services: Any, said: str) -> None:
    records = records_of(suite(project, services, seeds={}))
    assert any(said in record["message"] for record in records)


@pytest.mark.parametrize(
    ("seed", "said"),
    [
        (None, "does not exist"),
        ("{", "is no JSON"),
        ('{"open": 1, "open": 2}', "stands twice"),
        ('{"open": NaN}', "is no JSON"),
        ('{"open": "x"}', "seeds/one.json.open"),
        ("[]", "must be an object"),
    ],
)
def test_seed_that_cannot_be_read_is_refused_with_its_line(project: Project, seed: str | None, said: str) -> None:
    (record,) = records_of(suite(project, seed=seed))
    assert said in record["message"]
    assert (record["key"], record["line"]) == ("services.desk", 1)


@pytest.mark.parametrize("path", ["../x.json", "/etc/passwd", "seeds", ""])
def test_seed_that_is_no_file_of_the_suite_is_refused(project: Project, path: str) -> None:
    assert any("services" in record["message"] for record in records_of(suite(project, seeds={"desk": path})))


def test_seed_of_an_unknown_service_names_the_nearest_one(project: Project) -> None:
    (record,) = records_of(suite(project, seeds={"dsk": "seeds/one.json"}))
    assert "no service" in record["message"]
    assert record["hint"] == "did you mean desk?"


def test_all_problems_of_seeds_and_services_are_listed_at_once(project: Project) -> None:
    directory = suite(project, {"desk": "desk.py:Desk", "other": "nosuch"}, seed="{", seeds={**SEEDS, "x": "y"})
    assert len(records_of(directory)) == 3


def test_seed_that_the_agent_would_see_is_refused(project: Project) -> None:
    directory = suite(project, seeds={"desk": "fixtures/w/seed.json"})
    (directory / "fixtures" / "w" / "seed.json").write_text('{"open": 1}')
    (record,) = records_of(directory)
    assert "lie inside one another" in record["message"]


@pytest.mark.parametrize(
    ("assertions", "said"),
    [
        ({"dsk": {"calls": [{"method": "GET"}]}}, 'http-calls: the suite has no service "dsk"'),
        ({"desk": {"labels_add": ["x"]}}, "labels_add"),
        ({"desk": 7}, "expect.http_calls.desk"),
        ([], "expect.http_calls"),
    ],
)
def test_wrong_assertion_on_a_service_is_refused_before_anything_runs(project: Project, assertions: Any, said: str) -> None:
    record = case(expect={"http_calls": assertions})
    files = {"desk.py": SERVICE}
    directory = project.suite(cases=[record], services=DESK, files=files, scorers=[{"use": "http-calls"}])
    assert any(said in record["message"] for record in records_of(directory))
