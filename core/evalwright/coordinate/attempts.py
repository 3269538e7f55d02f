"""The attempts of each trial: their numbers, and those that are made again because the infrastructure spoiled them."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.ledger import Event
from evalwright.model import Case, Retry

__all__ = ["LOST", "Attempts"]

Row = dict[str, Any]
LOST = "worker_lost"
ROW_KEYS = ("attempt", "status", "error", "duration_ms")


class Attempts:
    """What a run has tried. Retries wait here until they are due; the rows of spoiled attempts are kept for the record."""

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._last: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._heard: dict[str, int] = {}
        self._spoiled: dict[str, list[Row]] = {}
        self._waiting: list[tuple[float, int, Case]] = []
        self._order = itertools.count()

    def __len__(self) -> int:
        """Return how many trials wait for another attempt."""
        return len(self._waiting)

    def remember(self, events: Sequence[Event]) -> None:
        """Take over what a ledger says of earlier attempts."""
        for event in events:
            data = event["data"]
            if event["type"] == "TRIAL_ATTEMPT":
                self._last[data["case"]] = data["attempt"]
            elif event["type"] == "TRIAL_RETRIED":
                self._note(data)
            elif event["type"] == "TRIAL_FINISHED":
                self._ended[data["case"]] = data["attempt"]
                if not _lost(data):
                    self.finish(data["case"], data["attempt"])

    def begin(self, case_id: str) -> int:
        """Return the number of a new attempt, counted from 1 and never used twice."""
        self._last[case_id] = self._last.get(case_id, 0) + 1
        return self._last[case_id]

    def last(self, case_id: str) -> int:
        """Return the number of the newest attempt, 0 before the first."""
        return self._last.get(case_id, 0)

    def spoiled(self, case_id: str) -> Sequence[Row]:
        """Return the rows of attempts that were made again."""
        return self._spoiled.get(case_id, [])

    def over(self, case_id: str) -> bool:
        """Tell whether the newest attempt has ended already, whether its result counted or was to be made again."""
        return self.last(case_id) in (self._ended.get(case_id), *(row["attempt"] for row in self.spoiled(case_id)))

    def heard(self, case_id: str, attempt: int) -> bool:
        """Tell whether a worker's own result of an attempt is on record; of a lost one there is none."""
        if self._heard.get(case_id) == attempt:
            return True
        return any(row["attempt"] == attempt and not _lost(row) for row in self.spoiled(case_id))

    def finish(self, case_id: str, attempt: int) -> None:
        """Note that an attempt's own result counts."""
        self._heard[case_id] = attempt

    def backoff(self, case_id: str, result: Mapping[str, Any]) -> float | None:
        """Return the seconds until a spoiled attempt is made again, ``None`` when its result counts."""
        former = len(self.spoiled(case_id))
        if result["status"] != "error" or not result.get("transient") or former >= self._retry.infrastructure:
            return None
        return float(self._retry.backoff * 2**former)

    def again(self, case: Case, data: Mapping[str, Any], seconds: float) -> None:
        """Keep the row of a spoiled attempt, and let the trial wait for another."""
        self._note(data)
        heapq.heappush(self._waiting, (time.monotonic() + seconds, next(self._order), case))

    def due(self) -> Case | None:
        """Return a trial whose wait is over, if there is one."""
        if self._waiting and self._waiting[0][0] <= time.monotonic():
            return heapq.heappop(self._waiting)[2]
        return None

    def _note(self, data: Mapping[str, Any]) -> None:
        row = {key: data.get(key) for key in ROW_KEYS} | {"counted": False}
        self._spoiled.setdefault(data["case"], []).append(row)


def _lost(row: Row) -> bool:
    error: Row = row.get("error") or {}
    return error.get("kind") == LOST
