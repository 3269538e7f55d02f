"""Files, branches, references and commits of a repository."""

from __future__ import annotations

import base64
import binascii

from evalwright_plugins.services._messages import Answer
from evalwright_plugins.services.github._base import MOST_BRANCHES, MOST_COMMITS, Context, invalid, not_found, refuse, route
from evalwright_plugins.services.github.world import Files, Repository, blob_sha

__all__ = ["REPO"]

REPO = "/repos/{owner}/{repo}"
CONTENTS = REPO + "/contents/{path...}"
MAX_PATH = 1024
MAX_CONTENT = 1 << 20
HEADS = "heads/"


@route("GET", REPO + "/contents")
def _root(ctx: Context, owner: str, repo: str) -> Answer:
    return _contents(ctx, owner, repo, "")


@route("GET", CONTENTS)
def _contents(ctx: Context, owner: str, repo: str, path: str) -> Answer:
    repository = ctx.repository(owner, repo)
    files = repository.files(_known(repository, ctx.call.query.get("ref", repository.default_branch)))
    path = path.strip("/")
    if path in files:
        if "raw" in ctx.call.headers.get("accept", ""):
            return Answer(200, files[path])
        encoded = base64.encodebytes(files[path]).decode()
        return Answer(200, _entry(path, files) | {"encoding": "base64", "content": encoded})
    inside = f"{path}/" if path else ""
    names = {inside + name.removeprefix(inside).partition("/")[0] for name in files if name.startswith(inside)}
    if not names and path:
        not_found()
    return Answer(200, [_entry(name, files) for name in sorted(names)])


@route("PUT", CONTENTS)
def _write(ctx: Context, owner: str, repo: str, path: str) -> Answer:
    repository = ctx.repository(owner, repo)
    branch, files = _branch_of(ctx, repository)
    message = ctx.text("Commit", "message")
    if not path or len(path) > MAX_PATH or any(part in ("", ".", "..", ".git") for part in path.split("/")):
        refuse(422, "path contains a malformed path component")
    try:
        content = base64.b64decode("".join(ctx.text("Commit", "content", "", longest=MAX_CONTENT).split()), validate=True)
    except (binascii.Error, ValueError):
        refuse(422, "content is not valid Base64")
    created = path not in files
    _check_sha(ctx, path, files)
    return _committed(ctx, repository, branch, message, {**files, path: content}, path, 201 if created else 200)


@route("DELETE", CONTENTS)
def _delete(ctx: Context, owner: str, repo: str, path: str) -> Answer:
    repository = ctx.repository(owner, repo)
    branch, files = _branch_of(ctx, repository)
    message = ctx.text("Commit", "message")
    if path not in files:
        not_found()
    _check_sha(ctx, path, files)
    left = {name: content for name, content in files.items() if name != path}
    return _committed(ctx, repository, branch, message, left, path, 200)


@route("GET", REPO + "/readme")
def _readme(ctx: Context, owner: str, repo: str) -> Answer:
    return _contents(ctx, owner, repo, "README.md")


@route("GET", REPO + "/branches")
def _branches(ctx: Context, owner: str, repo: str) -> Answer:
    repository = ctx.repository(owner, repo)
    shown = [{"name": name, "commit": {"sha": sha}, "protected": False} for name, sha in repository.branches.items()]
    return ctx.page(shown, lambda branch: branch)


@route("GET", REPO + "/branches/{branch...}")
def _branch(ctx: Context, owner: str, repo: str, branch: str) -> Answer:
    repository = ctx.repository(owner, repo)
    if branch not in repository.branches:
        refuse(404, "Branch not found")
    commit = ctx.render.commit(repository, repository.commits[repository.branches[branch]])
    return Answer(200, {"name": branch, "commit": commit, "protected": False})


