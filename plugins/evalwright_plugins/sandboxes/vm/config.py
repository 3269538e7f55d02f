"""The table ``sandbox`` of a suite that uses virtual machines."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from evalwright_plugins.network import NetworkConfig
from evalwright_plugins.sandboxes._limits import Limits

__all__ = ["VmConfig"]

MIB = 1 << 20


class VmConfig(NetworkConfig):
    """What a guest is made of, and what it reaches: ``network``, ``allow`` and ``inject`` as :class:`NetworkConfig` has them.

    ``memory_bytes`` is the guest's memory, which also holds the workspace; ``disk_bytes`` what workspace, exchange directory
    and mounts may hold together on their way in and out. A guest that says nothing for ``silence_seconds`` is given up.
    """

    root: Literal["debian", "busybox"] = "debian"
    cache: str | None = None
    machine: Literal["auto", "microvm", "q35"] = "auto"
    accelerator: Literal["auto", "tcg", "kvm"] = "auto"
    snapshot: bool = True
    memory_bytes: Annotated[int, Field(ge=192 * MIB, multiple_of=MIB)] = 512 * MIB
    disk_bytes: Annotated[int, Field(ge=16 * MIB, multiple_of=MIB)] = 1024 * MIB
    silence_seconds: Annotated[float, Field(ge=5, allow_inf_nan=False)] = 60
    limits: Limits = Limits()

    @field_validator("network")
    @classmethod
    def _no_interface(cls, network: str) -> str:
        if network == "host":
            raise ValueError('guests have no network interface; choose "none" or "allowlist"')
        return network
