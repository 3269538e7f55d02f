"""A judge that is asked with patience: from the cache, within limits, again after trouble, until the deadline."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from evalwright.canonical import digest_json, finite
from evalwright.errors import EvalwrightError, JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import Deadline, Judge, JudgeReply, JudgeRequest, Problem
from evalwright.judging.cache import ReplyCache
from evalwright.judging.limits import Limits
from evalwright.judging.reading import read_verdict
from evalwright.judging.tally import total_of
from evalwright.model.usage import as_amount
from evalwright.prices import PriceTable
from evalwright.redaction import Redactor
from evalwright.suite.shape import JudgeShape

__all__ = ["PatientJudge"]

LONGEST_PAUSE = 30.0
LONGEST_MODEL = 200
KINDS = (JudgeUnavailable, JudgeUnreadable, JudgeRefused)


class PatientJudge(Judge[JudgeShape]):
    """Wraps a judge plugin: :meth:`ask` does everything that is the core's. Thread-safe.

    Time spent waiting for a place among the calls in flight does not count against ``timeout_seconds``; the caller's
    deadline bounds it. ``pause`` and ``draw`` (a number from 0 to 1) are for tests.
    """

    api = "judge/1.0"

    def __init__(
        self,
        inner: Judge[Any],
        name: str,
        shape: JudgeShape,
        *,
        limits: Limits,
        cache: ReplyCache | None,
        redactor: Redactor,
        prices: PriceTable | None = None,
        pause: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        super().__init__(shape, inner.host)
        self.inner = inner
        self.name = name
        self._limits = limits
        self._cache = cache if shape.cache else None
        self._redactor = redactor
        self._prices = prices or PriceTable()
        self._pause = pause
        self._draw = draw

    @property
    def provider(self) -> str | None:
        """Name what the wrapped judge shares with others."""
        return self.inner.provider

    @property
    def model(self) -> str | None:
        """Name the wrapped judge's model."""
        return self.inner.model

    def sent(self, request: JudgeRequest) -> Mapping[str, Any]:
        """Return what the wrapped judge sends."""
        return self.inner.sent(request)

    def uses(self) -> Sequence[str]:
        """Name the other judges that the wrapped one asks."""
        return self.inner.uses()

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say what would keep the wrapped judge from working."""
        return self.inner.check(where)

    def start(self, deadline: Deadline) -> None:
        """Start the wrapped judge."""
        self.inner.start(deadline)

    def close(self, deadline: Deadline) -> None:
        """Close the wrapped judge."""
        self.inner.close(deadline)

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Return a reply, with its verdict where the request says what to read.

        Raises ``JudgeUnavailable`` after ``retries`` further tries or at the deadline, ``JudgeUnreadable`` when ``reasks``
        further questions gave no verdict either, ``JudgeRefused``, or another ``JudgeError``. No message holds a secret.
        """
        key = digest_json(finite({"sent": self.sent(request), "sample": request.sample, "repeat": request.repeat}))
        kept = self._kept(key, request)
        if kept is not None:
            return kept
        spent: list[float | None] = []
        try:
            reply = replace(self._asked(request, deadline, spent), cost=total_of(spent))
        except JudgeError as error:
            raise self._hidden(error, total_of(spent)) from None
        if self._cache:
            self._cache.put(key, reply)
        return reply

    def _kept(self, key: str, request: JudgeRequest) -> JudgeReply | None:
        reply = self._cache.get(key) if self._cache else None
        try:
            return replace(self._with_verdict(reply, request), cached=True) if reply else None
        except JudgeUnreadable:
            return None

    def _asked(self, request: JudgeRequest, deadline: Deadline, spent: list[float | None]) -> JudgeReply:
        """Try until there is an answer; a fault of the line and a reply without a verdict are counted apart.

        ``spent`` gets what each try cost.
        """
        retries, reasks = self.config.retries, self.config.reasks
        limit: Deadline | None = None
        tries = 0
        while True:
            try:
                with self._limits.place(self._places(), deadline):
                    limit = limit or Deadline(min(deadline.at, time.monotonic() + self.config.timeout_seconds))
                    tries += 1
                    reply = self._tried(request, limit, spent)
                return replace(self._with_verdict(reply, request), tries=tries)
            except JudgeUnavailable as error:
                if error.final or retries == 0 or limit is None:
                    raise self._given_up(error, tries) from error
                retries -= 1
                self._wait(error, self.config.retries - retries, limit, tries)
            except JudgeUnreadable:
                if reasks == 0 or limit is None or limit.expired:
                    raise
                reasks -= 1
            except EvalwrightError:
                raise
            except (Exception, SystemExit, GeneratorExit) as error:
                raise JudgeError(
                    f"judge {self.name} failed: {type(error).__name__}: {error}",
                    hint="mend the judge's plugin",
                    kind="judge_defect",
                ) from error

    def _tried(self, request: JudgeRequest, limit: Deadline, spent: list[float | None]) -> JudgeReply:
        try:
            reply = self._clean(self.inner.ask(request, limit))
        except JudgeError as error:
            spent.append(as_amount(error.cost))
            raise
        spent.append(reply.cost)
        return reply

    def _places(self) -> dict[str, int]:
        places = {f"judge {self.name}": self.config.max_in_flight}
        return places | ({f"provider {self.provider}": self.config.provider_max_in_flight} if self.provider else {})

    def _wait(self, error: JudgeUnavailable, number: int, limit: Deadline, tries: int) -> None:
        """Sleep as long as the server asks, or twice as long as the last time; give up when that would be too late."""
        backoff = min(LONGEST_PAUSE, self.config.backoff_seconds * 2 ** (number - 1)) * (0.5 + self._draw() / 2)
        seconds = max(backoff, error.retry_after or 0.0)
        if seconds >= limit.remaining:
            raise self._given_up(error, tries) from error
        self._pause(seconds)

    def _given_up(self, error: JudgeUnavailable, tries: int) -> JudgeUnavailable:
        asked = f" (retry after {error.retry_after:g} s)" if error.retry_after else ""
        return JudgeUnavailable(
            f"judge {self.name}, {tries} {'try' if tries == 1 else 'tries'}: {error.message}{asked}",
            hint=error.hint,
            kind=error.kind,
            final=True,
        )

    def _with_verdict(self, reply: JudgeReply, request: JudgeRequest) -> JudgeReply:
        if request.form is None or reply.verdict is not None:
            return reply
        question = "\n".join(message["content"] for message in request.messages)
        return replace(reply, verdict=read_verdict(reply.text, request.form, question))

    def _clean(self, reply: JudgeReply) -> JudgeReply:
        model = None if reply.model is None else self._redactor.text(finite(reply.model))[:LONGEST_MODEL]
        text = self._redactor.text(finite(reply.text))
        details, cost = self._redactor.json(finite(reply.details)), as_amount(self._cost(reply))
        return replace(reply, text=text, model=model, details=details, cost=cost, cached=False)

    def _cost(self, reply: JudgeReply) -> float | None:
        """Return what the reply says that it cost, else what the table of prices does; an unknown cache counts as unused."""
        usage = reply.usage
        if reply.cost is not None or usage is None:
            return reply.cost
        read, written = usage.cache_read or 0, usage.cache_write or 0
        told = replace(usage, cache_read=read, cache_write=written, model=reply.model or self.model)
        return self._prices.priced(told).cost

    def _hidden(self, error: JudgeError, cost: float | None) -> JudgeError:
        """Return the error with the judge's name and what all tries cost, without secrets."""
        message = error.message if error.message.startswith("judge ") else f"judge {self.name}: {error.message}"
        details = self._redactor.json(dict(error.details))
        kind: Any = next((kind for kind in KINDS if isinstance(error, kind)), JudgeError)
        final = {"final": True} if kind is JudgeUnavailable else {}
        hidden: JudgeError = kind(
            self._redactor.text(message), hint=self._redactor.text(error.hint), kind=error.kind, **final, **details
        )
        hidden.cost = cost
        return hidden
