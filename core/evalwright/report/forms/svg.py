"""SVG from small pure functions: elements, text, bars, and documents that can be read in light, in dark and aloud."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from evalwright.report.wording import printable

__all__ = ["Box", "document", "element", "label", "line", "number", "rectangle", "text_width", "whisker"]

# Mid-tones that stand out on white and on near-black; the sheet brightens text where the reader prefers a dark page.
STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}"
    ".strong{font-weight:600;fill:#24292f}"
    ".axis{stroke:#8c959f;stroke-width:1}"
    ".pass{fill:#2f81f7}.fail{fill:none;stroke:#bc4c00}.error{fill:#8250df}.none{fill:none;stroke:#8c959f;stroke-dasharray:2 2}"
    ".span{fill:#2f81f7;fill-opacity:.35}.value{fill:#2f81f7}.better{fill:#1a7f37}.worse{fill:#bc4c00}.open{fill:#6e7781}"
    ".whisker{stroke:#2f81f7;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#9da7b1}.strong{fill:#e6edf3}}"
)
CHARACTER = 7.2
LONGEST = 200


class Box(NamedTuple):
    """A rectangle in pixels: left, top, width, height."""

    x: float
    y: float
    width: float
    height: float


def document(width: float, height: float, *, title: str, description: str, body: Sequence[str]) -> str:
    """Return a whole SVG file. ``title`` and ``description`` are what a screen reader says."""
    inner = "\n".join([f"<title>{_escaped(title)}</title>", f"<desc>{_escaped(description)}</desc>", f"<style>{STYLE}</style>"])
    size = f'width="{number(width)}" height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{_escaped(title)}">'
    return "\n".join([head, inner, *body, "</svg>"]) + "\n"


def element(name: str, content: str = "", /, **attributes: str | float) -> str:
    """Return an element. ``content`` is markup and stays as it is; attribute values are escaped.

    An underscore in a name stands for a dash; one at the end is dropped, so that ``class_`` can be said.
    """
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{said}>{content}</{name}>" if content else f"<{name}{said}/>"


def label(x: float, y: float, text: str, *, kind: str = "", anchor: str = "start") -> str:
    """Return one line of text whose baseline is at ``y``. ``anchor`` is ``start``, ``middle`` or ``end``."""
    extra = {"class_": kind} if kind else {}
    return element("text", _escaped(text), x=x, y=y, text_anchor=anchor, **extra)


def rectangle(box: Box, kind: str, *, title: str = "", opacity: float | None = None) -> str:
    """Return a filled rectangle; ``title`` is shown when the pointer rests on it."""
    inner = f"<title>{_escaped(title)}</title>" if title else ""
    extra = {} if opacity is None else {"fill_opacity": opacity}
    return element("rect", inner, x=box.x, y=box.y, width=box.width, height=box.height, rx=2, class_=kind, **extra)


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> str:
    """Return a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def whisker(x: float, low: float, high: float) -> str:
    """Return a vertical interval from ``low`` to ``high`` with a cap at each end, all in pixels."""
    ends = [line(x - 4, y, x + 4, y, "whisker") for y in (low, high)]
    return "".join([line(x, low, x, high, "whisker"), *ends])


def number(value: float) -> str:
    """Return a coordinate with at most two decimals, the same on every machine."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def text_width(text: str) -> float:
    """Return about how wide a text is, in pixels."""
    return len(text) * CHARACTER


def _value(value: str | float) -> str:
    return _escaped(value) if isinstance(value, str) else number(value)


def _escaped(text: str) -> str:
    """Return text for content and attributes alike; what XML cannot hold stands as its escape."""
    shown = printable(text)
    return html.escape(shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…", quote=True)
