"""The table ``sandbox`` of a suite that uses virtual machines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Limits", "VmConfig"]

MIB = 1 << 20
Positive = Annotated[int, Field(gt=0)]


class Limits(BaseModel):
    """Resource limits of each command; sizes in bytes. ``processes`` and ``memory_bytes`` hold for all it starts together."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cpu_seconds: Positive | None = None
    file_size_bytes: Positive | None = None
    memory_bytes: Positive | None = None
    open_files: Positive | None = None
    processes: Positive | None = None


class VmConfig(BaseModel):
    """What a guest is made of.

    ``memory_bytes`` is the guest's memory, which also holds the workspace; ``disk_bytes`` what workspace, exchange directory
    and mounts may hold together on their way in and out. A guest that says nothing for ``silence_seconds`` is given up.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    root: Literal["debian", "busybox"] = "debian"
    cache: str | None = None
    machine: Literal["auto", "microvm", "q35"] = "auto"
    accelerator: Literal["auto", "tcg", "kvm"] = "auto"
    snapshot: bool = True
    network: Literal["none"] = "none"
    memory_bytes: Annotated[int, Field(ge=192 * MIB, multiple_of=MIB)] = 512 * MIB
    disk_bytes: Annotated[int, Field(ge=16 * MIB, multiple_of=MIB)] = 1024 * MIB
    silence_seconds: Annotated[float, Field(ge=5, allow_inf_nan=False)] = 60
    limits: Limits = Limits()