@route("GET", REPO + "/git/ref/{ref...}")
def _ref(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    return Answer(200, ctx.render.ref(repository, _head(repository, ref)))


@route("GET", REPO + "/git/matching-refs/{ref...}")
def _refs(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    found = [branch for branch in repository.branches if f"{HEADS}{branch}".startswith(ref)]
    return ctx.page(found, lambda branch: ctx.render.ref(repository, branch))


@route("POST", REPO + "/git/refs")
def _make_ref(ctx: Context, owner: str, repo: str) -> Answer:
    repository = ctx.repository(owner, repo)
    ref, sha = ctx.text("Reference", "ref"), ctx.text("Reference", "sha")
    branch = ref.removeprefix("refs/heads/")
    if branch == ref or not branch or ref.endswith("/") or any(character in branch for character in " ~^:?*[\\"):
        refuse(422, "Reference name must start with refs/heads/ and be a valid name")
    if branch in repository.branches:
        refuse(422, "Reference already exists")
    if sha not in repository.commits:
        refuse(422, "Object does not exist")
    if len(repository.branches) >= MOST_BRANCHES:
        refuse(403, f"this service takes {MOST_BRANCHES} branches of a repository")
    repository.branches[branch] = sha
    ctx.world.tell("branch_created", repository, branch=branch)
    return Answer(201, ctx.render.ref(repository, branch))


@route("PATCH", REPO + "/git/refs/{ref...}")
def _move_ref(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    branch, sha = _head(repository, ref), ctx.text("Reference", "sha")
    if sha not in repository.commits:
        refuse(422, "Object does not exist")
    if ctx.call.fields.get("force") is not True and repository.branches[branch] not in _history(repository, sha):
        refuse(422, "Update is not a fast forward")
    repository.branches[branch] = sha
    ctx.world.tell("branch_moved", repository, branch=branch)
    return Answer(200, ctx.render.ref(repository, branch))


@route("DELETE", REPO + "/git/refs/{ref...}")
def _delete_ref(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    branch = _head(repository, ref)
    if branch == repository.default_branch:
        refuse(422, "Cannot delete the default branch")
    del repository.branches[branch]
    ctx.world.tell("branch_deleted", repository, branch=branch)
    return Answer(204)


@route("GET", REPO + "/git/trees/{ref...}")
def _tree(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    sha = _known(repository, ref)
    files = repository.files(sha)
    entries = [
        {"path": path, "mode": "100644", "type": "blob", "sha": blob_sha(data), "size": len(data)}
        for path, data in sorted(files.items())
    ]
    return Answer(200, {"sha": sha, "tree": entries, "truncated": False})


@route("GET", REPO + "/commits")
def _commits(ctx: Context, owner: str, repo: str) -> Answer:
    repository = ctx.repository(owner, repo)
    sha = _known(repository, ctx.call.query.get("sha", repository.default_branch))
    history = [repository.commits[each] for each in _history(repository, sha) if each in repository.commits]
    return ctx.page(history, lambda commit: ctx.render.commit(repository, commit))


@route("GET", REPO + "/commits/{ref}")
def _commit(ctx: Context, owner: str, repo: str, ref: str) -> Answer:
    repository = ctx.repository(owner, repo)
    commit = repository.commits.get(_known(repository, ref)) or not_found()
    return Answer(200, ctx.render.commit(repository, commit))


def _committed(ctx: Context, repository: Repository, branch: str, message: str, files: Files, path: str, status: int) -> Answer:
    if len(repository.commits) >= MOST_COMMITS:
        refuse(403, f"this service takes {MOST_COMMITS} commits of a repository")
    commit = ctx.world.commit(repository, branch, message, files, parents=[repository.branches[branch]])
    ctx.world.tell("committed", repository, branch=branch, path=path, message=message)
    content = _entry(path, files) if path in files else None
    return Answer(status, {"content": content, "commit": ctx.render.commit(repository, commit)["commit"] | {"sha": commit.sha}})


def _branch_of(ctx: Context, repository: Repository) -> tuple[str, Files]:
    """Return the branch that a change is meant for, and its files."""
    branch = ctx.text("Commit", "branch", ctx.call.query.get("branch", repository.default_branch)).removeprefix("refs/heads/")
    if branch not in repository.branches:
        refuse(404, f"Branch {branch} not found")
    return branch, repository.files(branch)


def _check_sha(ctx: Context, path: str, files: Files) -> None:
    """Refuse a change of a file that does not name the content which it replaces."""
    given = ctx.text("Commit", "sha", ctx.call.query.get("sha", ""))
    if path in files and not given:
        invalid("Commit", "sha", "missing_field", '"sha" wasn\'t supplied.')
    if given and (path not in files or given != blob_sha(files[path])):
        refuse(409, f"{path} does not match {given}")


def _known(repository: Repository, ref: str) -> str:
    return repository.commit(ref) or refuse(404, f"No commit found for the ref {ref}")


def _head(repository: Repository, ref: str) -> str:
    branch = ref.removeprefix(HEADS)
    return branch if ref.startswith(HEADS) and branch in repository.branches else not_found()


def _history(repository: Repository, sha: str) -> list[str]:
    """Return a commit and all before it, the newest first."""
    found, waiting = dict[str, None](), [sha]
    while waiting:
        each = waiting.pop(0)
        if each not in found:
            found[each] = None
            waiting += repository.commits[each].parents if each in repository.commits else []
    return list(found)


def _entry(path: str, files: Files) -> dict[str, object]:
    record: dict[str, object] = {"name": path.rpartition("/")[2], "path": path}
    if path not in files:
        return record | {"type": "dir", "size": 0, "sha": blob_sha(path.encode())}
    return record | {"type": "file", "size": len(files[path]), "sha": blob_sha(files[path])}
