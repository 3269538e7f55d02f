"""Reading YAML 1.2, TOML and JSON as plain values: nothing twice, nothing hidden, nothing that JSON cannot hold."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from evalwright.canonical import is_array, is_object
from evalwright.errors import SuiteError

__all__ = ["read_document"]

MAX_BYTES = 1 << 20


def read_document(path: Path) -> dict[str, Any]:
    """Return the object that a file holds, by its suffix: ``.toml``, ``.json``, else YAML.

    Raises ``SuiteError`` naming file and line for a file that cannot be read, is larger than 1 MiB, has a key twice, an alias,
    a tag, or a value that is no JSON.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"{path}: {error.strerror}", hint="name a file that can be read", file=str(path)) from error
    if len(data) > MAX_BYTES:
        raise SuiteError(f"{path} is larger than 1 MiB", hint="such a file is short", file=str(path))
    try:
        text = data.decode("utf-8-sig")
        value = READERS.get(path.suffix, _yaml)(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise SuiteError(f"{path}: {error}", hint="correct the file", file=str(path), line=line) from error
    if not is_object(value):
        raise SuiteError(f"{path} does not hold an object", hint="it holds keys and values", file=str(path))
    odd = _odd(value, "")
    if odd:
        hint = "put it in quotes, and write whole characters: half of a surrogate pair is none"
        raise SuiteError(f"{path}: {odd} is no JSON value", hint=hint, file=str(path), key=odd)
    return value


class _Invalid(ValueError):
    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message if line is None else f"line {line}: {message}")
        self.lineno = line


def _yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.events import AliasEvent

    yaml: Any = YAML(typ="safe", pure=True)
    try:
        for event in yaml.parse(text):
            if isinstance(event, AliasEvent):
                raise _Invalid("an alias; write the value out", cast("Any", event).start_mark.line + 1)
        return yaml.load(text)
    except MarkedYAMLError as error:
        marked: Any = error
        mark = marked.problem_mark or marked.context_mark
        problem = " ".join(str(marked.problem or marked.context).split())
        raise _Invalid(problem, mark.line + 1 if mark else None) from error
    except RecursionError as error:
        raise _Invalid("nested too deeply", None) from error


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise _Invalid("nested too deeply", None) from error


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except RecursionError as error:
        raise _Invalid("nested too deeply", None) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [key for key, _ in pairs]
        twice = next(key for key in names if names.count(key) > 1)
        raise _Invalid(f"the key {twice!r} is there twice", None)
    return found


READERS: Mapping[str, Callable[[str], Any]] = {".toml": _toml, ".json": _json}


def _odd(value: Any, place: str) -> str | None:
    """Return the place of the first value that JSON cannot hold."""
    if is_object(value):
        for key, item in cast("Mapping[Any, Any]", value).items():
            if not (isinstance(key, str) and _whole(key)):
                return f"{place}.{key!r}".strip(".")
            odd = _odd(item, f"{place}.{key}".strip("."))
            if odd:
                return odd
    elif is_array(value):
        return next((odd for number, item in enumerate(value) if (odd := _odd(item, f"{place}.{number}"))), None)
    elif isinstance(value, str):
        return None if _whole(value) else place
    elif not (value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and abs(value) < float("inf"))):
        return place
    return None


def _whole(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)
