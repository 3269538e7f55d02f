"""The ``limits`` table of sandboxes on this host."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Limits"]

MIB = 1 << 20
MOST = 1 << 50


class Limits(BaseModel):
    """Resource limits; sizes in bytes.

    ``memory_bytes`` and ``processes`` hold for all processes of a command together where a cgroup can keep them, elsewhere
    for each process (``processes`` then counts all of the user's and does not bind root). The others hold for each process.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cpu_seconds: Annotated[int, Field(gt=0, le=10**9)] | None = None
    file_size_bytes: Annotated[int, Field(gt=0, le=MOST)] | None = None
    memory_bytes: Annotated[int, Field(ge=4 * MIB, le=MOST)] | None = None
    open_files: Annotated[int, Field(ge=16, le=MIB)] | None = None
    processes: Annotated[int, Field(gt=0, le=4 * MIB)] | None = None

    def in_force(self) -> dict[str, int]:
        """Return the limits that were given."""
        return {name: value for name, value in self if value is not None}
