"""Questions to judges: a template whose values are put in once, and data that cannot pass for the author's own words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from evalwright.canonical import digest_text, finite

__all__ = ["PromptTemplate"]

PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
LIKE_A_MARK = re.compile(r"^([ \t\\]*)<<<", re.MULTILINE)
LINE_ENDS = re.compile("\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


class PromptTemplate:
    """A text with ``{{ name }}`` placeholders."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.names = frozenset(PLACEHOLDER.findall(text))

    def unknown(self, names: Collection[str]) -> list[str]:
        """Return the placeholders that are none of ``names``."""
        return sorted(self.names - set(names))

    def holding(self, name: str, text: str) -> PromptTemplate:
        """Return the template with a part of it in its place; placeholders of that part are placeholders of the whole."""
        return PromptTemplate(PLACEHOLDER.sub(lambda match: text if match[1] == name else match[0], self._text))

    def render(self, values: Mapping[str, str], data: Collection[str] = ()) -> str:
        """Return the text with every placeholder replaced once: what a value holds is never looked at again.

        Each value named in ``data`` comes as a block between two marker lines. Their number is the digest of all that is
        put in, so that the same question has the same text and no value can hold it; a line of a value that begins like a
        marker is escaped. Raises ``KeyError`` for a placeholder without a value.
        """
        plain = {name: str(finite(values[name])) for name in self.names}
        boundary = digest_text("\0".join([self._text, *(plain[name] for name in sorted(plain))]))[7:23]
        shown = {name: _block(name, text, boundary) if name in data else text for name, text in plain.items()}
        return PLACEHOLDER.sub(lambda match: shown[match[1]], self._text)


def _block(name: str, text: str, boundary: str) -> str:
    lines = LINE_ENDS.sub("\n", text)
    escaped = LIKE_A_MARK.sub(r"\1\\<<<", lines)
    return f"<<<BEGIN {name} {boundary}>>>\n{escaped}\n<<<END {name} {boundary}>>>"
