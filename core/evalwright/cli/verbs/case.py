"""``case add``: add one case, or many from stdin."""

from __future__ import annotations

import sys
from typing import Any

from evalwright.canonical import is_object
from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.errors import UsageError
from evalwright.suite import add_case, add_cases, find_suite
from evalwright.suite.read import case_lines, parse_json

__all__ = ["answer"]

SINGLE = ("task", "workspace", "id", "diff", "expect_json")


def answer(session: Session) -> Reply:
    """Add the case, or find that it exists already; with ``--stdin`` exit 1 when a line was rejected."""
    options = session.options
    directory, _ = find_suite(options.suite, open_project(session).layout.suites)
    if options.stdin:
        given = [name for name in SINGLE if getattr(options, name) is not None]
        if given:
            raise UsageError("--stdin reads whole cases", hint=f"drop --{given[0].replace('_', '-')}")
        return _many(directory)
    data = add_case(directory, _case(options))
    verb = "Added" if data["created"] else "Exists already:"
    return Reply(data=data, text=f"{verb} case {data['id']}\n").then(
        f"evalwright validate {data['suite']} --json", "check the suite"
    )


def _many(directory: Any) -> Reply:
    data = add_cases(directory, case_lines(sys.stdin.buffer.read()))
    counts = data["counts"]
    text = f"{data['suite']}: {counts['added']} added, {counts['skipped']} skipped, {counts['rejected']} rejected\n"
    text += "".join(f"  line {item['line']}: {item['message']}\n" for item in data["rejected"])
    return Reply(data=data, text=text, exit_code=1 if data["rejected"] else 0)


def _case(options: Any) -> dict[str, Any]:
    for name in ("task", "workspace"):
        if not getattr(options, name):
            raise UsageError(f"case add needs --{name}", hint="or pipe whole cases with --stdin")
    case: dict[str, Any] = {"task": options.task, "workspace": options.workspace}
    if options.diff:
        case["diff"] = options.diff
    if options.expect_json is not None:
        case["expect"] = _expect(options.expect_json)
    if options.id is not None:
        case["id"] = options.id
    return case


def _expect(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--expect-json: {error}", hint="""give a JSON object such as '{"exact": "ok"}'""") from error
    if not is_object(value):
        raise UsageError("--expect-json must be a JSON object", hint="""such as '{"exact": "ok"}'""")
    return value
