"""What an agent consumes, watched while it runs, and whether that is more than it may."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from evalwright.errors import EvalwrightError
from evalwright.model import RunnerResult, Usage
from evalwright.prices import PriceTable
from evalwright.worker.usage_file import MAX_BYTES, USAGE_FILE, peek, usage_from

if TYPE_CHECKING:
    from evalwright.interfaces import Session, TranscriptParser, TranscriptReader

__all__ = ["TRANSCRIPT_FILE", "Excess", "Meter"]

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], None]

TRANSCRIPT_FILE = "transcript"
TRANSCRIPT_VARIABLE = "$EVALWRIGHT_TRANSCRIPT_FILE"
MAX_TRANSCRIPT_BYTES = 64 << 20
PEEK_SECONDS = 0.25
WORDS = {"tokens": "tokens", "cost_usd": "US dollars", "turns": "turns"}


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that was exceeded: its key in ``runner.limits``, what was consumed, what was allowed."""

    limit: str
    value: float
    bound: float

    @property
    def kind(self) -> str:
        """Return the limit as the kind of an error."""
        return f"{self.limit}_limit"

    @property
    def message(self) -> str:
        """Say which limit, the value and the bound."""
        return f"the agent used {self.value:.10g} {WORDS[self.limit]}; its limit is {self.bound:.10g} ({self.limit})"


class Meter:
    """The consumption of one trial. Output is fed from any thread; the other methods may be called meanwhile.

    The runner's own report counts first, then the agent's usage file, then its transcript: every command's output, or the
    file ``path``. ``excess`` is the first limit found exceeded.
    ``exchange`` is where the usage file lies on this host while the agent runs.
    """

    def __init__(
        self,
        *,
        limits: Mapping[str, float] | None = None,
        prices: PriceTable | None = None,
        parser: TranscriptParser[Any] | None = None,
        path: str | None = None,
        exchange: Path | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self._limits = limits or {}
        self._path = path
        self._prices = prices or PriceTable()
        self._parser = parser
        self._exchange = exchange
        self._readers: list[TranscriptReader] = []
        self._fed = 0
        self.excess: Excess | None = None
        self._peek_at = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def tap(self, onward: OnOutput | None) -> Generator[OnOutput | None]:
        """Give what one command's output is to be told to, so that its transcript is read as it grows."""
        parser = self._parser
        if parser is None or self._path is not None:
            yield onward
            return
        with self._lock:
            reader = self._guarded(parser.reader)
            self._readers += [reader] if reader else []

        def told(name: Stream, data: bytes) -> None:
            if name == "stdout" and reader:
                self._feed(reader, data)
            if onward:
                onward(name, data)

        yield told
        if reader:
            with self._lock:
                self._guarded(reader.finish)

    def exceeded(self) -> bool:
        """Tell whether what is known by now exceeds a limit; looked up a few times a second, and then it stays so."""
        if self._limits and self.excess is None and time.monotonic() >= self._peek_at:
            started = time.monotonic()
            told = peek(self._exchange) if self._exchange else None
            self.excess = self._beyond(told or self._transcribed())
            ended = time.monotonic()
            self._peek_at = ended + max(PEEK_SECONDS, 10 * (ended - started))
        return self.excess is not None

    def settled(self, result: RunnerResult, session: Session | None) -> RunnerResult:
        """Return the result with all that is known of its usage, priced. What could not be read is in ``warnings``."""
        usage = result.usage or (self._reported(session) if session else None) or self._transcript_of(session)
        if usage is not None:
            usage = self._prices.priced(usage)
        if self.excess is None and self._limits:
            self.excess = self._beyond(usage)
        for limit in self._limits if self.excess is None else ():
            if _measured(limit, usage) is None:
                self.warnings.append(
                    f"the limit {limit} was not checked: the agent did not tell what it used, so only its time limit bounded it"
                )
        return replace(result, usage=usage)

    def _feed(self, reader: TranscriptReader, data: bytes) -> None:
        with self._lock:
            self._fed += len(data)
            if self._fed <= MAX_TRANSCRIPT_BYTES:
                self._guarded(lambda: reader.feed(data))

    def _beyond(self, usage: Usage | None) -> Excess | None:
        priced = self._prices.priced(usage) if usage else None
        for limit, bound in self._limits.items():
            value = _measured(limit, priced)
            if value is not None and value > bound:
                return Excess(limit, value, bound)
        return None

    def _reported(self, session: Session) -> Usage | None:
        try:
            usage = usage_from(session.get(session.exchange / USAGE_FILE, max_bytes=MAX_BYTES + 1))
            return None if usage == Usage() else usage
        except FileNotFoundError:
            return None
        except (OSError, ValueError, EvalwrightError) as error:
            self.warnings.append(f"the usage file is not used: {error}")
            return None

    def _transcript_of(self, session: Session | None) -> Usage | None:
        if self._parser and self._path is not None and session:
            self._read_file(self._parser, session, self._path)
        if self._fed > MAX_TRANSCRIPT_BYTES:
            self.warnings.append(f"the transcript is not used: it is longer than {MAX_TRANSCRIPT_BYTES} bytes")
            return None
        if left_out := sum(reader.left_out for reader in self._readers):
            self.warnings.append(f"events of the transcript that are too long to be counted: {left_out}")
        return self._transcribed()

    def _read_file(self, parser: TranscriptParser[Any], session: Session, path: str) -> None:
        place = session.exchange / TRANSCRIPT_FILE if path == TRANSCRIPT_VARIABLE else session.workspace / PurePosixPath(path)
        try:
            data = session.get(place, max_bytes=MAX_TRANSCRIPT_BYTES + 1)
        except (OSError, EvalwrightError) as error:
            self.warnings.append(f"the transcript {path} is not used: {error}")
            return
        reader = self._guarded(parser.reader)
        if reader:
            self._readers.append(reader)
            self._feed(reader, data)
            self._guarded(reader.finish)

    def _transcribed(self) -> Usage | None:
        """Return the sum over the commands whose output was a transcript."""
        with self._lock:
            found = [self._guarded(reader.transcript) for reader in self._readers]
        told = [transcript.usage for transcript in found if transcript and transcript.usage != Usage()]
        return Usage.total_of(told) if told and self._readers else None

    def _guarded(self, call: Callable[[], Any]) -> Any:
        """Call into the parser; a defect of it makes the usage unknown and is told once."""
        if self._parser is None:
            return None
        try:
            return call()
        except Exception as error:
            self._parser, self._readers = None, []
            self.warnings.append(f"the transcript parser failed: {type(error).__name__}: {error}")
            return None


def _measured(limit: str, usage: Usage | None) -> float | None:
    """Return the consumption that a limit bounds; of tokens, those that are known of."""
    if usage is None:
        return None
    return {"tokens": usage.known_tokens, "cost_usd": usage.cost, "turns": usage.turns}[limit]
