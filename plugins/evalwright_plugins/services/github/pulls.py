"""Pull requests: their files, reviews, comments and merging."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from evalwright_plugins.services._messages import Answer, is_array, is_object
from evalwright_plugins.services.github._base import Context, invalid, not_found, refuse, route
from evalwright_plugins.services.github.issues import set_state
from evalwright_plugins.services.github.render import changed_files
from evalwright_plugins.services.github.world import Comment, Issue, Pull, Repository, Review

__all__ = ["PULL", "obstacle"]

REPO = "/repos/{owner}/{repo}"
PULL = REPO + "/pulls/{number}"
DIFFS = ("vnd.github.diff", "vnd.github.v3.diff", "vnd.github.patch", "vnd.github.v3.patch")
METHODS = ("merge", "squash", "rebase")
VERDICTS: Mapping[str, str] = MappingProxyType(
    {"APPROVE": "APPROVED", "REQUEST_CHANGES": "CHANGES_REQUESTED", "COMMENT": "COMMENTED", "PENDING": "PENDING"}
)


@route("GET", REPO + "/pulls")
def _pulls(ctx: Context, owner: str, repo: str) -> Answer:
    repository, query = ctx.repository(owner, repo), ctx.call.query
    state, base, head = query.get("state", "open"), query.get("base"), query.get("head", "").rpartition(":")[2]
    found = [
        (issue, issue.pull)
        for issue in reversed(repository.pulls)
        if issue.pull
        and state in ("all", issue.state)
        and base in (None, issue.pull.base)
        and (not head or head == issue.pull.head)
    ]
    return ctx.page(found, lambda item: ctx.render.pull(repository, *item))


@route("POST", REPO + "/pulls")
def _make_pull(ctx: Context, owner: str, repo: str) -> Answer:
    repository, world = ctx.repository(owner, repo), ctx.world
    title, body = ctx.text("PullRequest", "title"), ctx.text("PullRequest", "body", "")
    base, head = ctx.text("PullRequest", "base"), ctx.text("PullRequest", "head").rpartition(":")[2]
    for name, branch in (("base", base), ("head", head)):
        if branch not in repository.branches:
            invalid("PullRequest", name)
    if any(
        issue.pull and (issue.pull.base, issue.pull.head, issue.state) == (base, head, "open") for issue in repository.pulls
    ):
        message = f"A pull request already exists for {owner}:{head}."
        refuse(422, "Validation Failed", errors=[{"resource": "PullRequest", "code": "custom", "message": message}])
    if repository.branches[base] == repository.branches[head]:
        message = f"No commits between {base} and {head}"
        refuse(422, "Validation Failed", errors=[{"resource": "PullRequest", "code": "custom", "message": message}])
    number = max(repository.issues, default=0) + 1
    pull = Pull(base, head, repository.branches[head], draft=ctx.call.fields.get("draft") is True)
    issue = Issue(world.id(), number, title, body or None, world.user, world.now(), pull=pull)
    repository.issues[number] = issue
    world.tell("pull_opened", repository, number, title=title, base=base, head=head, draft=pull.draft)
    return Answer(201, ctx.render.pull(repository, issue, pull))


@route("GET", PULL)
def _pull(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    if any(kind in ctx.call.headers.get("accept", "") for kind in DIFFS):
        return Answer(200, "".join(_diff(file) for file in changed_files(repository, pull)))
    return Answer(200, ctx.render.pull(repository, issue, pull))


@route("PATCH", PULL)
def _change_pull(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    issue.title = ctx.text("PullRequest", "title", issue.title)
    issue.body = ctx.text("PullRequest", "body", issue.body or "") or None
    base = ctx.text("PullRequest", "base", pull.base)
    if base != pull.base and base not in repository.branches:
        invalid("PullRequest", "base")
    pull.base = base
    set_state(ctx, repository, issue)
    return Answer(200, ctx.render.pull(repository, issue, pull))


@route("GET", PULL + "/files")
def _files(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    _, pull = ctx.pull(repository, number)
    return ctx.page(changed_files(repository, pull), lambda file: file)


@route("GET", PULL + "/commits")
def _commits(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    commit = repository.commits.get(pull.head_sha)
    shown = ctx.render.commit(repository, commit) if commit else {"sha": pull.head_sha, "commit": {"message": issue.title}}
    return Answer(200, [shown])


@route("GET", PULL + "/reviews")
def _reviews(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    return ctx.page(pull.reviews, lambda review: ctx.render.review(repository, issue, review))


@route("POST", PULL + "/reviews")
def _make_review(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository, world = ctx.repository(owner, repo), ctx.world
    issue, pull = ctx.pull(repository, number)
    event = ctx.text("PullRequestReview", "event", "PENDING")
    if event not in VERDICTS:
        invalid("PullRequestReview", "event")
    comments: object = ctx.call.fields.get("comments") or []
    body = ctx.text("PullRequestReview", "body", "")
    if not body and (event == "REQUEST_CHANGES" or (event == "COMMENT" and not comments)):
        refuse(422, "Unprocessable Entity", errors=["Review Can not submit an empty review"])
    if event in ("APPROVE", "REQUEST_CHANGES") and issue.user == world.user:
        refuse(422, "Unprocessable Entity", errors=[f"Can not {event.lower().replace('_', ' ')} your own pull request"])
    _add_review_comments(ctx, pull, comments)
    review = Review(world.id(), world.user, VERDICTS[event], body, pull.head_sha, world.now())
    pull.reviews.append(review)
    if event != "PENDING":
        world.tell("reviewed", repository, issue.number, verdict=event, body=body)
    return Answer(200, ctx.render.review(repository, issue, review))


@route("POST", PULL + "/reviews/{id}/events")
def _submit_review(ctx: Context, owner: str, repo: str, number: str, id: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    review = next((review for review in pull.reviews if str(review.id) == id), None) or not_found()
    event = ctx.text("PullRequestReview", "event")
    if review.state != "PENDING" or event not in VERDICTS or event == "PENDING":
        invalid("PullRequestReview", "event")
    review.state, review.body = VERDICTS[event], ctx.text("PullRequestReview", "body", review.body)
    ctx.world.tell("reviewed", repository, issue.number, verdict=event, body=review.body)
    return Answer(200, ctx.render.review(repository, issue, review))


@route("GET", PULL + "/comments")
def _comments(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    return ctx.page(pull.comments, lambda comment: ctx.render.comment(repository, issue, comment))


@route("POST", PULL + "/comments")
def _make_comment(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    ctx.text("PullRequestReviewComment", "body")
    _add_review_comments(ctx, pull, [ctx.call.fields])
    return Answer(201, ctx.render.comment(repository, issue, pull.comments[-1]))


@route("POST", PULL + "/requested_reviewers")
def _request_reviewers(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository = ctx.repository(owner, repo)
    issue, pull = ctx.pull(repository, number)
    pull.reviewers = list(dict.fromkeys([*pull.reviewers, *ctx.texts("PullRequest", "reviewers")]))
    return Answer(201, ctx.render.pull(repository, issue, pull))


@route("GET", PULL + "/merge")
def _is_merged(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    _, pull = ctx.pull(ctx.repository(owner, repo), number)
    return Answer(204) if pull.merged else not_found()


@route("PUT", PULL + "/merge")
def _merge(ctx: Context, owner: str, repo: str, number: str) -> Answer:
    repository, world = ctx.repository(owner, repo), ctx.world
    issue, pull = ctx.pull(repository, number)
    method = ctx.text("PullRequest", "merge_method", "merge")
    if method not in METHODS:
        invalid("PullRequest", "merge_method")
    if why := obstacle(repository, issue, pull):
        refuse(405, why)
    if ctx.text("PullRequest", "sha", pull.head_sha) != pull.head_sha:
        refuse(409, "Head branch was modified. Review and try the merge again.")
    message = ctx.text("PullRequest", "commit_title", f"{issue.title} (#{issue.number})")
    files = repository.files(pull.head) if pull.head in repository.branches else repository.files(pull.base)
    parents = [repository.branches[pull.base]] if pull.base in repository.branches else []
    commit = world.commit(repository, pull.base, message, files, parents=parents)
    pull.merged, pull.merged_by, pull.merge_sha = True, world.user, commit.sha
    issue.state, issue.closed = "closed", world.now()
    world.tell("merged", repository, issue.number, method=method)
    return Answer(200, {"sha": commit.sha, "merged": True, "message": "Pull Request successfully merged"})


def obstacle(repository: Repository, issue: Issue, pull: Pull) -> str | None:
    """Return why a pull request cannot be merged now, in GitHub's words; ``None`` when it can."""
    if pull.merged or issue.state != "open" or not pull.mergeable:
        return "Pull Request is not mergeable"
    if pull.draft:
        return "Pull Request is still a draft"
    passed = {check.name for check in repository.checks.get(pull.head_sha, []) if check.conclusion == "success"}
    missing = [name for name in repository.required_checks if name not in passed]
    return f'Required status check "{missing[0]}" is expected.' if missing else None


def _add_review_comments(ctx: Context, pull: Pull, comments: object) -> None:
    if not is_array(comments):
        invalid("PullRequestReview", "comments")
    for item in comments:
        body, path, line = (item.get(key) for key in ("body", "path", "line")) if is_object(item) else (None, None, None)
        if not isinstance(body, str) or not isinstance(path, str):
            invalid("PullRequestReviewComment", "path" if isinstance(body, str) else "body", "missing_field")
        where = line if isinstance(line, int) else None
        pull.comments.append(Comment(ctx.world.id(), ctx.world.user, body, ctx.world.now(), path, where))


def _diff(file: Mapping[str, object]) -> str:
    """Return a file's part of a diff, as git writes it."""
    name, status = file["filename"], file["status"]
    old, new = "/dev/null" if status == "added" else f"a/{name}", "/dev/null" if status == "removed" else f"b/{name}"
    return f"diff --git a/{name} b/{name}\n--- {old}\n+++ {new}\n{str(file.get('patch', '')).rstrip()}\n"
