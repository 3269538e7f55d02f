"""The meter adds up what commands tell, bounds what it reads, and outlives every defect around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from evalwright.errors import SandboxLost
from evalwright.interfaces import Host, Session
from evalwright.model import RunnerResult, Transcript, Usage
from evalwright.testing import FakeHost, FakeSession, in_threads
from evalwright.worker import meter as module
from evalwright.worker.meter import Meter
from evalwright_adapters.stream_json import StreamJsonParser, StreamJsonReader


def event(tokens: int, number: int = 0) -> bytes:
    usage = {"input_tokens": 0, "output_tokens": tokens, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    said: dict[str, Any] = {"id": f"m{number}", "content": [], "usage": usage}
    return json.dumps({"type": "assistant", "message": said}).encode() + b"\n"


@pytest.fixture
def parser() -> StreamJsonParser:
    with FakeHost() as host:
        return StreamJsonParser(None, host)


def told(meter: Meter, *chunks: bytes) -> None:
    """Let one command write chunks to its stdout."""
    with meter.tap(None) as on_output:
        for chunk in chunks:
            if on_output:
                on_output("stdout", chunk)


def usage_of(meter: Meter) -> Usage | None:
    return meter.settled(RunnerResult(), None).usage


def test_transcripts_of_several_commands_are_added_and_silent_ones_left_out(parser: StreamJsonParser) -> None:
    meter = Meter(parser=parser)
    told(meter, b"installing\n")
    told(meter, event(3)[:20], event(3)[20:])
    told(meter, event(4))
    usage = usage_of(meter)
    assert usage is not None
    assert (usage.output, usage.turns) == (7, 2)


def test_commands_that_run_at_once_do_not_disturb_each_other(parser: StreamJsonParser) -> None:
    meter = Meter(parser=parser)
    in_threads(lambda thread: told(meter, *(bytes([byte]) for byte in event(1, thread) * 3)))
    usage = usage_of(meter)
    assert usage is not None
    assert usage.output == 8


def test_stderr_is_no_transcript_and_output_goes_onward(parser: StreamJsonParser) -> None:
    meter = Meter(parser=parser)
    seen: list[tuple[str, bytes]] = []
    with meter.tap(lambda name, data: seen.append((name, data))) as on_output:
        assert on_output is not None
        on_output("stderr", event(3))
    assert usage_of(meter) is None
    assert seen == [("stderr", event(3))]


def test_transcript_beyond_the_bound_leaves_the_usage_unknown(
    parser: StreamJsonParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_TRANSCRIPT_BYTES", 400)
    meter = Meter(parser=parser)
    told(meter, event(1), event(2, 2), event(3, 3))
    assert usage_of(meter) is None
    assert "longer than 400 bytes" in meter.warnings[0]


def test_limit_that_was_exceeded_stays_so_whatever_follows(parser: StreamJsonParser) -> None:
    meter = Meter(parser=parser, limits={"tokens": 2})
    told(meter, event(3))
    assert meter.exceeded()
    meter.settled(RunnerResult(usage=Usage(input=0, output=0)), None)
    assert meter.excess is not None
    assert (meter.excess.limit, meter.excess.value, meter.excess.bound) == ("tokens", 3, 2)


def test_part_of_the_tokens_is_enough_to_exceed_a_limit() -> None:
    meter = Meter(limits={"tokens": 2})
    meter.settled(RunnerResult(usage=Usage(output=3)), None)
    assert meter.excess is not None


class LostSession(FakeSession):
    """Its files are out of reach."""

    def get(self, path: PurePosixPath, *, max_bytes: int) -> bytes:
        raise SandboxLost("gone", hint="")


@pytest.mark.parametrize("path", [None, "t.jsonl"])
def test_lost_sandbox_leaves_the_usage_unknown(parser: StreamJsonParser, path: str | None, tmp_path: Path) -> None:
    lost: Session = LostSession.__new__(LostSession)
    lost.workspace, lost.exchange = PurePosixPath("/w"), PurePosixPath("/x")
    meter = Meter(parser=parser, path=path)
    assert meter.settled(RunnerResult(), lost).usage is None
    assert "gone" in meter.warnings[0]


class BrokenReader(StreamJsonReader):
    """Fails in the method that it is told."""

    def __init__(self, method: str) -> None:
        super().__init__()
        self.method = method

    def feed(self, data: bytes) -> None:
        self.fail("feed")
        super().feed(data)

    def finish(self) -> None:
        self.fail("finish")
        super().finish()

    def transcript(self) -> Transcript:
        self.fail("transcript")
        return super().transcript()

    def fail(self, method: str) -> None:
        if method == self.method:
            raise RuntimeError(f"{method} is broken")


class BrokenParser(StreamJsonParser):
    def __init__(self, host: Host, make: Callable[[], StreamJsonReader]) -> None:
        super().__init__(None, host)
        self.make = make

    def reader(self) -> StreamJsonReader:
        return self.make()


def refuse() -> StreamJsonReader:
    raise RuntimeError("reader is broken")


@pytest.mark.parametrize("method", ["reader", "feed", "finish", "transcript"])
def test_defect_of_a_parser_is_told_once_and_the_usage_is_unknown(method: str) -> None:
    with FakeHost() as host:
        meter = Meter(parser=BrokenParser(host, refuse if method == "reader" else lambda: BrokenReader(method)))
    told(meter, event(1), event(2))
    told(meter, event(3))
    assert usage_of(meter) is None
    assert [warning for warning in meter.warnings if f"{method} is broken" in warning] == meter.warnings
    assert len(meter.warnings) == 1


def test_large_values_are_shown_in_full() -> None:
    meter = Meter(limits={"tokens": 1000000})
    meter.settled(RunnerResult(usage=Usage(output=1234567)), None)
    assert meter.excess is not None
    assert meter.excess.message == "the agent used 1234567 tokens; its limit is 1000000 (tokens)"
