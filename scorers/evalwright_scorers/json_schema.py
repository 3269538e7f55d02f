"""The scorer that validates the answer against a JSON Schema."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from jsonschema.exceptions import ValidationError, relevance
from pydantic import AfterValidator, BaseModel, RootModel
from referencing.exceptions import Unresolvable

from evalwright.errors import TrialError
from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Score, ScoredTrial
from evalwright_scorers.expectation import expected
from evalwright_scorers.json_text import NotJson, parse_json
from evalwright_scorers.json_validation import Schema, check_schema, validation_errors

__all__ = ["JsonSchema", "JsonSchemaConfig"]

MAX_FINDINGS = 20
MAX_MESSAGE_CHARACTERS = 500

ValidSchema = Annotated[Schema, AfterValidator(check_schema)]


class JsonSchemaConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The schema of every case that has none of its own."""

    json_schema: ValidSchema | None = None


class SchemaDocument(RootModel[ValidSchema], strict=True, frozen=True):
    """A JSON Schema; draft 2020-12 unless ``$schema`` names another."""


class JsonSchema(Scorer[JsonSchemaConfig]):
    """Passes when the output is JSON that the schema accepts. References are never fetched from a network."""

    api = "scorer/1.0"
    Config = JsonSchemaConfig
    Expect = MappingProxyType({"json_schema": SchemaDocument})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether a schema is given."""
        return expected(expect, "json_schema", self.config) is not None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """List the best reasons why the output does not fit the schema."""
        try:
            document = parse_json(trial.output)
        except NotJson as error:
            return Score.failed(error.finding)
        schema = expected(trial.expect, "json_schema", self.config)
        try:
            errors = heapq.nlargest(MAX_FINDINGS, validation_errors(schema, document), key=relevance)
        except Unresolvable as error:
            raise TrialError("schema_reference", f"the JSON Schema refers to what it does not hold: {error}") from error
        except RecursionError:
            return Score.failed({"why": "output is nested too deeply for its schema", "path": ""})
        return Score.decided(tuple(_finding(error) for error in errors))


def _finding(error: ValidationError) -> dict[str, Any]:
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)
    return {"why": error.message[:MAX_MESSAGE_CHARACTERS], "path": "".join(f"/{part}" for part in parts)}
