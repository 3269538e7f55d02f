"""Users, repositories, labels, issues, comments and search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evalwright_plugins.services._messages import Answer
from evalwright_plugins.services.github._base import Context, invalid, not_found, refuse, route
from evalwright_plugins.services.github.world import Comment, Issue, Label, Repository

__all__ = ["set_labels", "set_state"]

REPO = "/repos/{owner}/{repo}"
ISSUE = REPO + "/issues/{number}"
MOST_LABELS = 100
REASONS = ("completed", "not_planned", "reopened", "duplicate")
QUALIFIER = re.compile(r'(-?)(\w+):(?:"([^"]*)"|(\S+))')


@route("GET", "/user")
def _user(ctx: Context) -> Answer:
    return Answer(200, ctx.render.user(ctx.world.user))


@route("GET", "/users/{login}")
def _other_user(ctx: Context, login: str) -> Answer:
    return Answer(200, ctx.render.user(login))


@route("GET", "/rate_limit")
def _rate_limit(_: Context) -> Answer:
    core = {"limit": 5000, "remaining": 5000, "used": 0, "reset": 1767225600}
    return Answer(200, {"resources": {"core": core, "search": core, "graphql": core}, "rate": core})


@route("GET", REPO)
def _repository(ctx: Context, owner: str, repo: str) -> Answer:
    return Answer(200, ctx.render.repository(ctx.repository(owner, repo)))


@route("GET", REPO + "/labels")
def _labels(ctx: Context, owner: str, repo: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return ctx.page(list(repository.labels.values()), lambda label: ctx.render.label(repository, label))


@route("POST", REPO + "/labels")
def _make_label(ctx: Context, owner: str, repo: str) -> Answer:
    repository = ctx.repository(owner, repo)
    name = ctx.text("Label", "name")
    if name.lower() in repository.labels:
        invalid("Label", "name", "already_exists")
    color, description = ctx.text("Label", "color", "ededed"), ctx.text("Label", "description", "")
    label = repository.labels[name.lower()] = Label(ctx.world.id(), name, color.removeprefix("#"), description or None)
    ctx.world.tell("label_created", repository, label=name)
    return Answer(201, ctx.render.label(repository, label))


@route("GET", REPO + "/labels/{name}")
def _label(ctx: Context, owner: str, repo: str, name: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return Answer(200, ctx.render.label(repository, repository.labels.get(name.lower()) or not_found()))


@route("PATCH", REPO + "/labels/{name}")
def _change_label(ctx: Context, owner: str, repo: str, name: str) -> Answer:
    repository = ctx.repository(owner, repo)
    label = repository.labels.pop(name.lower(), None) or not_found()
    former = label.name
    label.name = ctx.text("Label", "new_name", former)
    label.color = ctx.text("Label", "color", label.color)
    label.description = ctx.text("Label", "description", label.description or "") or None
    repository.labels[label.name.lower()] = label
    for issue in repository.issues.values():
        issue.labels = [label.name if held == former else held for held in issue.labels]
    return Answer(200, ctx.render.label(repository, label))


@route("DELETE", REPO + "/labels/{name}")
def _remove_label(ctx: Context, owner: str, repo: str, name: str) -> Answer:
    repository = ctx.repository(owner, repo)
    label = repository.labels.get(name.lower()) or not_found()
    for issue in repository.issues.values():
        set_labels(ctx, repository, issue, [held for held in issue.labels if held != label.name])
    del repository.labels[name.lower()]
    return Answer(204)


@route("GET", REPO + "/issues")
def _issues(ctx: Context, owner: str, repo: str) -> Answer:
    repository, query = ctx.repository(owner, repo), ctx.call.query
    state = query.get("state", "open")
    labels = {name.lower() for name in query.get("labels", "").split(",") if name}
    found = [
        issue
        for issue in reversed(repository.issues.values())
        if state in ("all", issue.state) and labels <= {name.lower() for name in issue.labels}
    ]
    if query.get("direction") == "asc":
        found.reverse()
    return ctx.page(found, lambda issue: ctx.render.issue(repository, issue))


@route("POST", REPO + "/issues")
def _make_issue(ctx: Context, owner: str, repo: str) -> Answer:
    repository, world = ctx.repository(owner, repo), ctx.world
    number = max(repository.issues, default=0) + 1
    title, body = ctx.text("Issue", "title"), ctx.text("Issue", "body", "")
    labels = ctx.texts("Issue", "labels") if ctx.call.fields.get("labels") else []
    issue = repository.issues[number] = Issue(world.id(), number, title, body or None, world.user, world.now())
    world.tell("issue_opened", repository, number, title=title)
    set_labels(ctx, repository, issue, labels)
    return Answer(201, ctx.render.issue(repository, issue))


@route("GET", ISSUE)
def _issue(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return Answer(200, ctx.render.issue(repository, ctx.issue(repository, number)))


@route("PATCH", ISSUE)
def _change_issue(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue = ctx.issue(repository, number)
    issue.title = ctx.text("Issue", "title", issue.title)
    issue.body = ctx.text("Issue", "body", issue.body or "") or None
    if "labels" in ctx.call.fields:
        set_labels(ctx, repository, issue, ctx.texts("Issue", "labels"))
    if "assignees" in ctx.call.fields:
        issue.assignees = ctx.texts("Issue", "assignees")
    set_state(ctx, repository, issue)
    return Answer(200, ctx.render.issue(repository, issue))


@route("GET", ISSUE + "/comments")
def _comments(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue = ctx.issue(repository, number)
    return ctx.page(issue.comments, lambda comment: ctx.render.comment(repository, issue, comment))


@route("POST", ISSUE + "/comments")
def _make_comment(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository, world = ctx.repository(owner, repo), ctx.world
    issue = ctx.issue(repository, number)
    comment = Comment(world.id(), world.user, ctx.text("IssueComment", "body"), world.now())
    issue.comments.append(comment)
    world.tell("commented", repository, issue.number, comment=comment.id, body=comment.body)
    return Answer(201, ctx.render.comment(repository, issue, comment))


@route("GET", REPO + "/issues/comments/{id}")
def _comment(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return Answer(200, ctx.render.comment(repository, *_found_comment(repository, id)))


@route("PATCH", REPO + "/issues/comments/{id}")
def _change_comment(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, comment = _found_comment(repository, id)
    comment.body = ctx.text("IssueComment", "body")
    ctx.world.tell("comment_edited", repository, issue.number, body=comment.body)
    return Answer(200, ctx.render.comment(repository, issue, comment))


@route("DELETE", REPO + "/issues/comments/{id}")
def _remove_comment(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, comment = _found_comment(repository, id)
    issue.comments.remove(comment)
    ctx.world.tell("comment_deleted", repository, issue.number, body=comment.body)
    return Answer(204)


@route("GET", ISSUE + "/labels")
def _issue_labels(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return _labels_of(ctx, repository, ctx.issue(repository, number))


@route("POST", ISSUE + "/labels")
def _add_labels(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue = ctx.issue(repository, number)
    set_labels(ctx, repository, issue, [*issue.labels, *ctx.texts("Issue", "labels")])
    return _labels_of(ctx, repository, issue)


@route("PUT", ISSUE + "/labels")
def _replace_labels(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue = ctx.issue(repository, number)
    set_labels(ctx, repository, issue, ctx.texts("Issue", "labels"))
    return _labels_of(ctx, repository, issue)


@route("DELETE", ISSUE + "/labels")
def _clear_labels(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    set_labels(ctx, repository, ctx.issue(repository, number), [])
    return Answer(204)


@route("DELETE", ISSUE + "/labels/{name}")
def _take_label(ctx: Context, owner: str, repo: str, number: str, name: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue = ctx.issue(repository, number)
    kept = [held for held in issue.labels if held.lower() != name.lower()]
    if len(kept) == len(issue.labels):
        refuse(404, "Label does not exist")
    set_labels(ctx, repository, issue, kept)
    return _labels_of(ctx, repository, issue)


@route("POST", ISSUE + "/assignees")
def _assign(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue = ctx.issue(repository, number)
    issue.assignees = list(dict.fromkeys([*issue.assignees, *ctx.texts("Issue", "assignees")]))
    return Answer(201, ctx.render.issue(repository, issue))


@route("GET", "/search/issues")
def _search(ctx: Context) -> Answer:
    query = ctx.call.query.get("q") or invalid("Search", "q", "missing")
    terms = [(minus, name, quoted or plain) for minus, name, quoted, plain in QUALIFIER.findall(query)]
    words = QUALIFIER.sub(" ", query).replace('"', " ").lower().split()
    repositories = ctx.world.repositories.values()
    found = [(repo, issue) for repo in repositories for issue in repo.issues.values() if _matches(repo, issue, terms, words)]
    return ctx.page(found, lambda item: ctx.render.issue(item[0], item[1]), place="items")


def set_labels(ctx: Context, repository: Repository, issue: Issue, names: Sequence[str]) -> None:
    """Give an issue exactly these labels, and note what was added and what was removed."""
    if len(names) > MOST_LABELS:
        invalid("Issue", "labels", "custom", f"an issue has at most {MOST_LABELS} labels")
    wanted = list(dict.fromkeys(ctx.world.label(repository, name).name for name in names))
    for name in wanted:
        if name not in issue.labels:
            ctx.world.tell("labeled", repository, issue.number, label=name)
    for name in issue.labels:
        if name not in wanted:
            ctx.world.tell("unlabeled", repository, issue.number, label=name)
    issue.labels = wanted


def set_state(ctx: Context, repository: Repository, issue: Issue) -> None:
    """Close or open an issue as the call's ``state`` says."""
    state = ctx.text("Issue", "state", issue.state)
    if state not in ("open", "closed"):
        invalid("Issue", "state")
    if state == issue.state:
        return
    if issue.pull and issue.pull.merged:
        invalid("PullRequest", "state", "custom", "state cannot be changed. The pull request was merged.")
    reason: Any = ctx.call.fields.get("state_reason")
    issue.state, issue.closed = state, ctx.world.now() if state == "closed" else None
    issue.reason = reason if reason in REASONS else "completed" if state == "closed" else "reopened"
    ctx.world.tell("closed" if state == "closed" else "reopened", repository, issue.number, reason=issue.reason)


