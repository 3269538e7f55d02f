"""The sandbox ``vm`` keeps the contract of sandboxes."""

from __future__ import annotations

import pytest
from tests.plugins.machines import config

from evalwright.interfaces import Host
from evalwright.testing import SandboxContract
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox


@pytest.mark.usefixtures("vm_image")
class TestVmSandbox(SandboxContract):
    def make(self, host: Host) -> VmSandbox:
        return VmSandbox(config(), host)

    def make_allowing(self, host: Host, allowed: str) -> VmSandbox:
        return VmSandbox(config(network="allowlist", allow=[allowed]), host)
