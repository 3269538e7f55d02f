"""The content store: blobs by the digest of their bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import BinaryIO

__all__ = ["Store"]


class Store(ABC):
    """Holds blobs under ``sha256:hex``. A tree is a blob too: the JSON list of its entries, each naming its blob."""

    @abstractmethod
    def missing(self, digests: Collection[str]) -> set[str]:
        """Return those digests that the store does not hold."""

    @abstractmethod
    def put(self, digest: str, source: BinaryIO) -> None:
        """Take a blob in; ``StoreError`` when its bytes do not have that digest."""

    @abstractmethod
    def open(self, digest: str) -> BinaryIO:
        """Open a blob for reading; ``StoreError`` when it is absent."""
