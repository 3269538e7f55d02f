"""Whether rounds of review and repair come closer to an end."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from evalwright_plugins.workflow.findings.finding import Finding, plain

__all__ = ["not_converging"]

ALIKE = 0.85
MOST_COMPARED = 20
COMPARED_CHARACTERS = 200


def not_converging(previous: Sequence[Finding], current: Sequence[Finding]) -> str | None:
    """Return why the blocking findings of two rounds, one after the other, do not get closer to none; ``None`` when they do.

    They do not when there are more distinct ones than before, or when one of them comes back: the same fingerprint, or, in
    the same file where both name one, a summary alike by at least 0.85 (difflib's ratio, Ratcliff and Obershelp 1988).
    Beyond the first 20 findings of a round and 200 characters of a summary only fingerprints are compared.
    """
    before = {finding.fingerprint: finding for finding in previous}
    now = {finding.fingerprint: finding for finding in current}
    if not before:
        return None
    for fingerprint, finding in now.items():
        if fingerprint in before:
            return f"the same issue came back: [{finding.severity} {fingerprint}] {finding.summary}"
    if len(now) > len(before):
        return f"{len(now)} blocking findings, {len(before)} in the round before"
    return _alike(list(before.values())[:MOST_COMPARED], list(now.values())[:MOST_COMPARED])


def _alike(before: Sequence[Finding], now: Sequence[Finding]) -> str | None:
    matcher = SequenceMatcher(autojunk=False)
    for new in now:
        matcher.set_seq2(plain(new.summary)[:COMPARED_CHARACTERS])
        for old in before:
            if new.file and old.file and new.file != old.file:
                continue
            matcher.set_seq1(plain(old.summary)[:COMPARED_CHARACTERS])
            if matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE:
                return (
                    f"an issue came back in other words: [{new.severity} {new.fingerprint}] {new.summary}"
                    f" (before: [{old.severity} {old.fingerprint}] {old.summary})"
                )
    return None
