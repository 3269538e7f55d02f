"""Bytes to JSON values, strictly: UTF-8, no duplicate keys, no NaN, lines split on line feeds only."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.canonical import is_array, is_object

__all__ = ["case_lines", "parse_json", "parse_suite", "suite_file"]

SURROGATE = re.compile("[\ud800-\udfff]")


def suite_file(directory: Path) -> Path:
    """Return the suite's document: ``suite.json``, or ``suite.toml`` where there is no other."""
    toml = directory / "suite.toml"
    json_file = directory / "suite.json"
    return toml if toml.is_file() and not json_file.is_file() else json_file


def parse_suite(path: Path, text: str) -> Any:
    """Return the document that a suite's file holds. Raises ``ValueError`` that says what and where."""
    return tomllib.loads(text) if path.suffix == ".toml" else parse_json(text)


def parse_json(text: str) -> Any:
    """Return a JSON value. Raises ``ValueError`` for duplicate keys, NaN, infinities and lone surrogates too."""
    value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    if "\\u" in text or SURROGATE.search(text):
        _refuse_surrogates(value)
    return value


def case_lines(data: bytes) -> Iterator[tuple[int, str]]:
    """Yield ``(line number, text)`` of each line that is not blank. Raises ``ValueError`` naming the line that is not UTF-8."""
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"line {number} is not UTF-8: {error.reason} at byte {error.start}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'the key "{key}" stands twice')
        found[key] = value
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _refuse_surrogates(value: Any) -> None:
    if isinstance(value, str) and SURROGATE.search(value):
        raise ValueError("a string holds half of a surrogate pair, which no file can store")
    if is_object(value):
        for key, item in value.items():
            _refuse_surrogates(key)
            _refuse_surrogates(item)
    if is_array(value):
        for item in value:
            _refuse_surrogates(item)
