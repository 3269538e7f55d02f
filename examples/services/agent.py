"""A scripted agent: it triages issues and decides on dependency updates by a few rules, through GitHub's API."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from pathlib import Path
from typing import Any

API = os.environ["GITHUB_API_URL"]
TOKEN = os.environ["GITHUB_TOKEN"]
REPOSITORY = "/repos/acme/widget"
RULES = (("steps to reproduce", "bug"), ("how do i", "question"), ("add ", "enhancement"))
ENABLE = (
    "mutation($id: ID!) { enablePullRequestAutoMerge(input: {pullRequestId: $id, mergeMethod: SQUASH}) { clientMutationId } }"
)


def call(method: str, path: str, body: Any = None) -> Any:
    """Call the API and return its answer."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/vnd.github+json", "Content-Type": "application/json"}
    request = urllib.request.Request(API + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def triage(number: str) -> str:
    """Label an issue, and ask for what is missing."""
    issue = call("GET", f"{REPOSITORY}/issues/{number}")
    text = f"{issue['title']}\n{issue['body']}".lower()
    label = next((label for words, label in RULES if words in text), "needs-info")
    call("POST", f"{REPOSITORY}/issues/{number}/labels", {"labels": [label]})
    if label == "needs-info":
        question = "Which version is it, and what are the steps to reproduce it?"
        call("POST", f"{REPOSITORY}/issues/{number}/comments", {"body": question})
    return label


def decide(number: str) -> str:
    """Let a green update that is not major merge itself; leave others to people."""
    pull = call("GET", f"{REPOSITORY}/pulls/{number}")
    runs = call("GET", f"{REPOSITORY}/commits/{pull['head']['sha']}/check-runs")["check_runs"]
    green = bool(runs) and all(run["conclusion"] == "success" for run in runs)
    old, new = re.findall(r"(\d+)\.\d+\.\d+", pull["title"])
    if green and old == new:
        call("POST", "/graphql", {"query": ENABLE, "variables": {"id": pull["node_id"]}})
        return "auto-merge"
    call("POST", f"{REPOSITORY}/issues/{number}/labels", {"labels": ["requires-human"]})
    body = f"A major update, from {old} to {new}." if old != new else "The checks are not green."
    call("POST", f"{REPOSITORY}/pulls/{number}/reviews", {"event": "COMMENT", "body": body})
    return "requires-human"


def main() -> None:
    """Do the task."""
    task = Path(os.environ["EVALWRIGHT_TASK_FILE"]).read_text(encoding="utf-8")
    kind, number = re.findall(r"(issue|request) (\d+)", task)[0]
    print(triage(number) if kind == "issue" else decide(number))


if __name__ == "__main__":
    main()
