"""Output without what differs from one execution to the next."""

from __future__ import annotations

import re

__all__ = ["normalised"]

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~])?")
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = r"\d{1,2}:\d\d:\d\d(?:[.,]\d+)?"
_TEMPORARY = r"(?:/private)?(?:/tmp|/var/tmp|/dev/shm|/run/user/\d+|/var/folders/[^/\s]{1,9}/[^/\s]{1,64}/T)"
_NAME = r"[^/\s'\"<>:;,()\[\]{}|]+"
_RANDOM = r"(?:pytest-\d+|tmp[a-z0-9_]{8}|tmp\.\w{6,12}|[\w.-]{0,64}?[0-9a-f]{8,64}[\w.-]{0,64})(?![\w.-])"
_UNIT = r"(?: ?(?:ns|us|µs|μs|ms|s|secs?|seconds?|mins?|minutes?|hours?)|[hm])"
_HOST = r"localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]"

_RULES = [
    (re.compile(pattern, re.ASCII), mark)
    for pattern, mark in (
        (r"(?<!\w)[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?!\w)", "<id>"),
        (rf"(?<!\w)\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?(?!\w)", "<time>"),
        (rf"(?<!\w)(?:{_MONTH} {{1,2}}\d{{1,2}}|\d{{1,2}}[ /]{_MONTH})(?:,?[ /:]\d{{4}})?(?!\w)", "<time>"),
        (rf"(?<!\w){_CLOCK}(?!\w)", "<time>"),
        (r"(?<![\w.])1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)", "<time>"),
        (rf"(?<![\w.>-]){_TEMPORARY}/{_NAME}(?:/{_RANDOM})*", "<tmp>"),
        (r"(?<![\w.-])tmp(?=[a-z_]*\d)[a-z0-9_]{8}(?![\w.-])", "<tmp>"),
        (r"(?<!\w)0x[0-9a-fA-F]{6,16}(?!\w)", "<address>"),
        (r"(?<!\w)(?:[0-9a-f]{64}|[0-9a-f]{40})(?!\w)", "<hash>"),
        (r"(?<!\w)((?:[Pp][Ii][Dd]|[Pp]rocess)(?: ?[:=#]? ?))\d+(?!\w)", r"\1<pid>"),
        (r"(?<!\w)/proc/\d+(?!\w)", "/proc/<pid>"),
        (r"(?<=\w)\[\d{3,7}\](?=:)", "[<pid>]"),
        (r"==\d+==", "==<pid>=="),
        (rf"((?:(?<!\w)[Pp]ort ?[:=#]? ?|(?:{_HOST}):))\d{{1,5}}(?!\w)", r"\1<port>"),
        (rf"(?<![\w.])(?:\d+[hm] ?){{0,2}}\d+(?:\.\d+)?{_UNIT}(?!\w)", "<duration>"),
    )
]


def normalised(output: str) -> str:
    """Return output in which two executions of the same failure agree; to normalise it again changes nothing.

    Marks stand for points in time, durations, identifiers, commit and sha256 hashes, addresses in memory, process ids,
    ports, and the random part of temporary paths. Colours and white space at the ends of lines are dropped.
    """
    previous, text = "", output
    while text != previous:
        previous, text = text, _once(text)
    return text


def _once(text: str) -> str:
    text = _ESCAPE.sub("", text)
    for pattern, mark in _RULES:
        text = pattern.sub(mark, text)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()
