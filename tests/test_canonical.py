"""Canonical JSON is what ECMAScript prints, stable JSON what evalctl hashes; both always the same bytes."""

from __future__ import annotations

import json
import math
import random
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from evalwright.canonical import canonical_json, digest_json, digest_pieces, finite, stable_json, stable_pieces

PROGRAM = """
const lines = require('fs').readFileSync(0, 'utf8').split('\\n').filter(Boolean)
const sorted = v => Array.isArray(v) ? v.map(sorted) : v && typeof v === 'object'
  ? Object.fromEntries(Object.keys(v).sort().map(k => ['_' + k, sorted(v[k])])) : v
const write = v => Array.isArray(v) ? '[' + v.map(write).join(',') + ']' : v && typeof v === 'object'
  ? '{' + Object.keys(v).sort().map(k => JSON.stringify(k) + ':' + write(v[k])).join(',') + '}' : JSON.stringify(v)
for (const line of lines) process.stdout.write(write(JSON.parse(line)).split('\\n').join('') + '\\n')
"""
ALPHABET = [
    "a",
    "Z",
    "0",
    '"',
    "\\",
    "/",
    "\n",
    "\x00",
    "\x1f",
    "\x7f",
    "é",
    "\u2028",
    "\ud800",
    "\udfff",
    "😀",
    "\ufffd",
    "\uffff",
    "𐀀",
]


def number(source: random.Random) -> float | int:
    """Return a number of any shape: any bit pattern, powers of ten and their neighbours, whole numbers of any size."""
    kind = source.randrange(5)
    if kind == 0:
        value = struct.unpack("<d", source.randbytes(8))[0]
        return value if math.isfinite(value) else 0.5
    if kind == 1:
        return math.nextafter(10.0 ** source.randint(-30, 30), source.choice([0.0, math.inf, 1.0]))
    if kind == 2:
        return source.randint(-(10**25), 10**25)
    if kind == 3:
        return source.choice([0.0, -0.0, 1.0, 5e-324, 1.7976931348623157e308, 2**53, 2**53 + 1, -(2**53) - 1, 1e21, 1e-6, 1e-7])
    return round(source.uniform(-1000, 1000), source.randint(0, 12))


def value(source: random.Random, depth: int = 3) -> Any:
    kind = source.randrange(4 if depth == 0 else 6)
    if kind == 0:
        return source.choice([None, True, False])
    if kind < 3:
        return number(source)
    if kind == 3:
        return text(source)
    if kind == 4:
        return [value(source, depth - 1) for _ in range(source.randint(0, 4))]
    return {text(source): value(source, depth - 1) for _ in range(source.randint(0, 4))}


def text(source: random.Random) -> str:
    return "".join(source.choices(ALPHABET, k=source.randint(0, 6)))


def test_thousand_generated_values_are_written_as_node_writes_them(require: Callable[[str], None]) -> None:
    require("node")
    source = random.Random(1)
    lines = [json.dumps(value(source)) for _ in range(1000)]

    done = subprocess.run(
        ["node", "-e", PROGRAM], input="\n".join(lines).encode(), capture_output=True, timeout=120, check=True
    )

    theirs = done.stdout.decode().split("\n")[:-1]
    ours = [canonical_json(json.loads(line)) for line in lines]
    assert len(theirs) == 1000
    assert [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b] == []


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (1.0, "1"), (-0.0, "0"), (1e-7, "1e-7"), (1e-6, "0.000001"), (1e21, "1e+21"), (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"), (2**53 + 1, "9007199254740992"), (10**400, "null"),
        (float("nan"), "null"), (-math.inf, "null"), (5e-324, "5e-324"), (-1.5e-10, "-1.5e-10"), (True, "true"),
        ("\ud800", '"\\ud800"'), ("\u2028\x7f", '"\u2028\x7f"'), ({"b": 1, "a": 2}, '{"a":2,"b":1}'),
        ({"\uffff": 1, "😀": 2}, '{"😀":2,"\uffff":1}'),
    ],
)  # fmt: skip
def test_value_has_one_canonical_form(given: Any, written: str) -> None:
    assert canonical_json(given) == written


def test_two_halves_of_a_pair_are_written_as_the_character_that_a_reader_makes_of_them() -> None:
    halves = {"x": "\ud83d" + "\ude00"}

    assert canonical_json(json.loads(canonical_json(halves))) == canonical_json(halves)


def test_value_without_a_json_form_is_refused() -> None:
    for odd in (b"x", object(), {1, 2}):
        with pytest.raises(TypeError):
            canonical_json(odd)


def test_stable_json_is_sorted_compact_and_refuses_what_is_not_finite() -> None:
    assert stable_json({"b": [1, 1.0, "é"], "a": None}) == '{"a":null,"b":[1,1.0,"é"]}'
    for odd in (math.nan, math.inf, [-math.inf]):
        with pytest.raises(ValueError, match="JSON compliant"):
            stable_json(odd)


def test_digest_of_text_with_a_lone_surrogate_exists_and_differs() -> None:
    assert digest_json("\ud800") != digest_json("\ud801")


def test_finite_replaces_what_strict_json_cannot_hold_at_any_depth() -> None:
    cleaned = finite({"a": [math.nan, math.inf, 1.5], "b\ud800": ("\udfff", {"c": -math.inf})})

    assert cleaned == {"a": [None, None, 1.5], "b\ufffd": ["\ufffd", {"c": None}]}
    assert stable_json(cleaned).encode()


@pytest.mark.parametrize("rows", [[], [1], [{"b": "\ud800", "a": None}, [], "é"]])
@pytest.mark.parametrize("rest", [{}, {"a": {"z": [1, 2]}, "é": 0.5}, {"z": []}])
def test_pieces_are_the_stable_form_of_the_whole(rows: list[Any], rest: dict[str, Any]) -> None:
    whole = rest | {"rows": rows}

    assert "".join(stable_pieces(rest | {"rows": iter(rows)})) == stable_json(whole)
    assert digest_pieces(stable_pieces(rest | {"rows": iter(rows)})) == digest_json(whole)
    assert "".join(stable_pieces(rest)) == stable_json(rest)
