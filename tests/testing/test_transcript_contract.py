"""Every check of the contract of transcript parsers fails on a parser that is broken in that way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from evalwright.interfaces import Host, JsonLinesReader, TranscriptParser, TranscriptReader
from evalwright.model import Transcript, Usage
from evalwright.model.usage import as_count
from evalwright.testing import Contract, TranscriptContract

SAMPLE = b'{"type": "usage", "input": 3}\n{"type": "usage", "input": 4}\n'


class GoodReader(JsonLinesReader):
    def __init__(self) -> None:
        super().__init__()
        self.input: int | None = None

    def event(self, record: Mapping[str, Any]) -> None:
        count = as_count(record.get("input"))
        if record.get("type") == "usage" and count is not None:
            self.input = (self.input or 0) + count

    def transcript(self) -> Transcript:
        return Transcript(usage=Usage(input=self.input))


class Parser(TranscriptParser[None]):
    api = "transcript/1.0"

    def __init__(self, host: Host, reader: Callable[[], TranscriptReader]) -> None:
        super().__init__(None, host)
        self._reader = reader

    def reader(self) -> TranscriptReader:
        return self._reader()


def made_of(reader: Callable[[], TranscriptReader]) -> type[TranscriptContract]:
    class Made(TranscriptContract):
        sample = SAMPLE
        expected = Transcript(usage=Usage(input=7))

        def make(self, host: Host) -> Parser:
            return Parser(host, reader)

    return Made


class TestGoodParser(made_of(GoodReader)):
    pass


class LastOnly(GoodReader):
    def event(self, record: Mapping[str, Any]) -> None:
        self.input = as_count(record.get("input")) or self.input


class ZeroForUnknown(GoodReader):
    def transcript(self) -> Transcript:
        return Transcript(usage=Usage(input=self.input or 0))


class Strict(GoodReader):
    """Reads whatever it is given as JSON, chunk by chunk."""

    def feed(self, data: bytes) -> None:
        for line in data.splitlines():
            if line.strip():
                self.event(json.loads(line))


class Chunked(GoodReader):
    def feed(self, data: bytes) -> None:
        super().feed(data)
        super().finish()


class Impatient(GoodReader):
    def feed(self, data: bytes) -> None:
        super().feed(data)
        self.unread = not data.endswith(b"\n")

    def transcript(self) -> Transcript:
        return Transcript(usage=Usage(input=-1)) if self.unread else super().transcript()

    def finish(self) -> None:
        super().finish()
        self.unread = False


class EveryEvent(GoodReader):
    def event(self, record: Mapping[str, Any]) -> None:
        if record:
            self.input = (self.input or 0) + (as_count(record.get("input")) or 100)


class Trusting(GoodReader):
    def event(self, record: Mapping[str, Any]) -> None:
        if record.get("type") == "usage":
            self.input = (self.input or 0) + record["input"]


def one_reader() -> Callable[[], TranscriptReader]:
    class Shared(GoodReader):
        def finish(self) -> None:
            super().finish()
            threading.Event().wait(0.002)

        def transcript(self) -> Transcript:
            found = super().transcript()
            self.input = None
            return found

    shared = Shared()
    return lambda: shared


BROKEN: list[tuple[str, Callable[[], TranscriptReader]]] = [
    ("test_sample_tells_what_is_expected", LastOnly),
    ("test_nothing_is_unknown_and_not_zero", ZeroForUnknown),
    ("test_noise_neither_raises_nor_counts", Strict),
    ("test_noise_neither_raises_nor_counts", EveryEvent),
    ("test_cuts_do_not_matter", Chunked),
    ("test_growing_transcript_never_raises", Impatient),
    ("test_line_endings_and_unknown_events_do_not_matter", EveryEvent),
    ("test_values_of_another_type_are_passed_by", Trusting),
    ("test_eight_threads_read_at_once", one_reader()),
]


@pytest.mark.parametrize(("check", "reader"), BROKEN)
def test_check_fails_on_a_parser_that_is_broken_in_that_way(
    check: str, reader: Callable[[], TranscriptReader], prove: Callable[[type[Contract[Any]], str], None]
) -> None:
    prove(made_of(reader), check)


def test_every_check_is_proved(checks: Callable[[type[Contract[Any]]], set[str]]) -> None:
    assert {check for check, _ in BROKEN} == checks(TranscriptContract)
