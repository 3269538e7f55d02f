"""The conformance kit: one pytest class per kind of plugin, and fakes for the rest of the world.

An author subclasses the contract of a kind and overrides ``make``::

    class TestAcmeSandbox(SandboxContract):
        def make(self, host: Host) -> AcmeSandbox:
            return AcmeSandbox(AcmeSandbox.Config(region="local"), host)

It needs pytest: ``pip install "evalwright[testing]"``. Nothing in Evalwright imports it.
"""

# ruff: noqa: E402  # asserts are rewritten only in modules that are imported after the registration

import pytest

pytest.register_assert_rewrite(
    "evalwright.testing._contract",
    "evalwright.testing._sandbox_commands",
    "evalwright.testing._sandbox_endings",
    "evalwright.testing._sandbox_files",
    "evalwright.testing._sandbox_isolation",
    "evalwright.testing._waiting",
    "evalwright.testing.exporter",
    "evalwright.testing.importer",
    "evalwright.testing.judge",
    "evalwright.testing.queue",
    "evalwright.testing.runner",
    "evalwright.testing.sandbox",
    "evalwright.testing.scorer",
    "evalwright.testing.service",
    "evalwright.testing.transcript",
)

from evalwright.testing._clock import FakeClock
from evalwright.testing._contract import Contract, since
from evalwright.testing._detached_queue import DetachedQueue
from evalwright.testing._fake_judge import CannedConfig, CannedJudge
from evalwright.testing._fake_queue import ChaosConfig, ChaosQueue
from evalwright.testing._fake_run import FakeRun
from evalwright.testing._fake_runner import ScriptedConfig, ScriptedRunner
from evalwright.testing._fake_sandboxes import FakeSandbox, FakeSession, LeakySandbox
from evalwright.testing._host import FakeHost
from evalwright.testing._installed import installed
from evalwright.testing._installed_check import check_installed
from evalwright.testing._project import SmallProject
from evalwright.testing._score_context import FakeScoreContext
from evalwright.testing._waiting import in_threads, soon, within
from evalwright.testing.exporter import ExporterContract
from evalwright.testing.importer import ImporterContract
from evalwright.testing.judge import JudgeContract
from evalwright.testing.queue import QueueContract
from evalwright.testing.runner import RunnerContract
from evalwright.testing.sandbox import SandboxContract
from evalwright.testing.scorer import ScorerContract
from evalwright.testing.service import ServiceContract
from evalwright.testing.transcript import TranscriptContract

__all__ = [
    "CannedConfig",
    "CannedJudge",
    "ChaosConfig",
    "ChaosQueue",
    "Contract",
    "DetachedQueue",
    "ExporterContract",
    "FakeClock",
    "FakeHost",
    "FakeRun",
    "FakeSandbox",
    "FakeScoreContext",
    "FakeSession",
    "ImporterContract",
    "JudgeContract",
    "LeakySandbox",
    "QueueContract",
    "RunnerContract",
    "SandboxContract",
    "ScorerContract",
    "ScriptedConfig",
    "ScriptedRunner",
    "ServiceContract",
    "SmallProject",
    "TranscriptContract",
    "check_installed",
    "in_threads",
    "installed",
    "since",
    "soon",
    "within",
]
