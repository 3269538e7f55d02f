"""What a person orders, and the way of an order to whoever drives the run: a file that is put whole into a directory."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from evalwright.canonical import is_object

__all__ = ["Action", "Answer", "Inbox", "Order"]

Action = Literal["approve", "reject", "adopt", "stop"]
ACTIONS = ("approve", "reject", "adopt", "stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One deed of a person. ``request`` is the sequence number of the request that they saw, where they answer one."""

    action: Action
    by: str
    request: int | None = None
    commit: str | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of an order."""

    ok: bool
    message: str


class Inbox:
    """Orders to the driver of a run. Files appear whole and in the order of their names; what is no order is set aside."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, order: Order) -> str:
        """Leave an order and return its name. Raises ``OSError``."""
        self._path.mkdir(parents=True, exist_ok=True)
        name = f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
        _write(self._path / name, asdict(order))
        return name

    def waiting(self) -> Iterator[tuple[str, Order]]:
        """Yield the orders that wait, the oldest first."""
        try:
            names = sorted(name for name in os.listdir(self._path) if name.endswith(".json"))
        except FileNotFoundError:
            return
        for name in names:
            order = _order(self._path / name)
            if order:
                yield name, order
            else:
                self.settle(name, Answer(ok=False, message="this file is no order"))

    def stopped(self) -> bool:
        """Tell whether somebody wants the run stopped."""
        return any(order.action == "stop" for _, order in self.waiting())

    def settle(self, name: str, answer: Answer) -> None:
        """Take an order away and leave what became of it. Raises ``OSError``."""
        done = self._path / "done"
        done.mkdir(parents=True, exist_ok=True)
        _write(done / name, asdict(answer))
        (self._path / name).unlink(missing_ok=True)

    def answer(self, name: str) -> Answer | None:
        """Return what became of an order, ``None`` while it waits."""
        try:
            value = json.loads((self._path / "done" / name).read_bytes())
        except FileNotFoundError:
            return None
        return Answer(ok=bool(value["ok"]), message=str(value["message"]))

    def withdraw(self, name: str) -> bool:
        """Take an order back; ``False`` when it was settled already."""
        try:
            (self._path / name).unlink()
        except FileNotFoundError:
            return False
        return True


def _order(path: Path) -> Order | None:
    try:
        value = json.loads(path.read_bytes())
        order = Order(**value) if is_object(value) else None
    except (OSError, ValueError, TypeError):
        return None
    return order if order and order.action in ACTIONS and order.by else None


def _write(path: Path, value: Mapping[str, Any]) -> None:
    aside = path.with_name(f".{path.name}.new")
    aside.write_text(json.dumps(value), encoding="utf-8")
    os.replace(aside, path)
