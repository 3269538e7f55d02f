"""Two ways to write JSON that always give the same bytes for the same value, and the digests made from them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any, TypeGuard, cast

__all__ = [
    "array_pieces",
    "canonical_json",
    "digest_bytes",
    "digest_json",
    "digest_pieces",
    "digest_text",
    "finite",
    "is_array",
    "is_object",
    "is_sequence",
    "stable_json",
    "stable_pieces",
]

_SURROGATE = re.compile("[\ud800-\udfff]")
_STABLE = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_NUMBER = r"-?\d+(?:[.eE]|\d{15})"
_IN_OBJECT, _IN_ARRAY = re.compile(f'":{_NUMBER}'), re.compile(rf"[\[,]{_NUMBER}")
"""In stable JSON: numbers that ECMAScript may write in another way. Digits in a string may look like that too."""


def stable_json(value: Any) -> str:
    """Return JSON with sorted keys and no white space; the form that every ``sha256:`` of a suite or report covers.

    Raises ``ValueError`` for NaN and infinities.
    """
    return _STABLE(value)


def stable_pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield :func:`stable_json` of an object in pieces; a value that is an iterator is an array of which one item is held."""
    glue = "{"
    for key in sorted(document):
        yield f"{glue}{stable_json(key)}:"
        glue = ","
        value = document[key]
        if _is_iterator(value):
            yield from array_pieces(value)
        else:
            yield stable_json(value)
    yield "{}" if glue == "{" else "}"


def array_pieces(items: Iterable[Any]) -> Iterator[str]:
    """Yield :func:`stable_json` of an array in pieces, one item after another."""
    yield "["
    yield from (("," if number else "") + stable_json(item) for number, item in enumerate(items))
    yield "]"


def digest_bytes(data: bytes) -> str:
    """Return ``sha256:`` and the hex digest of ``data``."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_text(text: str) -> str:
    """Return the digest of ``text`` in UTF-8; a lone surrogate counts as its three-byte form."""
    return digest_bytes(text.encode("utf-8", "surrogatepass"))


def digest_pieces(pieces: Iterable[str]) -> str:
    """Return the digest that :func:`digest_text` gives of all pieces together; only one is held at a time."""
    sha256 = hashlib.sha256()
    for piece in pieces:
        sha256.update(piece.encode("utf-8", "surrogatepass"))
    return "sha256:" + sha256.hexdigest()


def digest_json(value: Any) -> str:
    """Return the digest of ``value`` in its stable form."""
    return digest_text(stable_json(value))


def canonical_json(value: Any) -> str:
    """Return the form that the ledger hashes: what ECMAScript's ``JSON.stringify`` gives, with keys in UTF-16 order.

    Numbers print as ECMAScript prints them (1.0 as ``1``, 1e-7 as ``1e-7``, integers above 2**53 as doubles, NaN and
    infinities as ``null``); lone surrogates as ``\\udxxx``. Source: ECMA-262, Number::toString and QuoteJSONString.
    """
    if isinstance(value, (dict, list)):
        with contextlib.suppress(TypeError, ValueError):
            text = _STABLE(value)
            if text.isascii() and not _IN_OBJECT.search(text) and not ("[" in text and _IN_ARRAY.search(text)):
                return text
    return _canonical(value)


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Tell whether a JSON value is an object."""
    return isinstance(value, dict)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether a value is written as a JSON array."""
    return isinstance(value, (list, tuple))


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Tell whether a JSON value is an array."""
    return isinstance(value, list)


def finite(value: Any) -> Any:
    """Return ``value`` with every NaN and infinity replaced by ``None`` and every lone surrogate by U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, (dict, Mapping)):
        return {finite(str(key)): finite(item) for key, item in cast(Mapping[str, Any], value).items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in cast(Sequence[Any], value)]
    return value


def _is_iterator(value: Any) -> TypeGuard[Iterator[Any]]:
    return isinstance(value, Iterator)


def _canonical(value: Any) -> str:
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return encode_basestring(value) if value.isascii() else _string(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        fields = cast(Mapping[str, Any], value)
        keys = sorted(fields, key=None if "".join(fields).isascii() else _utf16)
        return "{" + ",".join(f"{_string(key)}:{_canonical(fields[key])}" for key in keys) + "}"
    if is_sequence(value):
        return "[" + ",".join(_canonical(item) for item in value) + "]"
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def _string(text: str) -> str:
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() else _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def _number(value: float) -> str:
    if isinstance(value, int):
        if abs(value) <= 2**53:
            return str(value)
        value = _as_double(value)
    if not math.isfinite(value):
        return "null"
    if value == 0:
        return "0"
    return _ecmascript(value)


def _as_double(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _ecmascript(value: float) -> str:
    """Lay out the shortest digits that read back as ``value`` the way ECMA-262 Number::toString does."""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"
