"""The instances of a tier, checked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from evalwright.errors import UsageError
from evalwright_adapters.lastlight.source import TierFiles, validated

__all__ = ["Instance", "InstanceId", "Issue", "PullRequest", "PullRequestState", "Tier", "read_tier"]

InstanceId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$")]


def _names(value: Any) -> Any:
    """Read a list of test names, which data sets of this kind also write as a JSON text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


Names = Annotated[list[str], BeforeValidator(_names)]


class Issue(BaseModel, extra="ignore"):
    """An issue as it stands when the agent is called."""

    number: int
    title: str
    body: str = ""
    labels: list[str] = []
    user: str = "reporter"


class ChangedFile(BaseModel, extra="allow"):
    """One file of a pull request; ``patch`` holds the hunks without a header."""

    filename: str
    status: str = "modified"
    patch: str = ""


class PullRequest(BaseModel, extra="ignore"):
    """A pull request as it stands when the agent is called."""

    number: int
    title: str
    body: str = ""
    base_ref: str = "main"
    head_ref: str = ""
    user: str = "author"
    files: list[ChangedFile] = []


class Job(BaseModel, extra="ignore"):
    """A job of continuous integration and the end of its log."""

    name: str
    log_excerpt: str = ""
    failing_step: str = ""


class Note(BaseModel, extra="ignore"):
    """What an earlier attempt found out."""

    kind: str
    text: str


class PullRequestState(BaseModel, extra="ignore"):
    """What is known of a pull request's checks and of earlier attempts."""

    head_sha: str = ""
    checks_state: str = ""
    base_checks_state: str = ""
    settled_check_count: int = 0
    attempt: int = 1
    prior_attempts: list[str] = []
    notes: list[Note] = []
    ci_jobs: list[Job] = []


class Expectations(BaseModel, extra="allow"):
    """What must have happened on GitHub; keys that are not listed here are kept as they are."""

    labels_added: list[str] = []
    pr_opened: bool | dict[str, Any] | None = None


class Instance(BaseModel, extra="allow"):
    """One case of a tier. Keys that are not listed here are kept, so that they can be named as not taken over."""

    instance_id: InstanceId
    problem_statement: str
    repo: str = ""
    workflow: str = ""
    base_commit: str = ""
    issue: Issue | None = None
    pr: PullRequest | None = None
    pr_state: PullRequestState | None = None
    fail_to_pass: Names = Field(default=[], alias="FAIL_TO_PASS")
    pass_to_pass: Names = Field(default=[], alias="PASS_TO_PASS")
    patch: str | None = None
    triage_gold: dict[str, str] = {}
    expect_github: Expectations = Expectations()
    expect_markers: dict[str, str | list[str]] = {}


class _TierDocument(BaseModel, extra="ignore"):
    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,80}$")]
    description: str = ""
    workflow: str = Field(default="", alias="defaultWorkflow")


@dataclass(frozen=True, slots=True)
class Tier:
    """A tier: its instances, and its files by path."""

    name: str
    description: str
    workflow: str
    instances: tuple[Instance, ...]
    files: Mapping[str, bytes]

    def below(self, *parts: str) -> Iterator[tuple[str, bytes]]:
        """Yield path and content of the files below a directory of the tier, by path."""
        prefix = "/".join(parts) + "/"
        for path, content in sorted(self.files.items()):
            if path.startswith(prefix):
                yield path.removeprefix(prefix), content


def read_tier(source: TierFiles) -> Tier:
    """Return the tier. Raises ``UsageError`` for a damaged one, or one that holds no cases."""
    place = source.place
    content = source.files.get("tier.json", json.dumps({"name": place.stem}).encode())
    document = validated(_TierDocument, content, place / "tier.json")
    if "instances.json" not in source.files:
        hint = "Its cases are made by that harness's own scripts from data that is not in it; import a tier that holds some."
        raise UsageError(f"the tier {document.name} holds no cases: it has no instances.json", hint=hint, file=str(place))
    instances = validated(list[Instance], source.files["instances.json"], place / "instances.json")
    if not instances:
        raise UsageError(f"the tier {document.name} holds no cases", hint="Import one that does.", file=str(place))
    return Tier(document.name, document.description, document.workflow, tuple(instances), source.files)
