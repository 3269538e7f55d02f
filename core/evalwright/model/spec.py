"""Everything a worker needs to run one trial, as plain data without expectations or secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["TrialSpec", "TrialView"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialSpec:
    """One case in one run, inputs named by digest.

    ``case`` is the view that the runner may see; ``gold_digest`` names the tree with the full cases and hidden files,
    which is opened only after every process of the agent is dead; ``line`` is where this one stands in the cases file,
    0 where that is not known. ``tables`` holds the resolved plugin tables
    (``runner``, ``agent``, ``sandbox``, ``scorers``, ``judges``); environment variables appear by name only. ``store`` is the
    content store's path where workers share a file system, else ``None``; ``workspaces`` where the user wants trials to live,
    ``clone`` by which way a workspace is made. ``paranoid`` reads all of it again after the agent.
    ``profile`` has the worker tell its measured spans.
    ``seeds`` names the blob that each service of the trial starts from, by the service's name.
    ``suite_directory`` is the suite's snapshot where workers can read it; elsewhere ``suite_tree`` names the suite without
    fixtures and gold. ``former_attempts`` are the rows of attempts that were retried, for the record. ``journal`` is the
    file that names every process started for the run, ``judge_cache`` the directory of judges' replies.
    """

    schema_version: int = 1
    run_id: str
    suite: str
    suite_digest: str
    native: bool
    case_id: str
    case_digest: str
    line: int = 0
    case: Mapping[str, Any]
    fixture_digest: str
    gold_digest: str
    files_digest: str | None = None
    diff_digest: str | None = None
    seeds: Mapping[str, str] = field(default_factory=dict[str, str])
    hidden: str | None = None
    arm: str = "default"
    repeat: int = 1
    attempt: int = 1
    tables: Mapping[str, Any]
    timeout: float = 300.0
    keep_workspace: str = "none"
    seed: int = 0
    store: str | None = None
    workspaces: str | None = None
    clone: str = "auto"
    paranoid: bool = False
    profile: bool = False
    suite_directory: str | None = None
    suite_tree: str | None = None
    former_attempts: Sequence[Mapping[str, Any]] = ()
    journal: str | None = None
    judge_cache: str | None = None

    def to_bytes(self) -> bytes:
        """Return the spec as UTF-8 JSON."""
        record = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(record, sort_keys=True, allow_nan=False).encode()

    @staticmethod
    def from_bytes(data: bytes) -> TrialSpec:
        """Read a spec written by :meth:`to_bytes`; keys or a form of a newer version are refused by ``TypeError``."""
        spec = TrialSpec(**json.loads(data))
        if spec.schema_version != 1:
            raise TypeError(f"it has the form {spec.schema_version}, which a newer version writes")
        return spec


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView:
    """What a runner may know of its trial: nothing that tells the answer."""

    id: str
    task: str
    diff: str | None = None
    record: Mapping[str, Any] = field(default_factory=dict[str, Any])
    arm: str = "default"
    repeat: int = 1
    seed: int = 0
