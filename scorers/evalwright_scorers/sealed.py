"""Reports of pytest that only the scorer's own plugin could write."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any

from evalwright.interfaces import Session
from evalwright_scorers.reports import Listed, Report, ReportUnreadable

__all__ = ["Seal", "install", "read_sealed"]

WITNESS = "evalwright_witness"
SETTINGS: Mapping[str, bytes] = {
    "pytest.toml": b"",
    ".pytest.toml": b"",
    "pytest.ini": b"",
    ".pytest.ini": b"",
    "pyproject.toml": b"[tool.pytest",
    "tox.ini": b"[pytest]",
    "setup.cfg": b"[tool:pytest]",
}
MAX_SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Seal:
    """The key of one test run. It travels by stdin, so that no file, variable or argument holds it."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def orders(self, report: PurePosixPath, changed: Mapping[str, str | None]) -> bytes:
        """Return what the plugin reads: where to report, and the digests of the files that the agent changed."""
        return json.dumps({"key": self.key.hex(), "report": str(report), "changed": dict(changed)}).encode()

    def opened(self, document: bytes) -> bytes:
        """Return what is under the seal. Raises ``ReportUnreadable`` when it is not the plugin's."""
        mac, _, content = document.partition(b"\n")
        expected = hmac.new(self.key, content, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(mac, expected.encode()):
            raise ReportUnreadable("its seal is broken; the run was tampered with")
        return content


def install(session: Session, env: dict[str, str]) -> list[str]:
    """Place the plugin beside the workspace, tell Python where, and return the options that make pytest use it.

    Settings count only at the root of the workspace: pytest would otherwise look for them above it, where an agent that is
    not confined can leave some.
    """
    place = session.exchange / secrets.token_hex(16)
    source = files("evalwright_scorers") / "_drivers" / f"{WITNESS}.py"
    session.put(source.read_bytes(), place / f"{WITNESS}.py")
    env["PYTHONPATH"] = f"{place}:{env['PYTHONPATH']}" if env.get("PYTHONPATH") else str(place)
    env["EVALWRIGHT_WITNESS"] = "1"
    name, text = _settings(session)
    if not name:
        session.put(b"[pytest]\n", place / "pytest.ini")
    config = session.workspace / name if name else place / "pytest.ini"
    options = ["-p", WITNESS, "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir=.", "--confcutdir=.", "-c", str(config)]
    return options if b"pythonpath" in text else [*options, "-o", f"pythonpath={session.workspace}"]


def read_sealed(document: bytes) -> Report:
    """Return the tests of a report whose seal was found whole. Raises ``ReportUnreadable``."""
    try:
        return Report(_listed(record) for record in json.loads(document)["tests"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReportUnreadable(f"it is not what the plugin writes: {error}") from error


def _settings(session: Session) -> tuple[str, bytes]:
    """Return name and text of the file that pytest takes its settings from, as pytest itself chooses it."""
    for name, mark in SETTINGS.items():
        try:
            text = session.get(session.workspace / name, max_bytes=MAX_SETTINGS_BYTES)
        except OSError:
            continue
        if mark in text:
            return name, text
    return "", b""


def _listed(record: Mapping[str, Any]) -> Listed:
    """Return one test; one that passed counts only where its control, which must fail, failed."""
    name: str = record["name"]
    listed = Listed(name=name, outcome=record["outcome"], detail=record["detail"], aliases=frozenset(_aliases(name)))
    if not listed.good or record.get("control") == "failed":
        return listed
    return replace(listed, outcome="tampered", detail="a test that must fail was not seen to fail in its place")


def _aliases(name: str) -> Iterator[str]:
    """Yield the plain name, and the one that a JUnit report would have."""
    plain, bracket, parameters = name.partition("[")
    path, *parts = plain.split("::")
    if parts:
        last = parts.pop() + bracket + parameters
        yield last
        yield ".".join([path.removesuffix(".py").replace("/", "."), *parts]) + "::" + last
