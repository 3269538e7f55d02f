"""The service ``github``: what agents read and write there, its refusals, and the cases of three lastlight tiers."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from evalwright.interfaces import Deadline, Host, RunningService
from evalwright.testing import FakeHost, ServiceContract
from evalwright_plugins.services.github import begin, contents
from evalwright_plugins.services.github.plugin import GithubConfig, GithubService
from evalwright_plugins.services.github.seed import GithubSeed

SEED: dict[str, Any] = {
    "repositories": {
        "acme/app": {
            "labels": ["bug", {"name": "needs info", "color": "d876e3"}],
            "issues": [
                {
                    "number": 101,
                    "title": "Crash on empty config",
                    "body": "It throws",
                    "user": "alice",
                    "comments": [{"body": "hi"}],
                },
                {"number": 102, "title": "Done", "state": "closed", "labels": ["bug"]},
            ],
            "pulls": [
                {
                    "number": 501,
                    "title": "Bump types",
                    "user": "dependabot[bot]",
                    "head": "dependabot/pr-501",
                    "head_sha": "f1a0b22",
                    "files": [{"filename": "package.json", "additions": 1, "deletions": 1, "patch": "@@ -1 +1 @@\n-a\n+b"}],
                    "checks": [
                        {"name": "CI / test", "log": "all green"},
                        {"name": "lint", "conclusion": "failure", "log": "bad"},
                    ],
                },
                {"number": 502, "title": "Conflicts", "head": "x", "mergeable": False},
                {"number": 503, "title": "Draft", "head": "y", "draft": True},
                {"number": 504, "title": "Feature", "head": "feature", "user": "bob"},
            ],
            "branches": {
                "main": {"README.md": "# App\n", "src/a.py": "a = 1\n"},
                "feature": {"README.md": "# App\n", "b.py": "b\n"},
            },
        }
    }
}
REPO = "/repos/acme/app"


class Hub:
    """Calls one running service as an agent would."""

    def __init__(self, running: Any) -> None:
        self.running = running
        self.url = running.env["GITHUB_API_URL"]
        self.http = httpx.Client(
            trust_env=False, verify=False, base_url=self.url, headers={"Authorization": f"token {running.env['GITHUB_TOKEN']}"}
        )

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> httpx.Response:
        return self.http.request(method, path, json=body, **more)

    def get(self, path: str, **more: Any) -> Any:
        return self.call("GET", path, **more).json()

    def done(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        answer = self.call(method, path, body)
        return answer.status_code, answer.json() if answer.content else None

    @property
    def state(self) -> Any:
        return self.running.state()["repositories"]["acme/app"]

    @property
    def events(self) -> list[str]:
        return [event["event"] for event in self.running.state()["events"]]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[Any], Hub]]:
    hubs: list[Hub] = []

    def open_one(seed: Any) -> Hub:
        place = tmp_path / f"seed{len(hubs)}.json"
        place.write_text(json.dumps(seed))
        hubs.append(Hub(GithubService(GithubConfig(), FakeHost()).open(place, Deadline.after(10))))
        return hubs[-1]

    yield open_one
    for hub in hubs:
        hub.http.close()
        hub.running.close()


@pytest.fixture
def hub(opened: Callable[[Any], Hub]) -> Hub:
    return opened(SEED)


class TestGithubService(ServiceContract):
    def make(self, host: Host) -> GithubService:
        return GithubService(GithubConfig(), host)

    def write_seed(self, place: Path) -> Path:
        (place / "seed.json").write_text(json.dumps(SEED))
        return place / "seed.json"

    def use(self, running: RunningService) -> None:
        hub = Hub(running)
        assert hub.call("POST", f"{REPO}/issues/101/labels", ["bug"]).status_code == 200
        hub.http.close()

    def miss(self, running: RunningService) -> None:
        hub = Hub(running)
        assert hub.call("GET", f"{REPO}/milestones").status_code == 404
        hub.http.close()


# Issues


def test_issues_are_listed_as_github_does(hub: Hub) -> None:
    assert [issue["number"] for issue in hub.get(f"{REPO}/issues")] == [504, 503, 502, 501, 101]
    assert [issue["number"] for issue in hub.get(f"{REPO}/issues?state=all&labels=bug")] == [102]
    issue = hub.get(f"{REPO}/issues/101")
    assert (issue["user"]["login"], issue["comments"], issue["labels"], "pull_request" in issue) == ("alice", 1, [], False)
    assert "pull_request" in hub.get(f"{REPO}/issues/501")


def test_labels_are_added_replaced_and_removed(hub: Hub) -> None:
    assert [label["name"] for label in hub.done("POST", f"{REPO}/issues/101/labels", {"labels": ["BUG", "new one"]})[1]] == [
        "bug",
        "new one",
    ]
    assert hub.done("DELETE", f"{REPO}/issues/101/labels/new%20one")[0] == 200
    assert hub.done("DELETE", f"{REPO}/issues/101/labels/new%20one") == (404, _error("Label does not exist", 404))
    assert [label["name"] for label in hub.done("PUT", f"{REPO}/issues/101/labels", {"labels": ["needs info"]})[1]] == [
        "needs info"
    ]
    assert hub.state["issues"]["101"]["labels"] == ["needs info"]
    assert hub.events == ["labeled", "labeled", "unlabeled", "labeled", "unlabeled"]
    assert hub.done("POST", f"{REPO}/issues/101/labels", {"labels": "bug"})[0] == 422


def test_labels_of_the_repository_are_ensured(hub: Hub) -> None:
    assert hub.done("POST", f"{REPO}/labels", {"name": "question", "color": "d876e3"})[0] == 201
    status, body = hub.done("POST", f"{REPO}/labels", {"name": "Question"})
    assert (status, body["errors"][0]["code"]) == (422, "already_exists")
    assert hub.get(f"{REPO}/labels/question")["color"] == "d876e3"
    assert hub.done("PATCH", f"{REPO}/labels/bug", {"new_name": "defect"})[0] == 200
    assert hub.get(f"{REPO}/issues/102")["labels"][0]["name"] == "defect"


def test_comments_are_written_changed_and_deleted(hub: Hub) -> None:
    status, comment = hub.done("POST", f"{REPO}/issues/101/comments", {"body": "Which version?"})
    assert (status, comment["user"]["login"]) == (201, "evalwright[bot]")
    assert [item["body"] for item in hub.get(f"{REPO}/issues/101/comments")] == ["hi", "Which version?"]
    assert hub.done("PATCH", f"{REPO}/issues/comments/{comment['id']}", {"body": "Which one?"})[0] == 200
    assert hub.done("DELETE", f"{REPO}/issues/comments/{comment['id']}")[0] == 204
    assert hub.done("POST", f"{REPO}/issues/101/comments", {"body": " "})[0] == 422
    assert len(hub.state["issues"]["101"]["comments"]) == 1


def test_issue_is_opened_closed_and_opened_again(hub: Hub) -> None:
    status, issue = hub.done("POST", f"{REPO}/issues", {"title": "New", "labels": ["bug"]})
    assert (status, issue["number"], issue["labels"][0]["name"]) == (201, 505, "bug")
    assert (
        hub.done("PATCH", f"{REPO}/issues/505", {"state": "closed", "state_reason": "not_planned"})[1]["state_reason"]
        == "not_planned"
    )
    assert hub.done("PATCH", f"{REPO}/issues/505", {"state": "open"})[1]["closed_at"] is None
    assert hub.done("PATCH", f"{REPO}/issues/505", {"state": "ajar"})[0] == 422
    assert hub.events == ["issue_opened", "labeled", "closed", "reopened"]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("repo:acme/app is:issue", [101, 102]),
        ("repo:acme/app is:issue is:open", [101]),
        ("crash config", [101]),
        ("label:bug -is:open", [102]),
        ('author:"dependabot[bot]" is:pr', [501]),
        ("repo:acme/other", []),
    ],
)
def test_search_finds_by_qualifiers_and_words(hub: Hub, query: str, numbers: list[int]) -> None:
    answer = hub.get("/search/issues", params={"q": query})
    assert ([issue["number"] for issue in answer["items"]], answer["total_count"]) == (numbers, len(numbers))


def test_pages_are_linked(hub: Hub) -> None:
    answer = hub.call("GET", f"{REPO}/issues?state=all&per_page=2")
    assert (len(answer.json()), set(answer.links)) == (2, {"next", "last"})
    numbers = [issue["number"] for issue in answer.json()]
    while "next" in answer.links:
        answer = hub.call("GET", answer.links["next"]["url"])
        numbers += [issue["number"] for issue in answer.json()]
    assert numbers == [504, 503, 502, 501, 102, 101]
    assert set(answer.links) == {"prev", "first"}


# Pull requests


def test_pull_request_is_read_with_its_files_and_diff(hub: Hub) -> None:
    pull = hub.get(f"{REPO}/pulls/501")
    assert (pull["head"]["sha"], pull["base"]["ref"], pull["additions"], pull["mergeable"]) == ("f1a0b22", "main", 1, True)
    assert hub.get(f"{REPO}/pulls/501/files")[0]["filename"] == "package.json"
    diff = hub.call("GET", f"{REPO}/pulls/501", headers={"Accept": "application/vnd.github.v3.diff"}).text
    assert diff.startswith("diff --git a/package.json b/package.json\n--- a/package.json")
    assert [pull["number"] for pull in hub.get(f"{REPO}/pulls?head=acme:feature")] == [504]
    assert hub.call("GET", f"{REPO}/pulls/101").status_code == 404


def test_files_of_a_pull_request_are_what_differs_between_branches(hub: Hub) -> None:
    files = hub.get(f"{REPO}/pulls/504/files")
    assert [(file["filename"], file["status"]) for file in files] == [("b.py", "added"), ("src/a.py", "removed")]
    assert files[0]["patch"] == "@@ -0,0 +1 @@\n+b"


def test_reviews_follow_github_s_rules(hub: Hub) -> None:
    reviews = f"{REPO}/pulls/501/reviews"
    assert hub.done("POST", reviews, {"event": "APPROVE", "body": "fine"})[1]["state"] == "APPROVED"
    assert hub.done("POST", reviews, {"event": "REQUEST_CHANGES"})[0] == 422
    assert hub.done("POST", reviews, {"event": "LOVE", "body": "x"})[0] == 422
    comments = [{"path": "package.json", "line": 1, "body": "why?"}]
    assert hub.done("POST", reviews, {"event": "COMMENT", "comments": comments})[0] == 200
    assert hub.done("POST", reviews, {"event": "COMMENT", "comments": [{"body": "why?"}]})[0] == 422
    pending = hub.done("POST", reviews, {"body": "later"})[1]
    assert pending["state"] == "PENDING"
    assert (
        hub.done("POST", f"{reviews}/{pending['id']}/events", {"event": "REQUEST_CHANGES"})[1]["state"] == "CHANGES_REQUESTED"
    )
    assert [review["state"] for review in hub.get(reviews)] == ["APPROVED", "COMMENTED", "CHANGES_REQUESTED"]
    assert hub.get(f"{REPO}/pulls/501/comments")[0]["path"] == "package.json"


def test_merge_wants_an_open_mergeable_pull_request_at_the_same_commit(hub: Hub) -> None:
    assert hub.done("PUT", f"{REPO}/pulls/502/merge", {}) == (405, _error("Pull Request is not mergeable", 405))
    assert hub.done("PUT", f"{REPO}/pulls/503/merge", {})[0] == 405
    assert hub.done("PUT", f"{REPO}/pulls/501/merge", {"sha": "0000000"})[0] == 409
    assert hub.done("PUT", f"{REPO}/pulls/501/merge", {"merge_method": "wild"})[0] == 422
    assert hub.call("GET", f"{REPO}/pulls/504/merge").status_code == 404
    assert hub.done("PUT", f"{REPO}/pulls/504/merge", {"merge_method": "squash"})[1]["merged"] is True
    assert hub.call("GET", f"{REPO}/pulls/504/merge").status_code == 204
    assert hub.done("PUT", f"{REPO}/pulls/504/merge", {})[0] == 405
    assert hub.done("PATCH", f"{REPO}/pulls/504", {"state": "open"})[0] == 422
    assert hub.state["branches"]["main"] == {"README.md": "# App\n", "b.py": "b\n"}
    assert (hub.state["pulls"]["504"]["merged"], hub.state["pulls"]["504"]["state"]) == (True, "closed")


def test_required_checks_hold_a_merge_up(opened: Callable[[Any], Hub]) -> None:
    seed = json.loads(json.dumps(SEED))
    seed["repositories"]["acme/app"]["required_checks"] = ["lint"]
    hub = opened(seed)
    status, body = hub.done("PUT", f"{REPO}/pulls/501/merge", {})
    assert (status, body["message"]) == (405, 'Required status check "lint" is expected.')


def test_auto_merge_is_enabled_by_graphql(hub: Hub) -> None:
    node = hub.get(f"{REPO}/pulls/501")["node_id"]
    query = "mutation($id: ID!) { enablePullRequestAutoMerge(input: {pullRequestId: $id, mergeMethod: SQUASH}) { x } }"
    answer = hub.done("POST", "/graphql", {"query": query, "variables": {"id": node}})[1]
    assert answer["data"]["enablePullRequestAutoMerge"]["pullRequest"]["autoMergeRequest"] == {"mergeMethod": "SQUASH"}
    assert hub.get(f"{REPO}/pulls/501")["auto_merge"]["merge_method"] == "squash"
    by_input = "mutation($input: Input!) { disablePullRequestAutoMerge(input: $input) { x } }"
    hub.done("POST", "/graphql", {"query": by_input, "variables": {"input": {"pullRequestId": node}}})
    assert hub.state["pulls"]["501"]["auto_merge"] is None
    assert hub.events == ["auto_merge_enabled", "auto_merge_disabled"]
    wrong = hub.done("POST", "/graphql", {"query": query, "variables": {"id": "PR_0"}})[1]
    assert wrong["errors"][0]["type"] == "NOT_FOUND"


def test_pull_request_is_found_by_graphql(hub: Hub) -> None:
    query = 'query { repository(owner: "acme", name: "app") { pullRequest(number: 501) { id headRefOid } } }'
    pull = hub.done("POST", "/graphql", {"query": query})[1]["data"]["repository"]["pullRequest"]
    assert (pull["headRefOid"], pull["statusCheckRollup"]) == ("f1a0b22", {"state": "FAILURE"})


# Files, branches and checks


def test_change_goes_to_a_branch_and_becomes_a_pull_request(hub: Hub) -> None:
    sha = hub.get(f"{REPO}/git/ref/heads/main")["object"]["sha"]
    assert hub.done("POST", f"{REPO}/git/refs", {"ref": "refs/heads/fix/a", "sha": sha})[0] == 201
    assert hub.done("POST", f"{REPO}/pulls", {"title": "Fix", "base": "main", "head": "fix/a"})[0] == 422
    file = hub.get(f"{REPO}/contents/src/a.py?ref=fix/a")
    assert base64.b64decode(file["content"]) == b"a = 1\n"
    new = {"message": "Fix a", "branch": "fix/a", "content": base64.b64encode(b"a = 2\n").decode()}
    assert hub.done("PUT", f"{REPO}/contents/src/a.py", new)[0] == 422
    assert hub.done("PUT", f"{REPO}/contents/src/a.py", new | {"sha": "0" * 40})[0] == 409
    assert hub.done("PUT", f"{REPO}/contents/src/a.py", new | {"sha": file["sha"]})[0] == 200
    status, pull = hub.done("POST", f"{REPO}/pulls", {"title": "Fix", "base": "main", "head": "fix/a", "body": "Closes #101"})
    assert (status, pull["number"], pull["changed_files"]) == (201, 505, 1)
    assert hub.done("POST", f"{REPO}/pulls", {"title": "Fix", "base": "main", "head": "fix/a"})[0] == 422
    assert hub.done("PUT", f"{REPO}/pulls/505/merge", {"sha": pull["head"]["sha"]})[0] == 200
    assert hub.state["branches"]["main"]["src/a.py"] == "a = 2\n"


def test_directories_and_missing_files_are_told_apart(hub: Hub) -> None:
    assert [(entry["name"], entry["type"]) for entry in hub.get(f"{REPO}/contents")] == [("README.md", "file"), ("src", "dir")]
    assert [entry["path"] for entry in hub.get(f"{REPO}/contents/src")] == ["src/a.py"]
    assert hub.call("GET", f"{REPO}/contents/.lastlight/lastlight.yml").status_code == 404
    assert hub.call("GET", f"{REPO}/contents/README.md?ref=nowhere").status_code == 404
    assert (
        hub.call("GET", f"{REPO}/contents/README.md", headers={"Accept": "application/vnd.github.raw+json"}).text == "# App\n"
    )


@pytest.mark.parametrize("path", ["../x", ".git/config", "a//b"])
def test_odd_path_is_refused(hub: Hub, path: str) -> None:
    body = {"message": "m", "content": ""}
    assert hub.call("PUT", f"{REPO}/contents/{path.replace('..', '%2e%2e')}", body).status_code == 422


def test_branches_are_moved_forward_and_deleted(hub: Hub) -> None:
    body = {"message": "m", "content": "eA==", "branch": "feature"}
    commit = hub.done("PUT", f"{REPO}/contents/new", body)[1]["commit"]["sha"]
    main = hub.get(f"{REPO}/branches/main")["commit"]["sha"]
    assert hub.done("PATCH", f"{REPO}/git/refs/heads/main", {"sha": commit})[0] == 422
    assert hub.done("PATCH", f"{REPO}/git/refs/heads/main", {"sha": commit, "force": True})[0] == 200
    assert hub.done("PATCH", f"{REPO}/git/refs/heads/feature", {"sha": main})[0] == 422
    assert [hub.done("DELETE", f"{REPO}/git/refs/heads/{name}")[0] for name in ("feature", "feature", "main")] == [
        204,
        404,
        422,
    ]
    assert hub.get(f"{REPO}/commits")[0]["sha"] == commit


def test_checks_and_their_logs_agree(hub: Hub) -> None:
    runs = hub.get(f"{REPO}/commits/f1a0b22/check-runs")
    assert [(run["name"], run["conclusion"]) for run in runs["check_runs"]] == [("CI / test", "success"), ("lint", "failure")]
    assert hub.get(f"{REPO}/commits/f1a0b22/status")["state"] == "failure"
    (run,) = [
        run for run in hub.get(f"{REPO}/actions/runs?head_sha=f1a0b22")["workflow_runs"] if run["conclusion"] == "failure"
    ]
    (job,) = hub.get(f"{REPO}/actions/runs/{run['id']}/jobs")["jobs"]
    assert hub.call("GET", f"{REPO}/actions/jobs/{job['id']}/logs").text == "bad"
    assert hub.done("POST", f"{REPO}/statuses/f1a0b22", {"state": "success", "context": "lint"})[0] == 201
    assert hub.get(f"{REPO}/commits/f1a0b22/status")["state"] == "success"
    assert hub.get(f"{REPO}/commits/main/status")["state"] == "pending"


# Errors, access, clients


def _error(message: str, status: int) -> dict[str, str]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}


def test_missing_things_are_404_and_known_routes(hub: Hub) -> None:
    for path in (
        "/repos/acme/none",
        f"{REPO}/issues/9",
        f"{REPO}/issues/x",
        f"{REPO}/pulls/9/files",
        f"{REPO}/git/ref/heads/none",
    ):
        assert hub.done("GET", path) == (404, _error("Not Found", 404))
    assert not any("unknown" in call for call in hub.running.calls())


def test_unknown_route_is_named(hub: Hub) -> None:
    status, body = hub.done("GET", f"{REPO}/milestones")
    assert (status, body["route"]) == (404, f"GET {REPO}/milestones")
    assert hub.done("POST", "/graphql", {"query": "{ rateLimit { cost } }"})[1]["errors"]
    assert [call["unknown"] for call in hub.running.calls()] == [True, True]


def test_call_without_the_trial_s_token_is_refused(hub: Hub) -> None:
    for headers, message in (({}, "Requires authentication"), ({"Authorization": "Bearer x"}, "Bad credentials")):
        answer = httpx.get(f"{hub.url}/user", headers=headers, trust_env=False, verify=False)
        assert (answer.status_code, answer.json()["message"]) == (401, message)
    basic = httpx.BasicAuth("x-access-token", hub.running.env["GITHUB_TOKEN"])
    assert httpx.get(f"{hub.url}/user", auth=basic, trust_env=False, verify=False).json()["login"] == "evalwright[bot]"


def test_names_are_the_same_in_capitals_and_below_the_enterprise_path(hub: Hub) -> None:
    assert hub.get("/api/v3/repos/ACME/App")["full_name"] == "acme/app"
    assert hub.call("HEAD", REPO).status_code == 200


def test_equal_calls_leave_equal_states(opened: Callable[[Any], Hub]) -> None:
    states: list[Any] = []
    for _ in range(2):
        hub = opened(SEED)
        hub.call("POST", f"{REPO}/issues/101/comments", {"body": "x"})
        hub.call("PUT", f"{REPO}/contents/new", {"message": "m", "content": "eA=="})
        states.append(hub.running.state())
    assert states[0] == states[1]


def test_large_change_has_no_patch(hub: Hub) -> None:
    text = base64.b64encode(b"\n".join(b"%d" % (number % 7) for number in range(50_000))).decode()
    hub.call("PUT", f"{REPO}/contents/big", {"message": "m", "content": text, "branch": "feature"})
    (big,) = [file for file in hub.get(f"{REPO}/pulls/504/files") if file["filename"] == "big"]
    assert (big["additions"], "patch" in big) == (50_000, False)


def test_what_an_agent_can_make_the_service_keep_is_bounded(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub.done("PUT", f"{REPO}/issues/101/labels", {"labels": [f"l{number}" for number in range(101)]})[0] == 422
    monkeypatch.setattr(contents, "MOST_COMMITS", 3)
    monkeypatch.setattr(contents, "MOST_BRANCHES", 3)
    monkeypatch.setattr(begin, "MAX_TEXT_BYTES", 20)
    write = [hub.done("PUT", f"{REPO}/contents/f{number}", {"message": "m", "content": "eA=="})[0] for number in range(2)]
    sha = hub.get(f"{REPO}/git/ref/heads/main")["object"]["sha"]
    made = [hub.done("POST", f"{REPO}/git/refs", {"ref": f"refs/heads/b{number}", "sha": sha})[0] for number in range(2)]
    assert (write, made) == ([201, 403], [201, 403])
    assert hub.state["branches"]["b0"]["f0"] == {"sha": "c1b0730e0133447badcfd47fd144e254807b06e1"}


@pytest.mark.parametrize(
    "repository",
    [
        {"issues": [{"number": 1, "title": "a"}], "pulls": [{"number": 1, "title": "b", "head": "x"}]},
        {"issues": [{"number": 0, "title": "a"}]},
        {"issues": [{"number": 1}]},
        {"pulls": [{"number": 1, "title": "a"}]},
        {"pulls": [{"number": 1, "title": "a", "head": "x", "files": [{"patch": ""}]}]},
        {"checks": {"none": []}},
        {"isues": []},
    ],
)
def test_wrong_seed_is_refused(repository: Any) -> None:
    with pytest.raises(ValidationError):
        GithubSeed.model_validate({"repositories": {"a/b": repository}})


NODE = """
const headers = {Authorization: "Bearer " + process.env.GITHUB_TOKEN, Accept: "application/vnd.github+json"};
const url = process.env.GITHUB_API_URL + "/repos/acme/app/issues/101";
await fetch(url + "/labels", {method: "POST", headers, body: JSON.stringify({labels: ["bug"]})});
const issue = await (await fetch(url, {headers})).json();
console.log(issue.labels.map((label) => label.name).join());
"""
CURL = """
curl -sS --noproxy '*' -H "Authorization: Bearer $GITHUB_TOKEN" -d @- -w '%{http_code}' -o /dev/null \\
  "$GITHUB_API_URL/repos/acme/app/issues/101/comments"
"""


def test_curl_and_fetch_of_node_work(hub: Hub, require: Callable[[str], None]) -> None:
    require("curl")
    require("node")
    env = dict(hub.running.env)
    curl = ["/bin/sh", "-c", CURL]
    done = subprocess.run(
        curl, input=b'{"body": "by curl"}', env=env | {"PATH": "/usr/bin:/bin"}, capture_output=True, check=True, timeout=120
    )
    assert done.stdout == b"201"
    node = [shutil.which("node") or "", "--input-type=module", "-e", NODE]
    done = subprocess.run(node, env=env, capture_output=True, check=False, timeout=120)
    assert done.stdout == b"bug\n", done.stderr
