"""Services beside a trial: opened before the agent, out of reach of other trials, closed and kept before it is scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer, Project, shell

from evalwright.testing import DetachedQueue, SmallProject, installed

SEED = {"collections": {"tasks": {"items": [{"id": 1, "title": "seeded-title"}]}}}
SEEDS = {"desk": "seeds/desk.json"}
POST = 'curl -sS --noproxy \'*\' -X POST "$SERVICE_URL/tasks" -d \'{"title": "made"}\' > /dev/null; '
SCORER = """
from evalwright.interfaces import Scorer
from evalwright.model import Score

class Titles(Scorer):
    api = "scorer/1.0"
    pure = True

    def score(self, trial, context):
        record = trial.services["desk"]
        titles = sorted(item["title"] for item in record.state.get("collections", {"tasks": []})["tasks"])
        said = f"{len(record.calls)} {record.dropped} {titles}"
        return Score.decided(() if said == trial.meta["want"] else ({"why": said},))
"""
BROKEN = """
import os, socket
from evalwright.errors import TrialError
from evalwright.interfaces import Service

class Running:
    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.env = {"BROKEN_PORT": str(self.port)}

    def calls(self): return []
    def state(self): return {}
    def close(self): self.socket.close()

class Refuses(Service):
    api = "service/1.0"
    def open(self, seed, deadline): raise TrialError("no_port", "there is no room", transient=True)

class Fails(Service):
    api = "service/1.0"
    def open(self, seed, deadline): raise ValueError("a defect")

class Dies(Service):
    api = "service/1.0"
    def open(self, seed, deadline):
        running = Running()
        running.socket.close()
        return running

class Mumbles(Service):
    api = "service/1.0"
    def open(self, seed, deadline):
        running = Running()
        running.state = lambda: {"x": object()}
        return running

class Stays(Service):
    api = "service/1.0"
    def open(self, seed, deadline):
        running = Running()
        def close():
            running.socket.close()
            raise OSError("stuck")
        running.close = close
        return running
