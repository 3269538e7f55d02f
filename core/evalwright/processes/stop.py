"""The user's wish to stop, from a signal handler to the engine."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType

__all__ = ["Stop"]

INTERRUPTED = 130


class Stop:
    """Set by the first SIGINT or SIGTERM; the second one ends the process at once.

    Ending at once is safe: supervisors kill every trial when their harness is gone, and the ledger holds what was done.
    """

    def __init__(self) -> None:
        self._event = threading.Event()

    def request(self) -> None:
        """Ask for a stop, or end the process when that was asked before."""
        if self._event.is_set():
            os._exit(INTERRUPTED)
        self._event.set()

    @property
    def requested(self) -> bool:
        """Tell whether to stop."""
        return self._event.is_set()

    def listen(self) -> None:
        """Take SIGINT and SIGTERM as requests; call it in the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.request()
