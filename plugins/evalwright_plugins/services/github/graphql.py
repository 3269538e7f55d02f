"""The part of GraphQL for which REST has no call: auto-merge, and the node id that it needs.

Documents are not parsed: the operation is found by its name, arguments by their names, in ``variables`` or in the text. A query
for a pull request answers with all fields that are known, whatever was selected.
"""

from __future__ import annotations

import re
from typing import Any

from evalwright_plugins.services._messages import Answer, is_object
from evalwright_plugins.services._routing import no_route
from evalwright_plugins.services.github._base import Context, route
from evalwright_plugins.services.github.checks import combined
from evalwright_plugins.services.github.world import Issue, Pull, Repository

__all__ = ["ENABLE"]

ENABLE = "enablePullRequestAutoMerge"
DISABLE = "disablePullRequestAutoMerge"
ARGUMENT = r'\b{name}\s*:\s*(?:"([^"]*)"|\$(\w+)|([\w.-]+))'


@route("POST", "/graphql")
def _graphql(ctx: Context) -> Answer:
    query = ctx.call.fields.get("query")
    text = query if isinstance(query, str) else ""
    if re.search(rf"\b{ENABLE}\b", text):
        return _set_auto_merge(ctx, text, ENABLE)
    if re.search(rf"\b{DISABLE}\b", text):
        return _set_auto_merge(ctx, text, DISABLE)
    if re.search(r"\brepository\s*\(", text) and re.search(r"\bpullRequest\s*\(", text):
        return _pull_request(ctx, text)
    if re.search(r"\bviewer\b", text):
        return Answer(200, {"data": {"viewer": {"login": ctx.world.user}}})
    message = f"this service knows {ENABLE}, {DISABLE}, repository(owner, name) {{ pullRequest(number) }} and viewer"
    return Answer(200, {"data": None, "errors": [{"message": message}]}, unknown=no_route(ctx.call).unknown)


def _set_auto_merge(ctx: Context, text: str, operation: str) -> Answer:
    node = _argument(ctx, text, "pullRequestId")
    found = _by_node(ctx, str(node))
    if found is None:
        return _failed("NOT_FOUND", f"Could not resolve to a node with the global id of '{node}'", operation)
    repository, issue, pull = found
    if issue.state != "open":
        return _failed("UNPROCESSABLE", "Pull request is closed", operation)
    if operation == ENABLE and pull.draft:
        return _failed("UNPROCESSABLE", "Pull request is in draft state", operation)
    method = str(_argument(ctx, text, "mergeMethod") or "MERGE").lower()
    pull.auto_merge = method if operation == ENABLE else None
    event = "auto_merge_enabled" if operation == ENABLE else "auto_merge_disabled"
    ctx.world.tell(event, repository, issue.number, **({"method": method} if operation == ENABLE else {}))
    return Answer(200, {"data": {operation: {"clientMutationId": None, "pullRequest": _shown(repository, issue, pull)}}})


def _pull_request(ctx: Context, text: str) -> Answer:
    owner, name, number = (_argument(ctx, text, key) for key in ("owner", "name", "number"))
    repository = ctx.world.repositories.get(f"{owner}/{name}".lower())
    if repository is None:
        return _failed("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.", "repository")
    issue = next((issue for issue in repository.pulls if str(issue.number) == str(number)), None)
    if issue is None or issue.pull is None:
        return _failed("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.", "repository")
    return Answer(200, {"data": {"repository": {"pullRequest": _shown(repository, issue, issue.pull)}}})


def _argument(ctx: Context, text: str, name: str) -> Any:
    """Return an argument: written out in the document, by a variable of it, or in the variable ``input``."""
    variables = ctx.call.fields.get("variables")
    held: dict[str, Any] = variables if is_object(variables) else {}
    match = re.search(ARGUMENT.format(name=name), text)
    if match and match[2] is not None:
        return held.get(match[2])
    if match and not (match[3] or "").endswith("!"):
        return match[1] if match[1] is not None else match[3]
    given = held.get("input")
    return given.get(name) if is_object(given) else held.get(name)


def _by_node(ctx: Context, node: str) -> tuple[Repository, Issue, Pull] | None:
    for repository in ctx.world.repositories.values():
        for issue in repository.pulls:
            if issue.pull and f"PR_{issue.id}" == node:
                return repository, issue, issue.pull
    return None


def _shown(repository: Repository, issue: Issue, pull: Pull) -> dict[str, Any]:
    checks = repository.checks.get(pull.head_sha, [])
    return {
        "id": f"PR_{issue.id}",
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": "MERGED" if pull.merged else issue.state.upper(),
        "merged": pull.merged,
        "isDraft": pull.draft,
        "mergeable": "MERGEABLE" if pull.mergeable else "CONFLICTING",
        "baseRefName": pull.base,
        "headRefName": pull.head,
        "headRefOid": pull.head_sha,
        "autoMergeRequest": {"mergeMethod": pull.auto_merge.upper()} if pull.auto_merge else None,
        "labels": {"nodes": [{"name": name} for name in issue.labels]},
        "statusCheckRollup": {"state": combined(checks).upper()} if checks else None,
    }


def _failed(kind: str, message: str, path: str) -> Answer:
    return Answer(200, {"data": None, "errors": [{"type": kind, "path": [path], "message": message}]})