"""


@pytest.fixture(autouse=True)
def _component(require: Callable[[str], None]) -> None:
    require("curl")


def suite(project: Project, command: str, *, want: str = "", services: Any = None, seeds: Any = SEEDS) -> Path:
    return project.suite(
        runner=shell(command),
        services={"desk": "http"} if services is None else services,
        scorers=[{"use": "titles.py:Titles", "id": "titles"}],
        files={"seeds/desk.json": json.dumps(SEED), "titles.py": SCORER, "broken.py": BROKEN},
        cases=[{"id": "a", "services": seeds, "meta": {"want": want}}],
    )


def run(project: Project, *words: str, env: Mapping[str, str] | None = None) -> Answer:
    return project.call("run", "demo", "--run-id", "r", "--json", *words, env=env)


def counts(answer: Answer) -> dict[str, int]:
    found: dict[str, int] = answer.data["run"]["status_counts"]
    return {status: count for status, count in found.items() if count}


def test_agent_finds_its_service_and_what_it_did_is_kept(project: Project) -> None:
    suite(project, POST + 'curl -sS "$EVALWRIGHT_SERVICE_DESK_URL/tasks/1"', want="2 0 ['made', 'seeded-title']")
    answer = run(project)
    assert counts(answer) == {"pass": 1}
    calls = [json.loads(line) for line in project.artifact("r", "a", "services/desk.calls.jsonl").read_text().splitlines()]
    assert [(call["method"], call["path"], call["status"]) for call in calls] == [
        ("POST", "/tasks", 201),
        ("GET", "/tasks/1", 200),
    ]
    assert len(project.record("r", "a", "services/desk.state.json")["collections"]["tasks"]) == 2
    assert {"services/desk.calls.jsonl", "services/desk.state.json"} <= set(project.record("r", "a", "bundle.json")["digests"])
    assert answer.warning_codes == ["W_UNSANDBOXED_RUNNER"]


def test_report_judges_again_by_the_stored_record(project: Project) -> None:
    suite(project, POST, want="1 0 ['made', 'seeded-title']")
    before = run(project).data["report_hash"]
    assert project.call("report", "r", "--json").data["report_hash"] == before


@pytest.mark.parametrize("name", ["services/desk.calls.jsonl", "services/desk.state.json"])
def test_changed_record_of_a_service_is_noticed(project: Project, name: str) -> None:
    suite(project, POST, want="1 0 ['made', 'seeded-title']")
    run(project)
    path = project.artifact("r", "a", name)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b"made", b"mode"))
    answer = project.call("verify", "r", "--json")
    assert answer.exit_code != 0
    assert name in answer.stdout


def test_agent_sees_neither_the_seed_nor_its_path(project: Project) -> None:
    suite(project, 'cat "$EVALWRIGHT_CASE_FILE"; env; ls -R "$PWD/.."')
    run(project)
    said = project.artifact("r", "a", "runner.stdout.txt").read_text()
    assert "SERVICE_URL=http://127.0.0.1:" in said
    assert "EVALCTL_SERVICE_DESK_URL=http" in said
    assert "desk.json" not in said
    assert "seeded-title" not in said


def test_variables_of_a_service_outrank_those_of_the_user(project: Project) -> None:
    directory = suite(project, 'echo "$SERVICE_TOKEN"')
    document = json.loads((directory / "suite.json").read_text())
    document["runner"]["env_allowlist"].append("SERVICE_TOKEN")
    (directory / "suite.json").write_text(json.dumps(document))
    run(project, env={"SERVICE_TOKEN": "the-real-one"})
    assert len(project.artifact("r", "a", "output.txt").read_text().strip()) == 40


def test_two_trials_at_once_have_a_service_each(project: Project) -> None:
    directory = suite(project, "for n in 1 2 3; do " + POST + " done", want="3 0 ['made', 'made', 'made', 'seeded-title']")
    line = json.loads((directory / "cases.jsonl").read_text())
    (directory / "cases.jsonl").write_text("".join(json.dumps(line | {"id": name}) + "\n" for name in "abcd"))
    assert counts(run(project, "--jobs", "4")) == {"pass": 4}


def test_service_without_a_seed_starts_empty(project: Project) -> None:
    suite(project, "true", want="0 0 []", services={"desk": {"use": "http", "collections": {"tasks": {}}}}, seeds={})
    assert counts(run(project)) == {"pass": 1}


def test_unknown_route_is_a_warning_that_names_it(project: Project) -> None:
    suite(project, 'for n in 1 2; do curl -sS "$SERVICE_URL/nowhere" > /dev/null; done')
    warnings = run(project).envelope["warnings"]
    assert [warning["message"] for warning in warnings if warning["code"] == "W_SERVICE_UNKNOWN_ROUTE"] == [
        "a: the service desk has no route for GET /nowhere (2 calls)"
    ]


def test_warning_holds_nothing_that_a_terminal_would_act_on(project: Project) -> None:
    suite(project, 'curl -sS "$SERVICE_URL/%1b%5b2J" > /dev/null')
    said = run(project).envelope["warnings"]
    assert [warning["message"] for warning in said if warning["code"] == "W_SERVICE_UNKNOWN_ROUTE"] == [
        "a: the service desk has no route for GET /\\x1b[2J"
    ]


def test_secrets_of_the_suite_are_not_in_a_service_s_record(project: Project) -> None:
    directory = suite(project, 'curl -sS "$SERVICE_URL/tasks" -d "{\\"title\\": \\"$HUSH\\"}" > /dev/null')
    document = json.loads((directory / "suite.json").read_text())
    document["runner"] |= {"env_allowlist": ["PATH", "HUSH"], "redact_env_values": ["HUSH"]}
    (directory / "suite.json").write_text(json.dumps(document))
    run(project, env={"HUSH": "correct-horse"})
    for name in ("services/desk.calls.jsonl", "services/desk.state.json"):
        text = project.artifact("r", "a", name).read_text()
        assert "correct-horse" not in text
        assert "[REDACTED]" in text


@pytest.mark.parametrize(
    ("use", "kind", "said"),
    [
        ("Refuses", "no_port", "the service desk did not start: there is no room"),
        ("Fails", "service", "the service desk did not start: ValueError: a defect"),
        ("Dies", "service_lost", "the service desk was lost during the trial: ConnectionRefusedError"),
        ("Mumbles", "service_lost", "the service desk was lost during the trial: TypeError"),
    ],
)
def test_service_that_fails_is_the_harness_s_error_with_its_name(project: Project, use: str, kind: str, said: str) -> None:
    suite(project, "echo ran", services={"desk": f"broken.py:{use}"})
    assert counts(run(project)) == {"error": 1}
    error = project.record("r", "a", "runner.json")["error"]
    assert (error["code"], error["kind"], error["fault"]) == ("E_SERVICE_FAILED", kind, "harness")
    assert error["message"].startswith(said)
    ran = project.artifact("r", "a", "output.txt").read_text() == "ran\n"
    assert ran == (kind == "service_lost")


def test_service_that_was_busy_is_tried_again(project: Project) -> None:
    directory = suite(project, "true", services={"desk": "broken.py:Refuses"})
    document = json.loads((directory / "suite.json").read_text()) | {"retry": {"infrastructure": 1, "backoff_seconds": 0}}
    (directory / "suite.json").write_text(json.dumps(document))
    run(project)
    assert len(project.record("r", "a", "runner.json")["attempts"]) == 2


def test_two_services_with_one_variable_are_told_apart_by_their_tables(project: Project) -> None:
    both = {"desk": "http", "other": "http"}
    suite(project, "true", services=both)
    run(project)
    assert "SERVICE_URL" in project.record("r", "a", "runner.json")["error"]["message"]


def test_service_that_does_not_close_is_a_warning(project: Project) -> None:
    suite(project, "true", services={"desk": "broken.py:Stays"})
    assert "W_SERVICE_LEFT" in run(project).warning_codes


def test_seed_is_part_of_a_run_s_identity(project: Project) -> None:
    directory = suite(project, "true")
    run(project)
    (directory / "seeds" / "desk.json").write_text(json.dumps({"collections": {"tasks": {}}}))
    assert run(project).error_codes == ["E_RUN_CONFLICT"]


def test_worker_without_the_suite_s_files_gets_the_seed_from_the_store(tmp_path: Path) -> None:
    script = 'curl -sS --noproxy "*" "$SERVICE_URL/tasks/1"'
    answer = '{"id": 1, "title": "seeded-title"}'
    small = SmallProject(tmp_path, {"a": (script, answer)}, services={"desk": "http"})
    (small.suite / "desk.json").write_text(json.dumps(SEED))
    line = json.loads((small.suite / "cases.jsonl").read_text())
    (small.suite / "cases.jsonl").write_text(json.dumps(line | {"services": {"desk": "desk.json"}}))
    with installed("queue", "detached", DetachedQueue) as queue:
        report = small.run(queue=queue).report
    assert report.counts["pass"] == 1


def test_spoolctl_carries_services_too(project: Project, require: Callable[[str], None]) -> None:
    require("python:spoolctl")
    suite(project, POST, want="1 0 ['made', 'seeded-title']")
    for number, words in enumerate((["--queue", "spoolctl"], ["--sandbox", "spoolctl"])):
        answer = project.call("run", "demo", "--run-id", f"r{number}", "--json", *words)
        assert counts(answer) == {"pass": 1}, answer.stderr


@pytest.mark.parametrize(
    "network", [{}, {"network": "host"}, {"network": "allowlist", "allow": ["127.0.0.1:9", "example.com"]}]
)
def test_every_network_of_bubblewrap_leads_to_the_service(
    project: Project, require: Callable[[str], None], network: Any
) -> None:
    require("bwrap")
    directory = suite(project, POST.replace("--noproxy '*'", ""), want="1 0 ['made', 'seeded-title']")
    document = json.loads((directory / "suite.json").read_text()) | {"sandbox": {"use": "bubblewrap"} | network}
    (directory / "suite.json").write_text(json.dumps(document))
    assert counts(run(project)) == {"pass": 1}
