"""Labels of a multiple choice, read from an answer's text."""

from __future__ import annotations

from collections.abc import Sequence

import regex

from evalwright_scorers.answers import Declaration, declarations

__all__ = ["Labels"]

_OPEN = r"""[\s(\[{*_`"'$]*(?:\\boxed\{|\\text\{)*"""
_CLOSE = r"""[\s)\]}*_`"'$.,:;!]*"""
_NOUN = r"(?:(?:the\s+)?(?:option|choice|letter|answer)\s+)?"
_END = r"(?![\w+#]|['’-]\w)"
_MAX_LINE_CHARACTERS = 500
_ARTICLES = frozenset({"a", "i"})
_AFTER_ARTICLE = regex.compile(r"\W*$|\s*[^\s\w]|\s+(?:because|since|as|is|due|or|and)\b", regex.IGNORECASE)


class Labels:
    """The labels of one question, in any case unless two of them differ only by it."""

    def __init__(self, labels: Sequence[str]) -> None:
        folded = {label.casefold(): label for label in labels}
        flags = regex.IGNORECASE if len(folded) == len(labels) else 0
        self._folded = folded if flags else {label: label for label in labels}
        self._ignore_case = bool(flags)
        any_label = "|".join(regex.escape(label) for label in sorted(labels, key=len, reverse=True))
        self._leading = regex.compile(rf"{_OPEN}{_NOUN}{_OPEN}(?P<label>{any_label}){_END}(?P<rest>.*)", flags)
        self._second = regex.compile(
            rf"""[)\]*_`"'.]*\s*(?:,|/|&|;|\bor\b|\band\b)+\s*(?:(?:or|and)\s+)?{_OPEN}(?P<label>{any_label}){_END}"""
            r"(?=(?P<rest>.*))",
            flags,
        )
        self._alone = regex.compile(rf"{_OPEN}{_NOUN}{_OPEN}(?P<label>{any_label}){_CLOSE}", flags)
        self._marked = regex.compile(
            rf"\((?P<label>{any_label})\)|\[(?P<label>{any_label})\]|\*\*\(?(?P<label>{any_label})\)?[.:]?\*\*"
            rf"|\\boxed\{{(?:\\text\{{)?(?P<label>{any_label})\}}"
        )

    def read(self, text: str) -> tuple[str, ...]:
        """Return the answer; nothing when there is none, several labels when it cannot be told which is meant."""
        last_line = text.rstrip()[-_MAX_LINE_CHARACTERS:].rpartition("\n")[2]
        alone = self._alone.fullmatch(last_line)
        if alone is not None:
            return (self._label(alone["label"]),)
        for declaration in declarations(text):
            labels = self._declared(declaration)
            if labels or declaration.formal:
                return labels
        return tuple(dict.fromkeys(self._label(match["label"]) for match in self._marked.finditer(text)))

    def _declared(self, declaration: Declaration) -> tuple[str, ...]:
        match = self._leading.match(declaration.text)
        if match is None or self._is_article(match["label"], match["rest"]):
            return ()
        labels = [self._label(match["label"])]
        second = self._second.match(match["rest"])
        while second is not None and not self._is_article(second["label"], second["rest"]):
            labels.append(self._label(second["label"]))
            second = self._second.match(match["rest"], second.end())
        return tuple(dict.fromkeys(labels))

    def _is_article(self, label: str, rest: str) -> bool:
        return label.casefold() in _ARTICLES and _AFTER_ARTICLE.match(rest) is None

    def _label(self, written: str) -> str:
        return self._folded[written.casefold() if self._ignore_case else written]
