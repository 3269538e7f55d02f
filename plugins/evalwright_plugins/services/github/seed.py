"""The form of a seed of the service ``github``: repositories with labels, issues, pull requests, branches and checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

__all__ = ["CheckSeed", "CommentSeed", "GithubSeed", "IssueSeed", "LabelSeed", "PullSeed", "RepositorySeed", "ReviewSeed"]

STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
FULL_NAME = r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$"
Number = Annotated[int, Field(gt=0, le=10**9)]
Ref = Annotated[str, Field(pattern=r"^[^\s~^:?*\[\\]+$", max_length=200)]
Verdict = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]
Conclusion = Literal["success", "failure", "neutral", "cancelled", "skipped", "timed_out", "action_required"]


class LabelSeed(BaseModel):
    """A label of a repository."""

    model_config = STRICT

    name: Annotated[str, Field(min_length=1, max_length=100)]
    color: str = "ededed"
    description: str | None = None


class CommentSeed(BaseModel):
    """A comment on an issue or a pull request."""

    model_config = STRICT

    body: str
    user: str = "octocat"


class IssueSeed(BaseModel):
    """An issue. Its labels become labels of the repository."""

    model_config = STRICT

    number: Number
    title: str
    body: str | None = None
    user: str = "octocat"
    state: Literal["open", "closed"] = "open"
    labels: list[str] = []
    assignees: list[str] = []
    comments: list[CommentSeed] = []


class CheckSeed(BaseModel):
    """A check run on the head of a pull request or of a branch; it still runs without a ``conclusion``."""

    model_config = STRICT

    name: str
    conclusion: Conclusion | None = "success"
    log: str = ""


class ReviewSeed(BaseModel):
    """A review of a pull request."""

    model_config = STRICT

    state: Verdict
    body: str = ""
    user: str = "octocat"


class PullSeed(IssueSeed):
    """A pull request. Without ``files`` they are what differs between the branches ``base`` and ``head``.

    ``mergeable: false`` stands for conflicts.
    """

    base: Ref = "main"
    head: Ref
    head_sha: str | None = None
    draft: bool = False
    merged: bool = False
    mergeable: bool = True
    files: list[dict[str, Any]] | None = None
    checks: list[CheckSeed] = []
    reviews: list[ReviewSeed] = []

    @field_validator("files")
    @classmethod
    def _named(cls, files: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        if any(not isinstance(file.get("filename"), str) for file in files or []):
            raise ValueError("each file needs a filename")
        return files


class RepositorySeed(BaseModel):
    """A repository. ``branches`` maps each to its files by path; ``checks`` are those on the head of a branch.

    With ``required_checks`` a pull request can be merged only when each of them has succeeded on its head.
    """

    model_config = STRICT

    default_branch: Ref = "main"
    description: str | None = None
    private: bool = False
    labels: list[LabelSeed | str] = []
    issues: list[IssueSeed] = []
    pulls: list[PullSeed] = []
    branches: dict[Ref, dict[str, str]] = {}
    checks: dict[Ref, list[CheckSeed]] = {}
    required_checks: list[str] = []

    @model_validator(mode="after")
    def _consistent(self) -> RepositorySeed:
        numbers = [item.number for item in (*self.issues, *self.pulls)]
        doubled = next((number for number in numbers if numbers.count(number) > 1), None)
        if doubled is not None:
            raise ValueError(f"two issues or pull requests have the number {doubled}")
        unknown = [branch for branch in self.checks if branch not in {*self.branches, self.default_branch}]
        if unknown:
            raise ValueError(f"checks are on {unknown[0]!r}, which is no branch")
        return self


class GithubSeed(BaseModel):
    """What the service starts from. ``user`` is whose token the agent holds."""

    model_config = STRICT

    user: str = "evalwright[bot]"
    repositories: dict[Annotated[str, Field(pattern=FULL_NAME)], RepositorySeed] = {}

    @field_validator("repositories")
    @classmethod
    def _distinct(cls, repositories: dict[str, RepositorySeed]) -> dict[str, RepositorySeed]:
        if len({name.lower() for name in repositories}) < len(repositories):
            raise ValueError("two repositories differ only in upper and lower case")
        return repositories
