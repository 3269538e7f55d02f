"""json-schema and numeric-threshold."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError
from tests.conftest import shortened

from evalwright.errors import TrialError
from evalwright.model import Score
from evalwright_scorers.json_schema import JsonSchema
from evalwright_scorers.numeric import NumericThreshold

Judge = Callable[..., Score]


def schema(judge: Judge, document: Any, output: str) -> Score:
    return judge(JsonSchema, {"json_schema": document}, output=output)


def threshold(judge: Judge, table: dict[str, Any], output: str) -> Score:
    return judge(NumericThreshold, {"numeric_threshold": table}, output=output)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("", "Expecting value"),
        ("hello", "Expecting value"),
        ('{"a": 1} tail', "Extra data"),
        ("{'a': 1}", "Expecting property name enclosed in double quotes"),
        ('{"x": NaN}', "NaN is not a JSON number"),
        ("[-Infinity]", "-Infinity is not a JSON number"),
        ("1e999", "number out of range"),
    ],
)
def test_output_that_is_not_json_fails_with_the_reason_of_the_parser(judge: Judge, output: str, message: str) -> None:
    score = schema(judge, {}, output)

    assert score.findings == ({"why": f"output is not JSON: {message}"},)


@pytest.mark.parametrize("output", ["[" * 200_000, "[" * 200_000 + "]" * 200_000, "9" * 5000])
def test_output_built_to_break_the_parser_is_a_fail(judge: Judge, output: str) -> None:
    score = schema(judge, {}, output)

    assert not score.ok
    assert not score.error
    assert score.findings[0]["why"].startswith("output is not JSON: ")


def test_the_schema_is_enforced(judge: Judge) -> None:
    document = {"type": "array", "required": ["zzz"]}

    assert not schema(judge, document, '{"a": 1}').ok
    assert schema(judge, {"type": "object"}, '{"a": 1, "a": 2}').ok


def test_findings_point_into_the_output(judge: Judge) -> None:
    document = {"properties": {"a/b": {"items": {"type": "integer"}}}}

    score = schema(judge, document, '{"a/b": [1, "x"]}')

    assert score.findings == ({"why": "'x' is not of type 'integer'", "path": "/a~1b/1"},)


def test_the_best_reasons_come_first_and_their_number_is_bounded(judge: Judge) -> None:
    document = {"required": ["name"], "properties": {"list": {"items": {"type": "string"}}}}

    score = schema(judge, document, json.dumps({"list": list(range(100))}))

    assert len(score.findings) == 20
    assert score.findings[0] == {"why": "'name' is a required property", "path": ""}


def test_a_long_value_does_not_make_a_long_finding(judge: Judge) -> None:
    score = schema(judge, {"type": "integer"}, json.dumps("x" * 100_000))

    assert len(score.findings[0]["why"]) <= 500


def test_a_false_schema_accepts_nothing_and_a_true_one_everything(judge: Judge) -> None:
    assert not schema(judge, False, "1").ok
    assert schema(judge, True, "1").ok


def test_an_older_draft_is_honoured(judge: Judge) -> None:
    document = {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True}

    assert not schema(judge, document, "3").ok


@pytest.mark.parametrize(
    "document",
    shortened(
        [
            {"pattern": r"^(a|a)*$"},
            {"patternProperties": {r"^(a|a)*$": {}}},
            {"patternProperties": {r"^(a|a)*$": {}}, "additionalProperties": False},
        ],
        [{"pattern": r"^(a|a)*$"}],
    ),
)
def test_patterns_inside_a_schema_are_time_boxed(judge: Judge, document: dict[str, Any]) -> None:
    text = "a" * 40 + "!"
    output = json.dumps(text if "pattern" in document else {text: 1})

    with pytest.raises(TrialError, match="took longer"):
        schema(judge, document, output)


def test_additional_properties_are_those_that_neither_name_nor_pattern_covers(judge: Judge) -> None:
    document: dict[str, Any] = {
        "properties": {"a": True},
        "patternProperties": {"^x_": {"type": "string"}},
        "additionalProperties": False,
    }

    assert schema(judge, document, '{"a": 1, "x_b": "s"}').ok
    assert not schema(judge, document, '{"a": 1, "x_b": 2}').ok
    assert "'c' was unexpected" in schema(judge, document, '{"a": 1, "c": 2}').findings[0]["why"]


def test_a_reference_is_never_fetched(judge: Judge) -> None:
    with pytest.raises(TrialError) as caught:
        schema(judge, {"$ref": "http://127.0.0.1:9/schema.json"}, "1")

    assert caught.value.kind == "schema_reference"


def test_references_inside_the_schema_and_to_the_metaschema_work(judge: Judge) -> None:
    assert not schema(judge, {"$defs": {"n": {"type": "number"}}, "$ref": "#/$defs/n"}, '"x"').ok
    assert schema(judge, {"$ref": "https://json-schema.org/draft/2020-12/schema"}, "{}").ok


def test_a_recursive_schema_meets_a_deep_output_without_an_error(judge: Judge) -> None:
    score = schema(judge, {"items": {"$ref": "#"}}, "[" * 400 + "]" * 400)

    assert not score.error


@pytest.mark.parametrize("document", [{"type": "nonsense"}, {"pattern": "("}, {"required": "a"}, "text", 3])
def test_what_is_no_schema_is_refused(document: Any) -> None:
    with pytest.raises(ValidationError):
        JsonSchema.Expect["json_schema"].model_validate(document)


@pytest.mark.parametrize(
    ("table", "output", "ok"),
    [
        ({"path": "x", "gte": 0, "lte": 3}, '{"x": 5}', False),
        ({"path": "x", "gte": 0, "lte": 3}, '{"x": 3}', True),
        ({"path": "x", "gt": 3}, '{"x": 3}', False),
        ({"path": "x", "lt": 3}, '{"x": 3}', False),
        ({"path": "x", "lt": 3}, '{"x": 2.999}', True),
        ({"path": "x", "eq": 1, "tolerance": 0.1}, '{"x": 1.1}', True),
        ({"path": "x", "eq": 1, "tolerance": 0.1}, '{"x": 1.11}', False),
        ({"path": "x", "eq": 0}, '{"x": 0.0}', True),
        ({"path": "a.1.b", "eq": 2}, '{"a": [0, {"b": 2}]}', True),
        ({"path": "a.2", "eq": 2}, '{"a": [0, 1]}', False),
        ({"path": "a.-1", "eq": 1}, '{"a": [0, 1]}', False),
        ({"path": "0", "eq": 7}, "[7]", True),
        ({"path": "a.b", "gte": 0}, '{"a": 1}', False),
        ({"path": "x", "gte": 0}, "{}", False),
        ({"path": "x", "gte": 0}, '{"x": true}', False),
        ({"path": "x", "gte": 0}, '{"x": "5"}', False),
        ({"path": "x", "gte": 0}, '{"x": null}', False),
        ({"path": "x", "gte": 0}, '{"x": ' + "9" * 4000 + "}", True),
    ],
)
def test_a_number_must_lie_within_all_bounds(judge: Judge, table: dict[str, Any], output: str, ok: bool) -> None:
    score = threshold(judge, table, output)

    assert (score.ok, score.findings, score.error) == (ok, (), False)


@pytest.mark.parametrize("output", ["seven", '{"x": NaN}', '{"x": Infinity}', '{"x": 1e999}'])
def test_a_threshold_on_output_that_is_not_json_says_so(judge: Judge, output: str) -> None:
    score = threshold(judge, {"path": "x", "gte": 0}, output)

    assert len(score.findings) == 1
    assert score.findings[0]["why"].startswith("output is not JSON: ")


@pytest.mark.parametrize(
    "table",
    [
        {},
        {"path": "x"},
        {"path": "", "gte": 1},
        {"gte": 1},
        {"path": "x", "gte": True},
        {"path": "x", "gte": "1"},
        {"path": "x", "gte": float("nan")},
        {"path": "x", "lte": float("inf")},
        {"path": "x", "lessthan": 3},
        {"path": "x", "gte": 1, "tolerance": 0.1},
        {"path": "x", "eq": 1, "tolerance": -1},
    ],
)
def test_a_threshold_that_bounds_nothing_or_has_unknown_keys_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        NumericThreshold.Expect["numeric_threshold"].model_validate(table)


def test_the_missing_bound_is_named() -> None:
    with pytest.raises(ValidationError, match="needs at least one bound"):
        NumericThreshold.Expect["numeric_threshold"].model_validate({"path": "x"})


def test_defaults_of_the_entry_stand_in(judge: Judge, applies: Callable[..., bool]) -> None:
    default = {"numeric_threshold": {"path": "x", "gte": 1}}

    assert judge(NumericThreshold, {}, default, output='{"x": 1}').ok
    assert applies(NumericThreshold, {}, default)
    assert not applies(NumericThreshold, {})
    assert not applies(JsonSchema, {})
    assert applies(JsonSchema, {"json_schema": False})
