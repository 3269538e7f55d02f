"""Every check of the judge contract fails on a judge that is broken in that way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from evalwright.errors import JudgeError, JudgeUnavailable
from evalwright.interfaces import Deadline, Host, JudgeReply, JudgeRequest
from evalwright.testing import CannedConfig, CannedJudge, JudgeContract
from evalwright.testing.judge import BadReply

Ask = Callable[[CannedJudge, JudgeRequest, Deadline], JudgeReply]
BAD: dict[str, dict[str, Any]] = {
    "unavailable": {"status": 529},
    "refused": {"finish": "refusal"},
    "cut": {"finish": "length"},
    "malformed": {"body": "<html>Bad gateway</html>"},
}


class TestCannedJudge(JudgeContract):
    def make(self, host: Host) -> CannedJudge:
        return CannedJudge(CannedConfig(answer=self.answer, api_key=SecretStr(self.secret)), host)

    def make_bad(self, host: Host, reply: BadReply) -> CannedJudge:
        return CannedJudge(CannedConfig(api_key=SecretStr(self.secret), **BAD[reply]), host)


class AskingOtherwise(CannedJudge):
    def __init__(self, config: CannedConfig, host: Host, ask: Ask) -> None:
        super().__init__(config, host)
        self.otherwise = ask

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        return self.otherwise(self, request, deadline)


def contract(ask: Ask) -> type[JudgeContract]:
    class Broken(TestCannedJudge):
        def make(self, host: Host) -> CannedJudge:
            return AskingOtherwise(super().make(host).config, host, ask)

        def make_bad(self, host: Host, reply: BadReply) -> CannedJudge:
            return AskingOtherwise(super().make_bad(host, reply).config, host, ask)

    return Broken


def honest(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
    return CannedJudge.ask(judge, request, deadline)


def strips(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
    return JudgeReply(text=honest(judge, request, deadline).text.upper())


def lumps_errors(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
    try:
        return honest(judge, request, deadline)
    except JudgeError as error:
        raise JudgeError("something went wrong") from error


def guesses(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
    return JudgeReply(text="no")


def tells_the_key(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
    try:
        return honest(judge, request, deadline)
    except JudgeError as error:
        raise JudgeUnavailable(f"rejected {judge.config.api_key.get_secret_value()}") from error


def waits_for_ever(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
    threading.Event().wait(10)
    return JudgeReply(text="yes")


def one_at_a_time() -> Ask:
    busy = threading.Lock()

    def ask(judge: CannedJudge, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        if not busy.acquire(blocking=False):
            raise RuntimeError("a call is under way")
        try:
            threading.Event().wait(0.1)
            return honest(judge, request, deadline)
        finally:
            busy.release()

    return ask


BROKEN: list[tuple[str, Ask]] = [
    ("test_reply_is_the_model_s_own_text", strips),
    ("test_overloaded_model_is_unavailable", lumps_errors),
    ("test_declining_model_refuses", lumps_errors),
    ("test_declining_model_refuses", guesses),
    ("test_reply_that_was_cut_is_unreadable", guesses),
    ("test_malformed_reply_is_unreadable", lumps_errors),
    ("test_errors_and_repr_hold_no_secret", tells_the_key),
    ("test_eight_threads_ask_at_once", one_at_a_time()),
    ("test_deadline_that_has_passed_is_kept", waits_for_ever),
]


def sending(sent: Callable[[CannedJudge, JudgeRequest], Mapping[str, Any]]) -> type[JudgeContract]:
    class Sending(CannedJudge):
        def sent(self, request: JudgeRequest) -> Mapping[str, Any]:
            return sent(self, request)

    class Broken(TestCannedJudge):
        def make(self, host: Host) -> CannedJudge:
            return Sending(super().make(host).config, host)

    return Broken


SENT = "test_what_is_sent_tells_questions_apart_and_holds_no_secret"
BROKEN_SENT = [
    sending(lambda _, request: {"n": len(request.messages)}),
    sending(lambda _, request: {"options": dict(request.options)}),
    sending(lambda _, request: {"q": request.digest, "at": id(request)}),
    sending(lambda judge, request: {"q": request.digest, "key": judge.config.api_key.get_secret_value()}),
]


@pytest.mark.parametrize("broken", BROKEN_SENT, ids=["a count", "no messages", "a moment", "the key"])
def test_check_of_what_is_sent_fails_on_its_broken_judge(broken: type[JudgeContract], prove: Any) -> None:
    prove(broken, SENT)


@pytest.mark.parametrize(("check", "ask"), BROKEN, ids=[f"{number}-{check}" for number, (check, _) in enumerate(BROKEN)])
def test_check_fails_on_its_broken_judge(check: str, ask: Ask, prove: Any) -> None:
    prove(contract(ask), check)


def test_every_check_has_a_broken_judge(checks: Any) -> None:
    assert checks(JudgeContract) == {check for check, _ in BROKEN} | {SENT}


def test_network_trouble_makes_the_canned_judge_unavailable() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    judge = CannedJudge(handler=refuse)
    with pytest.raises(JudgeUnavailable):
        judge.ask(JudgeRequest(messages=[]), Deadline.after(1))
    judge.close(Deadline.after(1))
