"""The sandbox ``vm`` keeps the contract of sandboxes; its processes are looked for inside its guests."""

from __future__ import annotations

import pytest
from tests.plugins.machines import config, marked_in

from evalwright.interfaces import Host
from evalwright.testing import SandboxContract
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox


@pytest.mark.usefixtures("vm_image")
class TestVmSandbox(SandboxContract):
    sandbox: VmSandbox

    def make(self, host: Host) -> VmSandbox:
        self.sandbox = VmSandbox(config(), host)
        return self.sandbox

    def make_allowing(self, host: Host, allowed: str) -> VmSandbox:
        self.sandbox = VmSandbox(config(network="allowlist", allow=[allowed]), host)
        return self.sandbox

    def processes(self, mark: str) -> list[int]:
        return marked_in(self.sandbox, mark)
