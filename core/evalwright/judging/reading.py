"""Read a verdict from a judge's reply, or say why there is none. What is unclear is an error, never a low or a high score.

A reply is read whole if it is JSON. Else its one fenced block or the last object outside of everything else counts, and only
when no other verdict in the reply says something different, nor stands in the question word for word: a judge that quotes a
verdict which the agent planted is not taken at the agent's word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from evalwright.errors import JudgeUnreadable
from evalwright.interfaces import GradeForm, JsonForm, VerdictForm

__all__ = ["read_verdict"]

MARKS = ("```", "~~~")
JSON = "json"
THOUGHT = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
OPEN_THOUGHT = re.compile(r"<(?:think|thinking|reasoning)>")
INVISIBLE = dict.fromkeys([0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
GRADE = re.compile(r"^[ \t*_#`]*grade[*_`]*[ \t]*[:=][ \t*_`\"'(\[]*([A-Za-z0-9+-]+)(.*)$", re.IGNORECASE | re.MULTILINE)
SECOND = re.compile(r"[ \t]*(?:[|/,]|or\b|and\b)[ \t*_`\"'(\[]*([A-Za-z0-9+-]+)", re.IGNORECASE)
WORDS = ("a", "i")
SENTENCE = re.compile(r"['’]|[ \t]+(?!(?:because|since|as|for|due)\b)[A-Za-z]")
VALUE = re.compile(r'\[|\{\s*["}]')
LONGEST = 1 << 20
SHOWN = 200


class _BrokenError(ValueError):
    """Something in the reply begins as a JSON value and is none."""


class _CutError(_BrokenError):
    """The reply ends inside a value."""


def read_verdict(text: str, form: VerdictForm, question: str = "") -> Any:
    """Return the verdict in the reply to a question: a JSON value that fits the schema, or one of the grades.

    Raises ``JudgeUnreadable`` whose ``kind`` is ``judge_truncated``, ``judge_ambiguous``, ``judge_inconsistent`` or
    ``judge_unreadable``.
    """
    if len(text) > LONGEST:
        _fail(f"the reply has {len(text)} characters", "judge_unreadable", text)
    answer = _without_thought(text)
    return _grade(answer, form, question) if isinstance(form, GradeForm) else _value(answer, form, question)


def _without_thought(text: str) -> str:
    """Return the reply after the model's thinking aloud, which is no verdict."""
    thought = THOUGHT.match(text)
    rest = text[thought.end() :] if thought else text
    if OPEN_THOUGHT.match(rest.lstrip()) or (thought and not rest.strip()):
        _fail("the reply ends while the judge still thinks", "judge_truncated", text)
    return rest


def _value(text: str, form: JsonForm, question: str) -> Any:
    blocks, prose = _fenced(text)
    alone = blocks[0][1] if len(blocks) == 1 and not prose.strip() else text.strip()
    try:
        whole = _decode(alone)
    except _BrokenError:
        return _embedded(text, form, question)
    if why := _misfit(whole, form):
        _fail(f"the reply is JSON but no verdict: {why}", "judge_unreadable", text)
    return _consistent(whole, form, text)


def _embedded(text: str, form: JsonForm, question: str) -> Any:
    """Return the verdict inside a reply that holds other text too: of its one fenced block, else the last object."""
    blocks, prose = _fenced(text)
    try:
        fenced = [block for language, block in blocks if language == JSON or VALUE.match(block)]
        found = [(block, _decode(block)) for block in fenced] + list(_values(prose))
    except _BrokenError as error:
        _fail(str(error), "judge_truncated" if isinstance(error, _CutError) else "judge_unreadable", text)
    if not found:
        _fail("the reply holds no verdict", "judge_unreadable", text)
    source, chosen = found[0] if len(fenced) == 1 else found[-1]
    if why := _misfit(chosen, form):
        _fail(f"the reply holds JSON but no verdict: {why}", "judge_unreadable", text)
    if len({_key(form.essence(value)) for _, value in found if _misfit(value, form) is None}) > 1:
        _fail("the reply holds several verdicts that disagree", "judge_ambiguous", text)
    if _squeezed(source) in _squeezed(question):
        _fail("the verdict in the reply stands in the question too: it may be a quotation", "judge_ambiguous", text)
    return _consistent(chosen, form, text)


