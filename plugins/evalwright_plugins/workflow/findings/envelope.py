"""What a worker says about its step: one JSON object, read without trust."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from evalwright.canonical import finite, is_array, is_object
from evalwright.model import Usage, read_usage
from evalwright_plugins.workflow.findings.finding import SEVERITIES, Finding

__all__ = ["MAX_BYTES", "Envelope", "EnvelopeError", "Status", "read_envelope"]

MAX_BYTES = 1 << 20
SHOWN = 20
Status = Literal["succeeded", "failed", "findings-blocking"]
STATUSES: tuple[Status, ...] = get_args(Status)
KEYS = ("status", "findings", "metrics", "usage")
FINDING_KEYS = ("severity", "summary", "file", "line")


class EnvelopeError(ValueError):
    """The output cannot be used: ``place`` in it, what is wrong there, and the ``cure``."""

    def __init__(self, place: str, problem: str, cure: str) -> None:
        super().__init__(f"{place}: {problem}; {cure}")
        self.place = place
        self.problem = problem
        self.cure = cure


@dataclass(frozen=True, slots=True)
class Envelope:
    """A worker's own account of its step; a status of ``None`` is left to its exit code."""

    status: Status | None
    findings: tuple[Finding, ...]
    metrics: Mapping[str, float]
    usage: Usage | None


def read_envelope(data: bytes) -> Envelope:
    """Return what the bytes say; one code fence around the object is taken off. Raises :class:`EnvelopeError`."""
    if len(data) > MAX_BYTES:
        raise EnvelopeError("the output", f"longer than {MAX_BYTES} bytes", "report fewer findings, or shorter ones")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EnvelopeError(f"byte {error.start}", "not UTF-8", "write the output as UTF-8") from None
    document = _parsed(_unfenced(text))
    if not is_object(document):
        raise EnvelopeError("the output", "no JSON object", "write one object {status?, findings?, metrics?, usage?}")
    _only(document, KEYS, "")
    given = {key: value for key, value in document.items() if value is not None}
    return Envelope(
        _status(given.get("status")),
        tuple(_finding(item, f"findings[{index}]") for index, item in enumerate(_array(given.get("findings", [])))),
        _metrics(given.get("metrics", {})),
        _usage(given["usage"]) if "usage" in given else None,
    )


def _unfenced(text: str) -> str:
    lines = text.strip().split("\n")
    first, last = lines[0].rstrip(), lines[-1].strip()
    fence = first[: len(first) - len(first.lstrip("`"))]
    if len(lines) > 1 and len(fence) >= 3 and last == fence:
        return "\n".join(lines[1:-1])
    return text


def _parsed(text: str) -> Any:
    if not text.strip():
        raise EnvelopeError("the output", "empty", "write one JSON object, at least {}")
    try:
        return finite(json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_float))
    except EnvelopeError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise EnvelopeError(place, f"not JSON ({error.msg})", "write one JSON object and nothing around it") from None
    except RecursionError:
        raise EnvelopeError("the output", "nested too deeply", "write a flat list of findings") from None
    except ValueError:
        raise EnvelopeError("the output", "a number is too long", "write numbers of at most 17 digits") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise EnvelopeError(key, "the key stands twice in one object", "write each key once")
        found[key] = value
    return found


def _no_number(text: str) -> float:
    raise EnvelopeError(text[:SHOWN], "no finite number", "leave out what is not known")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _only(record: Mapping[str, Any], keys: tuple[str, ...], place: str) -> None:
    if unknown := sorted(record.keys() - set(keys)):
        raise EnvelopeError(f"{place}{unknown[0]}", "unknown key", f"known are {', '.join(keys)}")


def _status(value: Any) -> Status | None:
    for status in STATUSES:
        if value == status:
            return status
    if value is None:
        return None
    raise EnvelopeError("status", "unknown value", f"known are {', '.join(STATUSES)}")


def _array(value: Any) -> list[Any]:
    if not is_array(value):
        raise EnvelopeError("findings", "no list", "write a list of {severity, summary, file?, line?}")
    return value


def _finding(value: Any, place: str) -> Finding:
    if not is_object(value):
        raise EnvelopeError(place, "no object", "write {severity, summary, file?, line?}")
    _only(value, FINDING_KEYS, f"{place}.")
    severity, summary = value.get("severity"), value.get("summary")
    file, line = value.get("file"), value.get("line")
    if severity not in SEVERITIES:
        raise EnvelopeError(f"{place}.severity", "missing or unknown", f"known are {', '.join(SEVERITIES)}")
    if not isinstance(summary, str) or not summary.strip():
        raise EnvelopeError(f"{place}.summary", "missing or empty", "say in a sentence what is wrong")
    if file is not None and (not isinstance(file, str) or not file):
        raise EnvelopeError(f"{place}.file", "no path", "write the path as a text, or leave it out")
    if line is not None and (not isinstance(line, int) or isinstance(line, bool) or not 1 <= line <= 2**53):
        raise EnvelopeError(f"{place}.line", "no line number", "count lines from 1, or leave it out")
    return Finding(severity, summary.strip(), file, line)


def _metrics(value: Any) -> dict[str, float]:
    if not is_object(value):
        raise EnvelopeError("metrics", "no object", "write names with numbers")
    for name, number in value.items():
        if not isinstance(number, (int, float)) or isinstance(number, bool) or abs(number) > sys.float_info.max:
            raise EnvelopeError(f"metrics.{name}", "no finite number", "write a number, or leave it out")
    return {name: float(number) for name, number in value.items()}


def _usage(value: Any) -> Usage:
    try:
        return read_usage(value)
    except ValueError as error:
        raise EnvelopeError("usage", str(error), "write the keys of EVALWRIGHT_USAGE_FILE") from None
