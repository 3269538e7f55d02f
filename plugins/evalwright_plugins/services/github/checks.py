"""Check runs, commit statuses, and the workflow runs and logs behind them."""

from __future__ import annotations

from evalwright_plugins.services._messages import Answer
from evalwright_plugins.services.github._base import Context, invalid, not_found, refuse, route
from evalwright_plugins.services.github.world import Check, Repository

__all__ = ["combined"]

REPO = "/repos/{owner}/{repo}"
COMMIT = REPO + "/commits/{ref}"
RUNS = REPO + "/actions/runs"
STATES = ("error", "failure", "pending", "success")
BAD = ("failure", "cancelled", "timed_out", "action_required")


def combined(checks: list[Check]) -> str:
    """Return the state of a commit: that of the worst of its statuses."""
    states = [check.state or ("success" if check.conclusion else "pending") for check in checks]
    bad = any(state in ("error", "failure") for state in states) or any(check.conclusion in BAD for check in checks)
    return "failure" if bad else "pending" if "pending" in states or not states else "success"


@route("GET", COMMIT + "/check-runs")
def _check_runs(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    sha, checks = _of(ctx.repository(owner, repo), ref)
    name = ctx.call.query.get("check_name")
    found = [check for check in checks if check.state is None and name in (None, check.name)]
    return ctx.page(found, lambda check: ctx.render.check(sha, check), place="check_runs")


@route("GET", COMMIT + "/check-suites")
def _check_suites(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    sha, checks = _of(ctx.repository(owner, repo), ref)
    state = combined(checks)
    suite = {"id": 1, "head_sha": sha, "status": "in_progress" if state == "pending" else "completed", "conclusion": state}
    return ctx.page([suite] if checks else [], lambda item: item, place="check_suites")


@route("GET", COMMIT + "/status")
def _status(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    sha, checks = _of(repository, ref)
    statuses = [_shown(check) for check in checks if check.state]
    return Answer(200, {"state": combined(checks), "sha": sha, "statuses": statuses, "total_count": len(statuses)})


@route("GET", COMMIT + "/statuses")
def _statuses(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    _, checks = _of(ctx.repository(owner, repo), ref)
    return ctx.page([check for check in reversed(checks) if check.state], _shown)


@route("POST", REPO + "/statuses/{ref}")
def _make_status(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    sha, _ = _of(repository, ref)
    state = ctx.text("Status", "state")
    if state not in STATES:
        invalid("Status", "state")
    conclusion = None if state == "pending" else "success" if state == "success" else "failure"
    check = Check(ctx.world.id(), ctx.text("Status", "context", "default"), conclusion, state=state)
    check.description = ctx.text("Status", "description", "") or None
    repository.checks[sha] = [*(old for old in repository.checks.get(sha, []) if old.name != check.name), check]
    ctx.world.tell("status_set", repository, context=check.name, state=state)
    return Answer(201, _shown(check))


@route("GET", RUNS)
def _runs(ctx: Context, owner: str, repo: str) -> Answer:
    repository, query = ctx.repository(owner, repo), ctx.call.query
    wanted = query.get("head_sha") or (repository.commit(query["branch"]) if "branch" in query else None)
    branch = query.get("branch")
    heads = {issue.pull.head_sha for issue in repository.pulls if issue.pull and issue.pull.head == branch}
    found = [
        _run(repository, sha, check)
        for sha, checks in repository.checks.items()
        for check in checks
        if check.state is None and ((wanted is None and branch is None) or sha == wanted or sha in heads)
    ]
    return ctx.page(found, lambda run: run, place="workflow_runs")


@route("GET", RUNS + "/{id}")
def _one_run(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return Answer(200, _run(repository, *_found(repository, id)))


@route("GET", RUNS + "/{id}/jobs")
def _jobs(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    sha, check = _found(ctx.repository(owner, repo), id)
    return ctx.page([check], lambda job: _job(sha, job), place="jobs")


@route("GET", REPO + "/actions/jobs/{id}")
def _one_job(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    return Answer(200, _job(*_found(ctx.repository(owner, repo), id)))


@route("GET", REPO + "/actions/jobs/{id}/logs")
def _logs(ctx: Context, owner: str, repo: str, id: str) -> Answer:
    return Answer(200, _found(ctx.repository(owner, repo), id)[1].log)


def _of(repository: Repository, ref: str) -> tuple[str, list[Check]]:
    """Return a commit and its checks."""
    sha = repository.commit(ref)
    if sha is None:
        heads = [
            issue.pull.head_sha for issue in repository.pulls if issue.pull and ref in (issue.pull.head, issue.pull.head_sha)
        ]
        sha = heads[0] if heads else refuse(422, f"No commit found for SHA: {ref}")
    return sha, repository.checks.get(sha, [])


def _found(repository: Repository, id: str) -> tuple[str, Check]:
    for sha, checks in repository.checks.items():
        for check in checks:
            if str(check.id) == id:
                return sha, check
    return not_found()


def _run(repository: Repository, sha: str, check: Check) -> dict[str, object]:
    branch = next((issue.pull.head for issue in repository.pulls if issue.pull and issue.pull.head_sha == sha), None)
    branch = branch or next((name for name, head in repository.branches.items() if head == sha), None)
    return _job(sha, check) | {"head_branch": branch, "event": "pull_request", "display_title": check.name}


def _job(sha: str, check: Check) -> dict[str, object]:
    status = "completed" if check.conclusion else "in_progress"
    return {
        "id": check.id,
        "run_id": check.id,
        "name": check.name,
        "head_sha": sha,
        "status": status,
        "conclusion": check.conclusion,
        "steps": [{"name": check.name, "number": 1, "status": status, "conclusion": check.conclusion}],
    }


def _shown(check: Check) -> dict[str, object]:
    return {"id": check.id, "context": check.name, "state": check.state, "description": check.description}
