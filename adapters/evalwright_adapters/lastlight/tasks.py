"""What an agent is told: the instance as text."""

from __future__ import annotations

from collections.abc import Iterator

from evalwright_adapters.lastlight.instances import Instance, Issue, PullRequest, PullRequestState

__all__ = ["diff_of", "task_of"]


GITHUB = (
    "GitHub's REST API is at $GITHUB_API_URL and its GraphQL API at $GITHUB_GRAPHQL_URL; the token is in $GITHUB_TOKEN. "
    "What you do there counts."
)
WORKFLOWS = {
    "issue-triage": (
        "Triage the issue. Add the label of its category: bug, enhancement or question. Unless it is a question, add the label "
        "of its state as well: ready-for-agent, ready-for-human or needs-info; for the last, ask in a comment for what is "
        "missing."
    ),
    "answer": (
        "Answer the question of the issue, and add the label question to it. If the working directory holds a prompt for that "
        "in .lastlight/workflows/prompts, follow the prompt instead."
    ),
    "build": "Change the files in the working directory. Then open a pull request with the change into the default branch.",
    "dependabot-ci-fix": (
        "Find out why the checks of this dependency update fail. Where the update is the cause, mend the files in the working "
        "directory."
    ),
    "dependabot-pr-merge": (
        "Decide on this dependency update. Rate its impact: low, medium or high. Enable auto-merge where it is medium at most; "
        "otherwise do not merge, say why in a comment, and add the label requires-human."
    ),
}
"""What the harness's own prompts ask of their agents, in short."""


def task_of(instance: Instance, workflow: str, *, github: bool) -> str:
    """Return what to do and all that the instance says about issue, pull request and checks; no expectation."""
    parts = [*_parts(instance), WORKFLOWS.get(workflow, ""), GITHUB if github else ""]
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def diff_of(instance: Instance) -> str | None:
    """Return the pull request's changes as a unified diff, ``None`` where the instance lists none."""
    files = instance.pr.files if instance.pr else []
    heads = (f"diff --git a/{f.filename} b/{f.filename}\n--- a/{f.filename}\n+++ b/{f.filename}\n{f.patch}" for f in files)
    return "".join(head if head.endswith("\n") else f"{head}\n" for head in heads) or None


def _parts(instance: Instance) -> Iterator[str]:
    yield instance.problem_statement
    if instance.repo:
        yield f"Repository: {instance.repo}"
    if instance.issue:
        yield from _issue(instance.issue)
    if instance.pr:
        yield from _pull_request(instance.pr)
    if instance.pr_state:
        yield from _state(instance.pr_state)


def _issue(issue: Issue) -> Iterator[str]:
    labels = f", labelled {', '.join(issue.labels)}" if issue.labels else ""
    yield f"## Issue #{issue.number}: {issue.title}\n\nOpened by {issue.user}{labels}."
    yield issue.body


def _pull_request(pull: PullRequest) -> Iterator[str]:
    yield f"## Pull request #{pull.number}: {pull.title}\n\nOpened by {pull.user}: {pull.head_ref} into {pull.base_ref}."
    yield pull.body


def _state(state: PullRequestState) -> Iterator[str]:
    yield f"## Checks\n\nChecks of the pull request: {state.checks_state}. Checks of its base: {state.base_checks_state}."
    if state.attempt > 1:
        yield f"This is attempt {state.attempt}. Earlier attempts ended like this:\n\n" + _listed(state.prior_attempts)
    if state.notes:
        yield "Notes:\n\n" + _listed([f"{note.kind}: {note.text}" for note in state.notes])
    for job in state.ci_jobs:
        yield f"### {job.name}\n\nFailing step: {job.failing_step}\n\n```\n{job.log_excerpt.rstrip()}\n```"


def _listed(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
