"""The audit for people: the answer first, then each case to mend, then what an agent could have read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.audit.audit import BLOCKING
from evalwright.audit.canaries import PLACES

__all__ = ["audit_text", "leak_text"]

SHOWN_PATHS = 3
NAMED = "  The search is not complete: an agent may reach what was not searched. See left_out in --json."


def audit_text(data: Mapping[str, Any]) -> str:
    """Return the audit as plain lines."""
    blocking = [problem for problem in data["problems"] if problem["kind"] in BLOCKING]
    cases = len({problem["case"] for problem in blocking})
    total = data["case_count"]
    if blocking:
        head = f"{data['suite']}: this suite cannot tell. Fix {cases} of {total} cases before you believe a score."
    elif data["gold"]["cases"] == 0:
        head = f"{data['suite']}: no case passes by doing nothing. Without gold nothing shows that they can be passed."
    else:
        head = f"{data['suite']}: every case can tell, as far as a no-op agent and the gold show."
    lines = [head]
    for problem in data["problems"]:
        mark = "✗" if problem["kind"] in BLOCKING else "~"
        lines.append(f"  {mark} {problem['case']}  {problem['kind']}: {problem['why']}")
    gold, noop = data["gold"], data["noop"]
    parts = [f"gold passes {gold['pass']} of {gold['cases']}", f"no-op passes {noop['pass']} of {total}"]
    if data["repeats"] > 1:
        parts.append(f"stable over {data['repeats']} repeats: {gold['stable']} of {gold['cases']}")
    if gold["cases"] < total:
        parts.append(f"{total - gold['cases']} cases have no gold")
    return "\n".join([*lines, f"  {' · '.join(parts)}"]) + "\n"


def leak_text(leak: Mapping[str, Any]) -> str:
    """Return the result of the leak test as plain lines: clean, or where gold can be read and what to do."""
    where = f"in the sandbox {leak['sandbox']} ({leak['isolation']})"
    searched = leak["searched"]
    paths = _by_place(leak["hits"])
    if paths:
        count = len(paths)
        lines = [f"leak: an agent {where} can reach gold in {count} place{'s' if count != 1 else ''}."]
    elif leak["complete"]:
        lines = [f"leak: clean. A spy {where} found none of the canaries in {len(leak['places'])} places."]
    else:
        lines = [f"leak: nothing found so far {where}, but not everything was searched."]
    for place, found in paths.items():
        lines.append(f"  ✗ {place}: {PLACES[place]}")
        lines += [f"      {path}" + (f"  ({how})" if how != "plain" else "") for path, how in found[:SHOWN_PATHS]]
        lines += [f"      and {len(found) - SHOWN_PATHS} more"] if len(found) > SHOWN_PATHS else []
    size = searched["bytes"] / 1e6
    lines.append(f"  searched {searched['files']:,} files, read {size:,.1f} MB in {searched['seconds']:.1f} s by {leak['spy']}")
    lines += [f"  not searched: {left['path']}: {left['why']}" for left in leak["left_out"][:SHOWN_PATHS]]
    if not leak["complete"]:
        more = "python3 inside the sandbox" if leak["spy"] == "sh" else "a longer time with --seconds"
        lines.append(f"  The search is not complete; {more} lets it reach further." if not leak["left_out"] else NAMED)
    if paths:
        lines.append(f"  {_cure(leak)}")
    return "\n".join(lines) + "\n"


def _by_place(hits: Sequence[Mapping[str, str]]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for hit in hits:
        found.setdefault(hit["place"], []).append((hit["path"], hit["how"]))
    return found


def _cure(leak: Mapping[str, Any]) -> str:
    if leak["promised"]:
        return f"The sandbox {leak['sandbox']} promises gold-isolated and breaks it: correct its configuration, or report it."
    return f"The sandbox {leak['sandbox']} does not hide files. Choose one that is gold-isolated: evalwright doctor"
