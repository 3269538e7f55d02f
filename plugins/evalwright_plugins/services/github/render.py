"""GitHub's own JSON for the values of a world: the fields that clients read."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import Any

from evalwright_plugins.services.github.world import (
    Check,
    Comment,
    Commit,
    Issue,
    Label,
    Pull,
    Repository,
    Review,
    World,
    blob_sha,
)

__all__ = ["Renderer", "changed_files"]

WEB = "https://github.com"
MAX_FILES = 300
MAX_DIFF_LINES = 2000
Record = dict[str, Any]


class Renderer:
    """Renders for one call; ``base`` is the address of the service as its caller knows it."""

    def __init__(self, base: str, world: World) -> None:
        self._base = base
        self._world = world

    def user(self, login: str) -> Record:
        """Return a user."""
        bot = login.endswith("[bot]")
        return {
            "login": login,
            "id": int(blob_sha(login.encode())[:7], 16),
            "type": "Bot" if bot else "User",
            "url": f"{self._base}/users/{login}",
            "html_url": f"{WEB}/{login.removesuffix('[bot]')}",
            "site_admin": False,
        }

    def repository(self, repository: Repository) -> Record:
        """Return a repository."""
        owner, _, name = repository.name.partition("/")
        return {
            "id": repository.id,
            "node_id": f"R_{repository.id}",
            "name": name,
            "full_name": repository.name,
            "owner": self.user(owner),
            "private": repository.private,
            "description": repository.description,
            "default_branch": repository.default_branch,
            "fork": False,
            "archived": False,
            "allow_auto_merge": True,
            "url": f"{self._base}/repos/{repository.name}",
            "html_url": f"{WEB}/{repository.name}",
            "permissions": {"admin": False, "push": True, "pull": True},
        }

    def label(self, repository: Repository, label: Label) -> Record:
        """Return a label."""
        url = f"{self._base}/repos/{repository.name}/labels/{label.name}"
        return {
            "id": label.id,
            "name": label.name,
            "color": label.color,
            "description": label.description,
            "default": False,
            "url": url,
        }

    def comment(self, repository: Repository, issue: Issue, comment: Comment) -> Record:
        """Return a comment on an issue, or on the diff of a pull request."""
        record: Record = {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "user": self.user(comment.user),
            "body": comment.body,
            "created_at": comment.time,
            "updated_at": comment.time,
            "html_url": f"{WEB}/{repository.name}/issues/{issue.number}#issuecomment-{comment.id}",
            "issue_url": f"{self._base}/repos/{repository.name}/issues/{issue.number}",
        }
        return record | ({"path": comment.path, "line": comment.line} if comment.path else {})

    def issue(self, repository: Repository, issue: Issue) -> Record:
        """Return an issue; a pull request too has the form of one."""
        kind = "pull" if issue.pull else "issues"
        record: Record = {
            "id": issue.id,
            "node_id": f"{'PR' if issue.pull else 'I'}_{issue.id}",
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "user": self.user(issue.user),
            "state": issue.state,
            "state_reason": issue.reason,
            "labels": [self.label(repository, repository.labels[name.lower()]) for name in issue.labels],
            "assignees": [self.user(login) for login in issue.assignees],
            "assignee": self.user(issue.assignees[0]) if issue.assignees else None,
            "comments": len(issue.comments),
            "locked": False,
            "milestone": None,
            "created_at": issue.time,
            "updated_at": issue.time,
            "closed_at": issue.closed,
            "url": f"{self._base}/repos/{repository.name}/issues/{issue.number}",
            "repository_url": f"{self._base}/repos/{repository.name}",
            "html_url": f"{WEB}/{repository.name}/{kind}/{issue.number}",
        }
        if issue.pull:
            record["pull_request"] = {"url": f"{self._base}/repos/{repository.name}/pulls/{issue.number}"}
        return record

    def pull(self, repository: Repository, issue: Issue, pull: Pull) -> Record:
        """Return a pull request."""
        files = changed_files(repository, pull)
        record = self.issue(repository, issue)
        del record["pull_request"]
        return record | {
            "url": f"{self._base}/repos/{repository.name}/pulls/{issue.number}",
            "draft": pull.draft,
            "merged": pull.merged,
            "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
            "merged_at": issue.closed if pull.merged else None,
            "merge_commit_sha": pull.merge_sha,
            "mergeable": None if issue.state != "open" else pull.mergeable,
            "mergeable_state": "dirty" if not pull.mergeable else "draft" if pull.draft else "clean",
            "auto_merge": {"enabled_by": self.user(self._world.user), "merge_method": pull.auto_merge}
            if pull.auto_merge
            else None,
            "base": self._end(repository, pull.base, repository.commit(pull.base) or ""),
            "head": self._end(repository, pull.head, pull.head_sha),
            "requested_reviewers": [self.user(login) for login in pull.reviewers],
            "review_comments": len(pull.comments),
            "commits": 1,
            "changed_files": len(files),
            "additions": sum(file["additions"] for file in files),
            "deletions": sum(file["deletions"] for file in files),
        }

    def review(self, repository: Repository, issue: Issue, review: Review) -> Record:
        """Return a review."""
        return {
            "id": review.id,
            "user": self.user(review.user),
            "body": review.body,
            "state": review.state,
            "commit_id": review.commit,
            "submitted_at": None if review.state == "PENDING" else review.time,
            "html_url": f"{WEB}/{repository.name}/pull/{issue.number}#pullrequestreview-{review.id}",
        }

    def check(self, sha: str, check: Check) -> Record:
        """Return a check run."""
        return {
            "id": check.id,
            "name": check.name,
            "head_sha": sha,
            "status": "completed" if check.conclusion else "in_progress",
            "conclusion": check.conclusion,
            "started_at": "2026-01-01T00:00:00Z",
            "completed_at": "2026-01-01T00:00:00Z" if check.conclusion else None,
            "app": {"id": 1, "slug": "github-actions", "name": "GitHub Actions"},
            "output": {"title": None, "summary": None, "text": None},
        }

    def commit(self, repository: Repository, commit: Commit) -> Record:
        """Return a commit."""
        signature = {"name": self._world.user, "email": "bot@example.com", "date": commit.time}
        return {
            "sha": commit.sha,
            "url": f"{self._base}/repos/{repository.name}/commits/{commit.sha}",
            "commit": {"message": commit.message, "author": signature, "committer": signature, "tree": {"sha": commit.sha}},
            "parents": [{"sha": sha} for sha in commit.parents],
        }

    def ref(self, repository: Repository, branch: str) -> Record:
        """Return a reference to a branch."""
        return {
            "ref": f"refs/heads/{branch}",
            "url": f"{self._base}/repos/{repository.name}/git/refs/heads/{branch}",
            "object": {"type": "commit", "sha": repository.branches[branch]},
        }

    def _end(self, repository: Repository, ref: str, sha: str) -> Record:
        owner = repository.name.partition("/")[0]
        return {
            "ref": ref,
            "sha": sha,
            "label": f"{owner}:{ref}",
            "user": self.user(owner),
            "repo": self.repository(repository),
        }


def changed_files(repository: Repository, pull: Pull) -> list[Record]:
    """Return the files of a pull request: those of its seed, else what differs between its two branches."""
    if pull.files is not None:
        return [{"status": "modified", "additions": 0, "deletions": 0, "changes": 0} | file for file in pull.files]
    before, after = repository.files(pull.base), repository.files(pull.head)
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))[:MAX_FILES]
    return [dict(_changed(path, before.get(path), after.get(path))) for path in paths]


@lru_cache(maxsize=1024)
def _changed(path: str, old: bytes | None, new: bytes | None) -> Record:
    """Return how a file differs; as on GitHub a long one has no patch, which also bounds the work."""
    before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (old, new))
    long = len(before) + len(after) > MAX_DIFF_LINES
    lines = [] if long else list(difflib.unified_diff(before, after, lineterm=""))[2:]
    added, removed = (len(after), len(before)) if long else (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return {
        "sha": blob_sha(new if new is not None else old or b""),
        "filename": path,
        "status": "added" if old is None else "removed" if new is None else "modified",
        "additions": added,
        "deletions": removed,
        "changes": added + removed,
        **({} if long else {"patch": "\n".join(lines)}),
    }
