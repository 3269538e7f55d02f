"""placeholder"""

from __future__ import annotations


class Webhook:
    def __init__(self, url: str, timeout: float = 5) -> None: ...
    def notify(self, event: str, *, run: str, work: str, kind: str) -> None: ...
