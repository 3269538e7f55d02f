"""Bytes to JSON values, strictly: UTF-8, no duplicate keys, no NaN, lines split on line feeds only."""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from evalwright.canonical import is_array, is_object

__all__ = ["case_lines", "case_places", "parse_json", "parse_suite", "suite_file"]

BOM = b"\xef\xbb\xbf"
SURROGATE = re.compile("[\ud800-\udfff]")


def suite_file(directory: Path) -> Path:
    """Return the suite's document: ``suite.json``, or ``suite.toml`` where there is no other."""
    toml = directory / "suite.toml"
    json_file = directory / "suite.json"
    return toml if toml.is_file() and not json_file.is_file() else json_file


def parse_suite(path: Path, text: str) -> Any:
    """Return the document that a suite's file holds. Raises ``ValueError`` that says what and where."""
    if path.suffix != ".toml":
        return parse_json(text)
    import tomllib

    document = tomllib.loads(text)
    _refuse_foreign(document)
    return document


def parse_json(text: str) -> Any:
    """Return a JSON value. Raises ``ValueError`` for duplicate keys, NaN, infinities and lone surrogates too."""
    value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    if "\\u" in text or SURROGATE.search(text):
        _refuse_surrogates(value)
    return value


def case_lines(source: bytes | BinaryIO) -> Iterator[tuple[int, str | None]]:
    """Yield ``(line number, text)`` of each line that is not blank; ``None`` stands for a line that is not UTF-8.

    Of a file no more than a line is held at a time.
    """
    for number, _, line in case_places(source):
        try:
            yield number, line.decode("utf-8")
        except UnicodeDecodeError:
            yield number, None


def case_places(source: bytes | BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield ``(line number, start in bytes, line)`` of each line that is not blank; a byte order mark is no part of any."""
    start = 0
    for number, line in enumerate(io.BytesIO(source) if isinstance(source, bytes) else source, 1):
        place = start
        start += len(line)
        if number == 1 and line.startswith(BOM):
            place, line = place + len(BOM), line[len(BOM) :]
        if line.strip():
            yield number, place, line.removesuffix(b"\n")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f'the key "{key}" stands twice')
        found[key] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value


def _refuse_foreign(value: Any) -> None:
    """Refuse what TOML has and JSON has not: dates, times, infinities."""
    if is_object(value):
        for item in value.values():
            _refuse_foreign(item)
    elif is_array(value):
        for item in value:
            _refuse_foreign(item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a number that a suite can hold")
    elif not isinstance(value, (str, int, float)):
        raise ValueError(f"{value} is a {type(value).__name__}; quote it to make it text")


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
