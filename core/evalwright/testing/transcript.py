"""The contract of transcript parsers."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from evalwright.interfaces import Host, TranscriptParser
from evalwright.model import Transcript, Usage
from evalwright.model.usage import COUNTS
from evalwright.testing._contract import Contract, since
from evalwright.testing._waiting import in_threads

__all__ = ["TranscriptContract"]

NOISE = (
    b"\xff\xfe\x00\x01",
    b"[" * 100_000,
    b'{"type": ',
    b"null\n1\n[]\n{}\n",
    b"\n\n\r\n",
    b'{"type": null, "message": 3}\n',
)
STRANGE: tuple[Any, ...] = (None, -1, float("inf"), "x", [3], {"y": []})
UNKNOWN = b'{"type": "evalwright_unknown_event", "data": [1, {"usage": "none"}]}\n'


class TranscriptContract(Contract[TranscriptParser[Any]]):
    """What every transcript parser promises: the right counts of a good transcript, and no harm from a bad one.

    Override ``make``, ``sample`` (a whole transcript) and ``expected`` (what it tells). ``json_lines`` is false for a format
    that is not one JSON object a line.
    """

    kind = "transcript"
    sample: ClassVar[bytes] = b""
    expected: ClassVar[Transcript] = Transcript()
    json_lines: ClassVar[bool] = True

    def make(self, host: Host) -> TranscriptParser[Any]:
        """Return a new parser."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def parsed(self, data: bytes) -> Transcript:
        """Return what a new parser reads from ``data``."""
        with self.made() as parser:
            return parser.parse(data)

    @since("1.0")
    def test_sample_tells_what_is_expected(self) -> None:
        """Tokens, turns, tool calls, cost, model and final text."""
        assert self.parsed(self.sample) == self.expected

    @since("1.0")
    def test_nothing_is_unknown_and_not_zero(self) -> None:
        """An empty transcript tells nothing: every count is ``None``."""
        assert self.parsed(b"") == Transcript(), "an empty transcript has counts; unknown is None"

    @since("1.0")
    def test_noise_neither_raises_nor_counts(self) -> None:
        """Bytes that are no text, torn and nested JSON, blank lines: an agent may write anything."""
        for noise in NOISE:
            try:
                found = self.parsed(noise)
            except Exception as error:
                raise AssertionError(f"{noise[:40]!r} raised {error!r}; pass by what cannot be understood") from error
            assert found.usage == Usage(), f"{noise[:40]!r} was counted: {found.usage}"

    @since("1.0")
    def test_cuts_do_not_matter(self) -> None:
        """The same bytes in one piece, in sevens, or one by one tell the same."""
        for size in (1, 7):
            with self.made() as parser:
                reader = parser.reader()
                for start in range(0, len(self.sample), size):
                    reader.feed(self.sample[start : start + size])
                reader.finish()
                assert reader.transcript() == self.expected, f"fed in pieces of {size} it tells something else"

    @since("1.0")
    def test_growing_transcript_never_raises(self) -> None:
        """What is known is asked while the agent still writes, and a torn end is passed by."""
        for end in range(0, len(self.sample), max(1, len(self.sample) // 50)):
            with self.made() as parser:
                reader = parser.reader()
                reader.feed(self.sample[:end])
                usage = reader.transcript().usage
                reader.finish()
            counts = [getattr(usage, name) for name in COUNTS]
            assert all(count is None or count >= 0 for count in counts), f"a count is negative: {usage}"

    @since("1.0")
    def test_line_endings_and_unknown_events_do_not_matter(self) -> None:
        """CRLF, blank lines and kinds of event that a later version of the agent brings."""
        if not self.json_lines:
            return
        lines = [line for line in self.sample.splitlines(keepends=True) if line.strip()]
        assert self.parsed(self.sample.replace(b"\n", b"\r\n")) == self.expected, "CRLF changes what is told"
        between = b"".join(line + UNKNOWN + b"\n" for line in lines)
        assert self.parsed(between) == self.expected, "unknown events change what is told"

    @since("1.0")
    def test_values_of_another_type_are_passed_by(self) -> None:
        """Each value of each event in turn is replaced by one of another type."""
        events = [json.loads(line) for line in self.sample.splitlines() if line.strip()] if self.json_lines else []
        for number, event in enumerate(events):
            for key in event:
                for strange in STRANGE:
                    changed = [*events[:number], {**event, key: strange}, *events[number + 1 :]]
                    data = b"".join(json.dumps(item).encode() + b"\n" for item in changed)
                    try:
                        self.parsed(data)
                    except Exception as error:
                        raise AssertionError(f"{key} = {strange!r} in event {number} raised {error!r}") from error

    @since("1.0")
    def test_eight_threads_read_at_once(self) -> None:
        """Every reader keeps its own counts."""
        with self.made() as parser:
            assert all(found == self.expected for found in in_threads(lambda _: parser.parse(self.sample)))
