"""Pictures: valid XML whatever stands in them, the same bytes each time, told aloud, nothing drawn of what is unknown."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest
from tests.report.views import MIXED, ODD, view

from evalwright.report import ExperimentView
from evalwright.report.figures.difference import Difference
from evalwright.report.figures.grid import case_rows
from evalwright.report.forms.pictures import Point, cost_picture, differences_picture, heat_picture, pictures, rates_picture
from evalwright.report.forms.svg import Box, element, label, number, rectangle

SVG = "{http://www.w3.org/2000/svg}"
COMPARED = (
    Difference("large against small", 0.55, -0.02, 0.91, "no-evidence", "No evidence that large and small differ: +0.55."),
)


@pytest.mark.parametrize("name", ["rates", "cases", "cost", "differences"])
def test_picture_is_the_golden_one(golden: Callable[[str, str], None], name: str) -> None:
    golden(f"experiment.{name}.svg", pictures(MIXED, COMPARED)[f"{name}.svg"])


def test_every_picture_parses_has_a_size_and_is_told_aloud() -> None:
    drawn = pictures(MIXED, COMPARED)
    assert list(drawn) == ["rates.svg", "cases.svg", "cost.svg", "differences.svg"]
    for text in drawn.values():
        root = ET.fromstring(text)
        title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert (root.get("role"), bool(root.get("aria-label"))) == ("img", True)
        assert title is not None
        assert description is not None
        assert title.text
        assert description.text
        assert float(root.get("width", "0")) > 100
        assert "prefers-color-scheme:dark" in text
        assert not {element.tag for element in root.iter()} & {f"{SVG}script", f"{SVG}foreignObject", f"{SVG}image"}


def test_pictures_are_the_same_bytes_each_time() -> None:
    assert pictures(MIXED, COMPARED) == pictures(MIXED, COMPARED)


def test_hostile_names_stay_text() -> None:
    points = [Point(ODD, 0.5, 0.1, 0.9, 1.0), Point("x" * 10_000, 0.5, None, None, 2.0)]
    found = view({"odd": ["p"]}, cases=[ODD])
    for text in (
        rates_picture(points),
        cost_picture(points),
        differences_picture([Difference(ODD, 0.1, 0.0, 0.2, ODD, ODD)]),
        heat_picture(case_rows(found), found.arms),
    ):
        root = ET.fromstring(text.encode("utf-8"))
        assert not list(root.iter(f"{SVG}script"))
        assert "<script" not in text
        assert len(text) < 10_000


def test_cost_is_drawn_only_where_two_arms_know_it() -> None:
    arms = {"a": ["pp", "pf"], "b": ["pf", "ff"]}
    cases = ["x", "y"]
    assert "cost.svg" in pictures(view(arms, cases=cases, cost={"a": 1.0, "b": 2.0}))
    assert "cost.svg" not in pictures(view(arms, cases=cases, cost={"a": 1.0}))
    assert "cost.svg" not in pictures(view(arms, cases=cases))
    assert cost_picture([]) == cost_picture([Point("a", 1.0, None, None, 0.0)] * 2) == ""


@pytest.mark.parametrize(
    "found", [view({"only": ["hhu"]}), view({"only": ["   "]}), view({}, runs=[])], ids=["no rate", "none", "no run"]
)
def test_rates_are_drawn_only_where_something_was_scored(found: ExperimentView) -> None:
    assert "rates.svg" not in pictures(found)


def test_heat_map_has_a_cell_a_place_and_a_missing_one_looks_missing() -> None:
    root = ET.fromstring(heat_picture(case_rows(MIXED), MIXED.arms))
    told = [title.text or "" for cell in root.iter(f"{SVG}rect") for title in cell.iter(f"{SVG}title")]
    assert len(told) == 12
    assert "c, large, repeat 2: no result" in told
    kinds = [cell.get("class") for cell in root.iter(f"{SVG}rect")][:12]
    assert {kind: kinds.count(kind) for kind in ("pass", "fail", "error", "none")} == {
        "pass": 4,
        "fail": 4,
        "error": 2,
        "none": 2,
    }


def test_many_cases_get_a_small_picture() -> None:
    cases = [f"case-{number}" for number in range(1000)]
    found = view({"a": ["p" * 1000] * 10}, cases=cases)
    text = heat_picture(case_rows(found), found.arms)
    assert len(list(ET.fromstring(text).iter(f"{SVG}rect"))) == 1000
    assert len(text) < 200_000


def test_differences_lie_left_and_right_of_none() -> None:
    drawn = ET.fromstring(
        differences_picture(
            [
                Difference("a", 0.5, 0.25, 0.5, "better", "a is better"),
                Difference("b", -0.5, -0.5, -0.25, "worse", "b is worse"),
                Difference("c", None, None, None, "no-evidence", "c is unknown"),
            ]
        )
    )
    spans = [(cell.get("class"), float(cell.get("x", ""))) for cell in drawn.iter(f"{SVG}rect")]
    centre = next(float(line.get("x1", "")) for line in list(drawn.iter(f"{SVG}line"))[1:2])
    assert [kind for kind, _ in spans] == ["better", "better", "worse", "worse"]
    assert all((x >= centre) == (kind == "better") for kind, x in spans)


def test_values_outside_the_scale_stay_inside_the_picture() -> None:
    root = ET.fromstring(rates_picture([Point("a", 1.7, -0.3, 2.0)]))
    for cell in root.iter(f"{SVG}rect"):
        assert 0 <= float(cell.get("x", "")) <= float(root.get("width", ""))


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (-0.001, "0"), (1.0, "1"), (1.005, "1"), (12.3456, "12.35"), (100.0, "100"), (1 / 3, "0.33")]
)
def test_numbers_are_short_and_stable(value: float, text: str) -> None:
    assert number(value) == text


def test_primitives_escape_what_they_are_given() -> None:
    assert element("a", title='"<&>') == '<a title="&quot;&lt;&amp;&gt;"/>'
    assert label(1, 2, "<b>", kind="strong") == '<text x="1" y="2" text-anchor="start" class="strong">&lt;b&gt;</text>'
    assert "<title>&lt;/title&gt;</title>" in rectangle(Box(0, 0, math.pi, 1), "pass", title="</title>")