def _labels_of(ctx: Context, repository: Repository, issue: Issue) -> Answer:
    return Answer(200, [ctx.render.label(repository, repository.labels[name.lower()]) for name in issue.labels])


def _found_comment(repository: Repository, id: str) -> tuple[Issue, Comment]:
    for issue in repository.issues.values():
        for comment in issue.comments:
            if str(comment.id) == id:
                return issue, comment
    return not_found()


def _matches(repository: Repository, issue: Issue, terms: Sequence[tuple[str, str, str]], words: Sequence[str]) -> bool:
    """Tell whether an issue fits a search: qualifiers that are known, and words in title, body or comments."""
    text = " ".join([issue.title, issue.body or "", *(comment.body for comment in issue.comments)]).lower()
    kinds = {"pr" if issue.pull else "issue", "pull-request" if issue.pull else "issue", issue.state}
    kinds |= {"merged"} if issue.pull and issue.pull.merged else set()
    held = {
        "repo": {repository.name.lower()},
        "org": {repository.name.partition("/")[0].lower()},
        "user": {repository.name.partition("/")[0].lower()},
        "is": kinds,
        "type": kinds,
        "state": {issue.state},
        "author": {issue.user.lower()},
        "assignee": {login.lower() for login in issue.assignees},
        "label": {name.lower() for name in issue.labels},
    }
    fits = all((value.lower() in held[name]) != bool(minus) for minus, name, value in terms if name in held)
    return fits and all(word in text for word in words)
