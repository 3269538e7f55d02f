"""Reads the stream-JSON transcripts of command-line agents: ``assistant``, ``user`` and ``result`` events, one a line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeGuard

from evalwright.interfaces import JsonLinesReader, TranscriptParser
from evalwright.model import Transcript, Usage
from evalwright.model.usage import as_amount, as_count, exact_sum

__all__ = ["StreamJsonParser", "StreamJsonReader"]

Record = Mapping[str, Any]
TOKENS = ("input", "output", "cache_read", "cache_write")
MESSAGE_KEYS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
MODEL_KEYS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
RESULT_KEYS = tuple(f"total_{key}" for key in MESSAGE_KEYS)
SYNTHETIC = "<synthetic>"


class StreamJsonParser(TranscriptParser[None]):
    """The format of ``claude -p --output-format stream-json`` and of tools that write the same events.

    Input excludes cached tokens. The totals of a ``result`` event count; what follows the last one, or a transcript that was
    cut before it, is summed from the messages.
    """

    api = "transcript/1.0"

    def reader(self) -> StreamJsonReader:
        """Return a new reader."""
        return StreamJsonReader()


class StreamJsonReader(JsonLinesReader):
    """Counts every event, message, tool call and tool error once, by its id where it has one."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[str] = set()
        self._finished: list[Usage] = []
        self._messages: dict[str, Usage] = {}
        self._turns: set[str] = set()
        self._calls: set[str] = set()
        self._errors: set[str] = set()
        self._models: set[str] = set()
        self._text: str | None = None
        self._events = 0

    def event(self, record: Record) -> None:
        """Take one event; kinds that are not known are passed by."""
        kind, parent = record.get("type"), record.get("parent_tool_use_id")
        if kind not in ("assistant", "user", "result") or self._repeated(record.get("uuid")):
            return
        self._events += 1
        message = _object(record.get("message"))
        if kind == "assistant":
            self._assistant(message, main=parent is None)
        elif kind == "user":
            failed = [block for block in _blocks(message, "tool_result") if block.get("is_error") is True]
            self._errors.update(self._name(block.get("tool_use_id"), index) for index, block in enumerate(failed))
        else:
            self._result(record)

    def transcript(self) -> Transcript:
        """Return what is known so far."""
        if not self._events:
            return Transcript()
        parts = self._finished + ([self._unfinished()] if self._messages or not self._finished else [])
        usage = replace(_sum(parts), tool_calls=len(self._calls), tool_errors=len(self._errors))
        model = next(iter(self._models)) if len(self._models) == 1 else None
        return Transcript(usage=replace(usage, model=model), model=model, final_text=self._text)

    def _assistant(self, message: Record, *, main: bool) -> None:
        if message.get("model") == SYNTHETIC:
            return
        if isinstance(message.get("model"), str):
            self._models.add(message["model"])
        name = self._name(message.get("id"))
        usage = _tokens(_object(message.get("usage")), MESSAGE_KEYS)
        if f"message {name}" not in self._seen and (usage != Usage() or name not in self._messages):
            self._messages[name] = usage
            self._turns.update({name} if main else ())
        calls = enumerate(_blocks(message, "tool_use"))
        self._calls.update(self._name(block.get("id"), index) for index, block in calls)
        texts = [block["text"] for block in _blocks(message, "text") if isinstance(block.get("text"), str)]
        if texts and main:
            self._text = "\n".join(texts)

    def _result(self, record: Record) -> None:
        """Let the totals of a result replace what its messages said; what it leaves out is still theirs."""
        told = _result_tokens(record)
        told = replace(told, turns=as_count(record.get("num_turns")), cost=as_amount(record.get("total_cost_usd")))
        summed = self._unfinished()
        known = {name: value for name, value in told.as_json().items() if value is not None}
        self._finished.append(replace(summed, **known))
        self._seen.update(f"message {name}" for name in self._messages)
        self._messages, self._turns = {}, set()
        if isinstance(record.get("result"), str):
            self._text = record["result"]

    def _unfinished(self) -> Usage:
        """Return the sum of the messages since the last result."""
        if not self._messages:
            return Usage()
        return replace(_sum(list(self._messages.values())), turns=len(self._turns))

    def _repeated(self, identifier: Any) -> bool:
        if not isinstance(identifier, str):
            return False
        repeated = identifier in self._seen
        self._seen.add(identifier)
        return repeated

    def _name(self, identifier: Any, index: int = 0) -> str:
        """Return an id as it stands, or one that no other event has."""
        return identifier if isinstance(identifier, str) else f"event {self._events}.{index}"


def _result_tokens(record: Record) -> Usage:
    """Return the tokens of a result: those of all its models, which its cost belongs to, else its own totals."""
    models = _object(record.get("modelUsage")).values()
    if models:
        return _sum([_tokens(_object(model), MODEL_KEYS) for model in models])
    usage = record.get("usage")
    return _tokens(_object(usage), MESSAGE_KEYS) if usage else _tokens(record, RESULT_KEYS)


def _tokens(record: Record, keys: Iterable[str]) -> Usage:
    return Usage.from_json({name: as_count(record.get(key)) for name, key in zip(TOKENS, keys, strict=True)})


def _sum(parts: list[Usage]) -> Usage:
    """Return the sum of each field; one that a part does not know is unknown."""
    costs = [part.cost for part in parts]
    known = [cost for cost in costs if cost is not None]
    counts = {name: exact_sum(getattr(part, name) for part in parts) for name in (*TOKENS, "turns")}
    return Usage.from_json({**counts, "cost": math.fsum(known) if len(known) == len(costs) else None})


def _object(value: Any) -> Record:
    return value if _is_object(value) else {}


def _blocks(message: Record, kind: str) -> list[Record]:
    """Return the blocks of one kind in a message's content."""
    content = message.get("content")
    return [block for block in map(_object, content) if block.get("type") == kind] if _is_array(content) else []


def _is_object(value: Any) -> TypeGuard[Record]:
    return isinstance(value, dict)


def _is_array(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