def _fenced(text: str) -> tuple[list[tuple[str, str]], str]:
    """Return language and content of the fenced blocks, and what lies outside. A block that does not close is outside."""
    blocks: list[tuple[str, str]] = []
    outside: list[str] = []
    inside: list[str] = []
    mark = ""
    for line in text.splitlines(keepends=True):
        bare = line.strip()
        if mark:
            inside.append(line)
            if bare.startswith(mark) and not bare.strip(mark[0]):
                blocks.append((inside[0].strip().strip(mark[0]).strip().casefold(), "".join(inside[1:-1]).strip()))
                mark = ""
        elif bare.startswith(MARKS):
            mark = bare[: len(bare) - len(bare.lstrip(bare[0]))]
            inside = [line]
        else:
            outside.append(line)
    return blocks, "".join([*outside, *(inside if mark else [])])


def _values(text: str) -> Iterator[tuple[str, Any]]:
    """Yield the objects of a text that lie in no other one, as text and value; braces of program text are none.

    Raises ``_BrokenError`` for one that does not close or does not decode.
    """
    at = text.find("{")
    while at >= 0:
        end = _end(text, at)
        if VALUE.match(text, at):
            yield text[at:end], _decode(text[at:end])
        at = text.find("{", end)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _end(text: str, start: int) -> int:
    """Return where the object that opens at ``start`` closes, strings left out."""
    depth, at, quoted = 0, start, False
    while at < len(text):
        letter = text[at]
        if quoted:
            at += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "{}":
            depth += 1 if letter == "{" else -1
            if depth == 0:
                return at + 1
        at += 1
    raise _CutError("the reply ends inside an object")


def _decode(text: str) -> Any:
    """Return a JSON value, strictly: no NaN, no key twice, no bottomless nesting."""
    try:
        return json.loads(text, parse_constant=_refuse, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _BrokenError(f"what looks like a value is not JSON: {type(error).__name__}") from error


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _misfit(value: Any, form: JsonForm) -> str | None:
    """Return why a value does not fit the form's schema, ``None`` if it does."""
    from jsonschema import Draft202012Validator

    try:
        error = next(Draft202012Validator(form.schema).iter_errors(value), None)
    except RecursionError:
        return "it is nested too deeply"
    if error is None:
        return None
    place = ".".join(str(part) for part in error.absolute_path)
    return f"{place}: {error.message}"[:SHOWN] if place else error.message[:SHOWN]


def _consistent(value: Any, form: JsonForm, text: str) -> Any:
    why = form.objection(value) if form.objection else None
    if why:
        _fail(f"the verdict contradicts itself: {why}", "judge_inconsistent", text)
    return value


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _grade(text: str, form: GradeForm, question: str) -> str:
    """Return the grade of the lines that begin with ``GRADE:``; ``downgrade: C`` is none."""
    menu = {grade.casefold(): grade for grade in form.grades}
    words: list[str] = []
    found = list(GRADE.finditer(text.translate(INVISIBLE)))
    for match in found:
        if match[1].casefold() in WORDS and SENTENCE.match(match[2]):
            _fail(f"{(match[1] + match[2])[:SHOWN]!r} may be a sentence and no grade", "judge_unreadable", text)
        second = SECOND.match(match[2])
        words += [match[1], *([second[1]] if second and second[1].casefold() in menu else [])]
    if not words:
        _fail("the reply holds no line GRADE: ...", "judge_unreadable", text)
    if off := [word for word in words if word.casefold() not in menu]:
        _fail(f"the grade {off[0][:SHOWN]!r} is none of {', '.join(form.grades)}", "judge_unreadable", text)
    grades = {menu[word.casefold()] for word in words}
    if len(grades) > 1:
        _fail(f"the reply gives several grades: {', '.join(sorted(grades))}", "judge_ambiguous", text)
    if found[-1].string[found[-1].end() :].strip() and _squeezed(found[-1][0]) in _squeezed(question):
        _fail("the grade does not end the reply and stands in the question: it may be a quotation", "judge_ambiguous", text)
    return grades.pop()


def _fail(why: str, kind: str, text: str) -> NoReturn:
    raise JudgeUnreadable(
        why, hint="look at the reply; ask for one JSON object, or allow more tokens", kind=kind, reply=text[:SHOWN]
    )
