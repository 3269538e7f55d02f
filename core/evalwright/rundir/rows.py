"""Read a JSON document with one long list item by item, so that memory does not grow with the list."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, TextIO

from evalwright.errors import RunCorrupt
from evalwright.rundir.documents import not_json, unreadable

__all__ = ["Rows", "read_around", "read_rows"]

CHUNK = 1 << 16
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()
Rows = Generator[Any, None, dict[str, Any]]


def read_rows(path: Path, *keys: str) -> Rows:
    """Yield each item of the list that ``keys`` lead to, and return the document with an empty list in its place.

    Raises ``RunCorrupt`` naming the file when it is absent, unreadable or no JSON object, once that is reached.
    """
    try:
        with path.open(encoding="utf-8-sig", errors="surrogatepass", newline="") as file:
            text = _Text(file)
            if text.sign() not in ("{", ""):
                raise RunCorrupt(f"{path} must hold a JSON object", hint="restore the file", file=str(path))
            document = yield from _members(text, keys)
            text.expect("")
            return document
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise not_json(path, error) from error


def read_around(path: Path, *keys: str, see: Callable[[Any], object] | None = None) -> tuple[dict[str, Any], int]:
    """Return the document of :func:`read_rows` without its long list, and how many items that has; ``see`` gets each."""
    rows, count = read_rows(path, *keys), 0
    while True:
        try:
            item = next(rows)
        except StopIteration as end:
            return end.value, count
        count += 1
        if see:
            see(item)


class _Text:
    """A file's text, of which a window is held: what is read and not yet taken."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._held = ""
        self._at = 0

    def sign(self) -> str:
        """Return the next character that is no white space, without taking it; nothing at the end."""
        while True:
            space = _SPACE.match(self._held, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more():
                return ""

    def expect(self, sign: str) -> None:
        """Take the next character. Raises ``ValueError`` unless it is this one, or the end for none."""
        found = self.sign()
        if found != sign:
            raise ValueError(f"{found or 'the end'!r} stands where {sign or 'the end'!r} belongs")
        self._at += len(sign)

    def value(self) -> Any:
        """Take the next value. Raises ``ValueError`` when there is none."""
        self.sign()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._held, self._at)
            except ValueError:
                if self._more():
                    continue
                raise
            if end == len(self._held) and self._more():
                continue
            self._at = end
            return value

    def _more(self) -> bool:
        """Read on, as much again as is held, so that a long value is not tried too often; tell whether there was more."""
        chunk = self._file.read(max(CHUNK, len(self._held) - self._at))
        if chunk:
            self._held = self._held[self._at :] + chunk
            self._at = 0
        return bool(chunk)


def _members(text: _Text, keys: Sequence[str]) -> Rows:
    """Yield the items of the list that ``keys`` lead to from this object on; return the object without them."""
    document: dict[str, Any] = {}
    text.expect("{")
    while text.sign() != "}":
        if document:
            text.expect(",")
        if text.sign() != '"':
            raise ValueError("a name is missing")
        name = text.value()
        text.expect(":")
        wanted = [name] == list(keys[:1])
        if wanted and name in document:
            raise ValueError(f'the name "{name}" stands twice')
        if wanted and len(keys) > 1 and text.sign() == "{":
            document[name] = yield from _members(text, keys[1:])
        elif wanted and len(keys) == 1 and text.sign() == "[":
            yield from _items(text)
            document[name] = []
        else:
            document[name] = text.value()
    text.expect("}")
    return document


def _items(text: _Text) -> Generator[Any]:
    text.expect("[")
    if text.sign() != "]":
        yield text.value()
    while text.sign() != "]":
        text.expect(",")
        yield text.value()
    text.expect("]")
