"""Every shipped judge keeps the contract of judges."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.judging.server import completion

from evalwright.errors import JudgeError
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest
from evalwright.testing import CannedConfig, CannedJudge, FakeHost, JudgeContract
from evalwright.testing.judge import BadReply
from evalwright_plugins.judges.anthropic import AnthropicConfig, AnthropicJudge
from evalwright_plugins.judges.command import CommandJudge, CommandJudgeConfig
from evalwright_plugins.judges.openai import OpenaiConfig, OpenaiJudge
from evalwright_plugins.judges.panel import PanelConfig, PanelJudge
from evalwright_plugins.judges.replay import ReplayConfig, ReplayJudge

Respond = Callable[[httpx.Request], httpx.Response]
URL = "http://judge.invalid"


def transport(respond: Respond) -> httpx.MockTransport:
    return httpx.MockTransport(respond)


def answering(document: Any, status: int = 200) -> httpx.MockTransport:
    return transport(lambda _: httpx.Response(status, json=document))


def page() -> httpx.MockTransport:
    return transport(lambda _: httpx.Response(200, html="<p>hello</p>"))


class KeyedContract(JudgeContract):
    """Gives the judge its key by environment."""

    @pytest.fixture(autouse=True)
    def _key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CONTRACT_KEY", self.secret)


class TestOpenai(KeyedContract):
    def judge(self, host: Host, over: httpx.BaseTransport) -> Judge[Any]:
        return OpenaiJudge(OpenaiConfig(base_url=URL, model="m1", api_key_env="CONTRACT_KEY"), host, transport=over)

    def make(self, host: Host) -> Judge[Any]:
        return self.judge(host, answering(completion(self.answer)))

    def make_bad(self, host: Host, reply: BadReply) -> Judge[Any]:
        overs = {
            "unavailable": answering({"error": {"message": self.secret}}, 503),
            "refused": answering(completion("no", "content_filter")),
            "cut": answering(completion("ye", "length")),
            "malformed": page(),
        }
        return self.judge(host, overs[reply])


class TestAnthropic(KeyedContract):
    def judge(self, host: Host, over: httpx.BaseTransport) -> Judge[Any]:
        return AnthropicJudge(AnthropicConfig(base_url=URL, model="m1", api_key_env="CONTRACT_KEY"), host, transport=over)

    def message(self, text: str, reason: str) -> dict[str, Any]:
        return {"model": "m1", "content": [{"type": "text", "text": text}], "stop_reason": reason}

    def make(self, host: Host) -> Judge[Any]:
        return self.judge(host, answering(self.message(self.answer, "end_turn")))

    def make_bad(self, host: Host, reply: BadReply) -> Judge[Any]:
        overs = {
            "unavailable": answering({"error": {"message": self.secret}}, 529),
            "refused": answering(self.message("", "refusal")),
            "cut": answering(self.message("ye", "max_tokens")),
            "malformed": page(),
        }
        return self.judge(host, overs[reply])


class TestCommand(KeyedContract):
    def judge(self, host: Host, program: str) -> Judge[Any]:
        argv = [sys.executable, "-I", "-c", f"import sys; question = sys.stdin.read(); {program}"]
        return CommandJudge(CommandJudgeConfig(argv=argv, reply="json", env_allowlist=["CONTRACT_KEY"]), host)

    def printing(self, **record: Any) -> str:
        return f"print({json.dumps(record)!r})"

    def make(self, host: Host) -> Judge[Any]:
        return self.judge(host, self.printing(text=self.answer))

    def make_bad(self, host: Host, reply: BadReply) -> Judge[Any]:
        programs = {
            "unavailable": "sys.exit(75)",
            "refused": self.printing(text="no", finish="refusal"),
            "cut": self.printing(text="ye", finish="length"),
            "malformed": "print('<p>hello</p>')",
        }
        return self.judge(host, programs[reply])


class TestPanel(JudgeContract):
    def panel(self, *members: Judge[Any]) -> Judge[Any]:
        host = FakeHost({f"judges.m{number}": member for number, member in enumerate(members)})
        return PanelJudge(PanelConfig(members=[f"m{number}" for number in range(len(members))]), host)

    def canned(self, **config: Any) -> CannedJudge:
        return CannedJudge(CannedConfig.model_validate({"answer": self.answer, "api_key": self.secret, **config}))

    def make(self, host: Host) -> Judge[Any]:
        return self.panel(self.canned(), self.canned(), self.canned())

    def make_bad(self, host: Host, reply: BadReply) -> Judge[Any]:
        bad: dict[str, dict[str, Any]] = {
            "unavailable": {"status": 503},
            "refused": {"finish": "refusal"},
            "cut": {"finish": "length"},
            "malformed": {"body": "<p>hello</p>"},
        }
        return self.panel(self.canned(), self.canned(**bad[reply]), self.canned(**bad[reply]))


def ask(judge: Judge[Any], request: JudgeRequest) -> JudgeReply:
    return judge.ask(request, Deadline.after(20))


def test_replay_gives_the_recorded_reply_of_sample_and_repeat(tmp_path: Path) -> None:
    request = JudgeRequest(messages=[{"role": "user", "content": "?"}])
    lines = [
        {"digest": request.digest, "text": "any"},
        {"digest": request.digest, "text": "second sample", "sample": 2},
        {"digest": request.digest, "text": "second of the third", "sample": 2, "repeat": 3, "model": "m1"},
    ]
    file = tmp_path / "replies.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    judge = ReplayJudge(ReplayConfig(files=[str(file)]), FakeHost())

    texts = [ask(judge, JudgeRequest(messages=request.messages, sample=s, repeat=r)).text for s, r in [(1, 1), (2, 1), (2, 3)]]

    assert texts == ["any", "second sample", "second of the third"]
    with pytest.raises(JudgeError, match="no reply is recorded"):
        ask(judge, JudgeRequest(messages=[{"role": "user", "content": "other"}]))


@pytest.mark.parametrize("text", ["{", '{"digest": "sha256:1"}', '{"text": "x"}', "[]", '{"digest": "d", "text": 1}'])
def test_damaged_recording_is_named_by_the_preflight(tmp_path: Path, text: str) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(f"\n{text}\n", encoding="utf-8")

    problems = ReplayJudge(ReplayConfig(files=[str(file)]), FakeHost()).check("coordinator")

    assert [f"{file}:2" in problem.message for problem in problems] == [True]


def test_command_judge_gets_the_whole_question_on_stdin() -> None:
    program = "import json, sys; q = json.load(sys.stdin)\n"
    program += "print(q['messages'][0]['content'], q['sample'], q['repeat'], q['options'])"
    judge = CommandJudge(CommandJudgeConfig(argv=[sys.executable, "-I", "-c", program]), FakeHost())

    reply = ask(judge, JudgeRequest(messages=[{"role": "user", "content": "ä?"}], sample=2, repeat=3, options={"a": 1}))
    judge.close(Deadline.after(20))

    assert reply.text == "ä? 2 3 {'a': 1}\n"


def test_command_judge_that_hangs_or_is_missing_ends_with_its_error() -> None:
    judge = CommandJudge(CommandJudgeConfig(argv=["/bin/sleep", "60"], call_timeout_seconds=0.2), FakeHost())
    missing = CommandJudge(CommandJudgeConfig(argv=["no-such-judge"]), FakeHost())

    with pytest.raises(JudgeError, match="no answer in time"):
        ask(judge, JudgeRequest(messages=[]))
    with pytest.raises(JudgeError, match="cannot be started"):
        ask(missing, JudgeRequest(messages=[]))
    assert [problem.message for problem in missing.check("coordinator")] == ["there is no program no-such-judge"]
    for each in (judge, missing):
        each.close(Deadline.after(20))
