"""Secrets out of text and out of streams, before anything is cut.

A secret that straddles the place where a stream is cut must not survive in part, so redaction works on the stream: the last
:data:`WINDOW` characters are held back until what follows them is known. A match that touches the edge of what has been
seen is redacted to the edge, and on while it still matches.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from evalwright.interfaces import BoundedOutput, OutputSink
from evalwright.model import Output

__all__ = ["MARK", "Redactor", "credential_values"]

MARK = "[REDACTED]"
WINDOW = 1 << 16
CONTEXT = 64
CARRIED = 256
MATCH_SECONDS = 2.0
SHORTEST_SECRET = 8
CREDENTIAL_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")

Span = tuple[int, int]


def credential_values(environment: Mapping[str, str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the values to hide: of the ``named`` variables, and of all whose name looks like a credential's.

    A value that was only guessed by its name counts from eight characters on, so that ``1`` or ``true`` stays readable.
    """
    values = {environment.get(name, "") for name in (*named, *credential_names(environment))}
    return tuple(sorted(values - {""}, key=lambda value: (-len(value), value)))


def credential_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all variables that look like a credential's and are long enough to be one."""
    return tuple(name for name, value in environment.items() if len(value) >= SHORTEST_SECRET and names_credential(name))


def names_credential(name: str) -> bool:
    """Tell whether a variable's name looks like a credential's."""
    return any(word in CREDENTIAL_WORDS for word in name.upper().split("_"))


class Redactor:
    """Replaces literal secrets and matches of patterns by :data:`MARK`. Immutable and thread-safe.

    Patterns are time-boxed: when one takes too long the whole window is redacted. Raises ``ValueError`` for a pattern that
    does not compile.
    """

    def __init__(self, literals: Iterable[str] = (), patterns: Sequence[str] = ()) -> None:
        self.literals = tuple(value for value in literals if value)
        self._patterns = _compiled(patterns)
        self._key = self.literals, tuple(patterns)

    def __eq__(self, other: object) -> bool:
        """Tell whether both hide the same."""
        return isinstance(other, Redactor) and self._key == other._key

    def __hash__(self) -> int:
        """Return a hash that goes with equality."""
        return hash(self._key)

    @property
    def idle(self) -> bool:
        """Tell whether there is nothing to look for."""
        return not (self.literals or self._patterns)

    def text(self, text: str) -> str:
        """Return ``text`` without secrets."""
        return _replaced(text, self.spans(text, 0)) if not self.idle else text

    def json(self, value: Any) -> Any:
        """Return a JSON value with every string in it, keys too, redacted."""
        if self.idle:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.json(item) for key, item in cast(Mapping[str, Any], value).items()}
        if isinstance(value, (list, tuple)):
            return [self.json(item) for item in cast(Sequence[Any], value)]
        return value

    def bytes(self, data: bytes) -> bytes:
        """Return ``data`` without secrets; bytes that are not UTF-8 stay as they are."""
        text = data.decode("utf-8", "surrogateescape")
        return self.text(text).encode("utf-8", "surrogateescape")

    def output(self, max_bytes: int) -> BoundedOutput | RedactedOutput:
        """Return a sink that keeps the first ``max_bytes`` of the redacted stream."""
        return BoundedOutput(max_bytes) if self.idle else RedactedOutput(self, max_bytes)

    def sinks(self, max_bytes: int) -> Callable[[], OutputSink]:
        """Return a maker of such sinks, for ``Command.capture``."""
        return lambda: self.output(max_bytes)

    def settled(self, text: str) -> tuple[str, int]:
        """Return the redacted beginning of a stream that nothing which follows ``text`` can change, and how many characters
        of ``text`` it stands for. Literal secrets only: a match of a pattern may go on.
        """
        spans = self.spans(text, 0)
        cut = len(text) - max((_begun(text, literal) for literal in self.literals), default=0)
        spans = [span for span in spans if span[0] < cut]
        cut = max(cut, *(end for _, end in spans), 0)
        return _replaced(text[:cut], spans), cut

    def spans(self, text: str, start: int) -> list[Span]:
        """Return the merged places of all secrets at or after ``start``, in order."""
        found = [span for literal in self.literals for span in _occurrences(text, literal, start)]
        for pattern in self._patterns:
            try:
                found += [match.span() for match in pattern.finditer(text, start, timeout=MATCH_SECONDS) if match[0]]
            except TimeoutError:
                found.append((start, len(text)))
        return _merged(found)


class RedactedOutput:
    """Keeps the first and the last bytes of the redacted stream, and the totals of the raw one.

    Bytes that are not UTF-8 pass as they are.
    """

    def __init__(self, redactor: Redactor, max_bytes: int) -> None:
        self._redactor = redactor
        self._window = max(WINDOW, *(len(literal) for literal in redactor.literals), 0)
        self._kept = BoundedOutput(max_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._pending = ""
        self._done = 0
        self._inside = False
        self._total = 0
        self._hit = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._total += len(data)
        self._pending += self._decoder.decode(data)
        if len(self._pending) - self._done > self._window * 2:
            self._advance(final=False)

    def finish(self, *, complete: bool = True) -> Output:
        """Return head, tail and totals. Of a stream that is not ``complete`` the unsettled end is left out."""
        self._pending += self._decoder.decode(b"", final=complete)
        self._advance(final=complete)
        kept = self._kept.finish()
        return replace(
            kept,
            tail=kept.tail if complete else b"",
            total_bytes=self._total,
            truncated=kept.truncated or not complete,
            redacted=self._hit,
        )

    def _advance(self, *, final: bool) -> None:
        """Pass on what is settled; hold back what a later chunk may still turn into a secret."""
        text, start = self._pending, self._done
        end = len(text)
        cut = max(start, end if final else end - self._window)
        for begin, stop in self._redactor.spans(text, start):
            if begin >= cut:
                break
            self._emit(text[start:begin])
            if not (self._inside and begin == start):
                self._emit(MARK)
            self._hit = True
            self._inside = False
            start = stop
            if stop == end and not final:
                self._carry(text[begin:stop])
                return
            cut = max(cut, stop)
        self._emit(text[start:cut])
        self._inside = False
        self._keep(text, cut)

    def _carry(self, match: str) -> None:
        """Go on inside a match that touches the edge: its beginning stays, so that the pattern can match on."""
        self._pending, self._done, self._inside = match[:CARRIED], 0, True

    def _keep(self, text: str, cut: int) -> None:
        context = max(0, cut - CONTEXT)
        self._pending, self._done = text[context:], cut - context

    def _emit(self, text: str) -> None:
        if text:
            self._kept.feed(text.encode("utf-8", "surrogateescape"))


def _compiled(patterns: Sequence[str]) -> tuple[Any, ...]:
    if not patterns:
        return ()
    import regex

    try:
        return tuple(regex.compile(pattern) for pattern in patterns)
    except regex.error as error:
        raise ValueError(f"bad pattern: {error}") from error


def _occurrences(text: str, literal: str, start: int) -> Iterable[Span]:
    at = text.find(literal, start)
    while at >= 0:
        yield at, at + len(literal)
        at = text.find(literal, at + len(literal))


def _begun(text: str, literal: str) -> int:
    """Return how many characters at the end of a text may be the beginning of a secret."""
    most = min(len(text), len(literal) - 1)
    return next((length for length in range(most, 0, -1) if text.endswith(literal[:length])), 0)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts: list[str] = []
    at = 0
    for begin, end in spans:
        parts += [text[at:begin], MARK]
        at = end
    return "".join([*parts, text[at:]])
