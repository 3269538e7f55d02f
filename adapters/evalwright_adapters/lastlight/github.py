"""What the agent finds on the fake GitHub, and what it must have done there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.interfaces import Unsupported
from evalwright_adapters.lastlight.instances import Instance, PullRequest, PullRequestState

__all__ = ["assertions_of", "expects_github", "seed_of"]

Record = dict[str, Any]
ON_THE_ISSUE = (
    "labels_added",
    "labels_absent",
    "comment_matches",
    "comment_contains",
    "comment_absent",
    "issue_closed",
    "pr_merged",
    "auto_merge_enabled",
    "review",
)
BOT = "lastlight[bot]"


def expects_github(instance: Instance) -> bool:
    """Tell whether the instance says what must be done on GitHub."""
    return bool(instance.repo and (instance.expect_github.model_fields_set or instance.triage_gold))


def assertions_of(instance: Instance) -> tuple[list[Record], list[Unsupported]]:
    """Return the assertions of the scorer ``http-calls``, and expectations that it does not know.

    A triage's right category and state are labels like any other.
    """
    expected = instance.expect_github.model_dump(exclude={"labels_added", "pr_opened"}, exclude_unset=True)
    labels = [*instance.expect_github.labels_added, *instance.triage_gold.values()]
    if labels:
        expected["labels_added"] = list(dict.fromkeys(labels))
    known = {key: expected[key] for key in ON_THE_ISSUE if key in expected}
    tables = [{"repository": instance.repo, "number": _number(instance), **known}] if known else []
    opened = instance.expect_github.pr_opened
    if opened is not None:
        tables.append({"repository": instance.repo, "pr_opened": _opened(opened)})
    unknown = sorted(set(expected) - set(ON_THE_ISSUE))
    why = "the scorer http-calls has no such assertion"
    return tables, [Unsupported(f"{instance.instance_id}: expect_github.{key}", why) for key in unknown]


def seed_of(instance: Instance, base: Mapping[str, bytes], head: Mapping[str, bytes]) -> Record:
    """Return the seed: the issue or pull request with its checks, and the repository's files on its branches."""
    repository: Record = {"default_branch": "main", "branches": {"main": _texts(base)}}
    if instance.issue:
        repository["issues"] = [instance.issue.model_dump()]
    if instance.pr:
        pull = instance.pr
        repository["default_branch"] = pull.base_ref
        repository["branches"] = {pull.base_ref: _texts(base), pull.head_ref: _texts({**base, **head})}
        repository["pulls"] = [_pull(pull, instance.pr_state)]
        if instance.pr_state:
            repository["checks"] = {pull.base_ref: list(_base_checks(instance.pr_state))}
    return {"user": BOT, "repositories": {instance.repo: repository}}


def _number(instance: Instance) -> int | None:
    asked = instance.issue or instance.pr
    return asked.number if asked else None


def _opened(wanted: bool | Mapping[str, Any]) -> bool | Record:
    """Return what is wanted of an opened pull request; that its head is a branch holds for every one on the fake GitHub."""
    if isinstance(wanted, bool):
        return wanted
    return {key: value for key, value in wanted.items() if key != "head_is_branch"}


def _pull(pull: PullRequest, state: PullRequestState | None) -> Record:
    record: Record = {
        "number": pull.number,
        "title": pull.title,
        "body": pull.body,
        "user": pull.user,
        "base": pull.base_ref,
        "head": pull.head_ref,
        "checks": list(_checks(state)) if state else [],
    }
    record |= {"files": [file.model_dump() for file in pull.files]} if pull.files else {}
    return record | ({"head_sha": state.head_sha} if state and state.head_sha else {})


def _checks(state: PullRequestState) -> Iterator[Record]:
    """Yield the jobs that failed, then as many good checks as are said to have settled."""
    for job in state.ci_jobs:
        yield {"name": job.name, "conclusion": "failure", "log": job.log_excerpt}
    for number in range(len(state.ci_jobs) + 1, state.settled_check_count + 1):
        yield {"name": f"check {number}", "conclusion": "success"}


def _base_checks(state: PullRequestState) -> Iterator[Record]:
    conclusion = {"passing": "success", "failing": "failure"}.get(state.base_checks_state)
    if conclusion:
        for name in [job.name for job in state.ci_jobs] or ["check 1"]:
            yield {"name": name, "conclusion": conclusion}


def _texts(files: Mapping[str, bytes]) -> dict[str, str]:
    return {path: content.decode("utf-8", "replace") for path, content in sorted(files.items())}
