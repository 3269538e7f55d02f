"""JSON Schema validation that neither fetches references nor hangs on a pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import regex
from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it ships no types

from evalwright_scorers.json_text import is_object
from evalwright_scorers.patterns import found

__all__ = ["Schema", "check_schema", "validation_errors"]

Schema = dict[str, Any] | bool

_MAX_MESSAGE_CHARACTERS = 500


def check_schema(schema: Schema) -> Schema:
    """Return the schema. Raises ``ValueError`` when it is none, patterns included."""
    checker = FormatChecker(formats=())
    checker.checks("regex", raises=regex.error)(_compiles)
    try:
        _validator_class(schema).check_schema(schema, format_checker=checker)
    except SchemaError as error:
        raise ValueError(f"not a valid JSON Schema: {error.message[:_MAX_MESSAGE_CHARACTERS]}") from error
    return schema


def validation_errors(schema: Schema, document: Any) -> Iterator[ValidationError]:
    """Yield what the schema objects to. Draft 2020-12 unless ``$schema`` names another.

    Raises ``TrialError`` when a pattern takes too long, and ``referencing``'s ``Unresolvable`` for a reference that
    the schema does not hold.
    """
    cls = _validator_class(schema)
    keywords = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties(cls.VALIDATORS["additionalProperties"]),
    }
    extend = cast("Callable[..., Any]", validators.extend)
    errors: Iterator[ValidationError] = extend(cls, keywords)(schema, registry=REGISTRY).iter_errors(document)
    return errors


def _compiles(pattern: object) -> bool:
    return not isinstance(pattern, str) or bool(regex.compile(pattern))


def _validator_class(schema: Schema) -> Any:
    return validators.validator_for(schema, default=Draft202012Validator)


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not found(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if is_object(instance):
        for pattern, subschema in patterns.items():
            for name, value in instance.items():
                if found(pattern, name):
                    yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _additional_properties(original: Any) -> Any:
    """Return the keyword's own rule, applied to the names that no pattern matches."""

    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if is_object(instance):
            patterns = schema.get("patternProperties", {})
            rest = {name: instance[name] for name in instance if not any(found(p, name) for p in patterns)}
            yield from original(validator, value, rest, {"properties": schema.get("properties", {})}) or ()

    return check
