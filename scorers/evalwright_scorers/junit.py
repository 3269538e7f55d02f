"""Reader of JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from evalwright_scorers.reports import Listed, Outcome, Report, ReportUnreadable

__all__ = ["read_junit"]

MAX_DETAIL_CHARACTERS = 200


def read_junit(document: bytes) -> Report:
    """Return the test cases of a JUnit document. Raises ``ReportUnreadable``, also for one that declares entities."""
    try:
        text = document.decode("utf-8-sig")
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ReportUnreadable("it declares a document type or entities")
        root = ElementTree.fromstring(text)
    except (UnicodeDecodeError, ElementTree.ParseError, ValueError) as error:
        raise ReportUnreadable(f"it is not XML in UTF-8: {error}") from error
    if root.tag not in ("testsuites", "testsuite"):
        raise ReportUnreadable(f"its root is <{root.tag[:80]}>, not <testsuites>")
    return Report(_listed(case) for case in root.iter("testcase"))


def _listed(case: ElementTree.Element) -> Listed:
    classname, name = case.get("classname", ""), case.get("name", "")
    outcome, detail = _outcome(case)
    return Listed(
        name=f"{classname}::{name}" if classname else name,
        outcome=outcome,
        detail=detail,
        aliases=frozenset(_aliases(classname, name, case.get("file"))),
    )


def _outcome(case: ElementTree.Element) -> tuple[Outcome, str]:
    for tag, outcome in (("failure", "failed"), ("error", "error"), ("skipped", "skipped")):
        element = case.find(tag)
        if element is not None:
            detail = " ".join((element.get("message") or element.text or "").split())[:MAX_DETAIL_CHARACTERS]
            if tag == "skipped" and element.get("type") == "pytest.xfail":
                return "xfailed", detail
            return _OUTCOMES[outcome], detail
    return "passed", ""


_OUTCOMES: dict[str, Outcome] = {"failed": "failed", "error": "error", "skipped": "skipped"}


def _aliases(classname: str, name: str, file: str | None) -> Iterator[str]:
    """Yield the plain name and the node ids that pytest would print for the same test."""
    yield name
    if file:
        yield f"{file}::{name}"
    parts = classname.split(".") if classname else []
    for split in range(1, len(parts) + 1):
        yield "::".join(("/".join(parts[:split]) + ".py", *parts[split:], name))
