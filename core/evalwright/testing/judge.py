"""The contract of judges."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, ClassVar, Literal

import pytest

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import Deadline, Host, Judge, JudgeReply, JudgeRequest
from evalwright.testing._contract import Contract, since
from evalwright.testing._waiting import in_threads, within

__all__ = ["BadReply", "JudgeContract"]

BadReply = Literal["unavailable", "refused", "cut", "malformed"]
SECONDS = 20.0
ODD_TEXT = "Is 'a' == \"b\"?\n\\n \u202e\U0001f680 $HOME `id` {}\x00"


class JudgeContract(Contract[Judge[Any]]):
    """What every judge promises: it carries one question, and names what went wrong.

    Override :meth:`make`, whose judge replies ``answer`` to every question, and :meth:`make_bad`. Give the judge
    ``secret`` as its key, so that the checks find it where it must not be. For HTTP use ``httpx.MockTransport``.
    """

    kind = "judge"
    answer: ClassVar[str] = "yes"
    secret: ClassVar[str] = "sk-contract-3f9a1c"

    def make(self, host: Host) -> Judge[Any]:
        """Return a new judge that replies ``answer``."""
        raise NotImplementedError(f"{type(self).__name__} overrides make(self, host)")

    def make_bad(self, host: Host, reply: BadReply) -> Judge[Any]:
        """Return a judge whose model is overloaded, declines, stops in mid-sentence, or sends what is not its format."""
        raise NotImplementedError(f"{type(self).__name__} overrides make_bad(self, host, reply)")

    def question(self, text: str = "Is it right?", **fields: Any) -> JudgeRequest:
        """Return a request."""
        return JudgeRequest(messages=[{"role": "user", "content": text}], **fields)

    @since("1.0")
    def test_reply_is_the_model_s_own_text(self) -> None:
        """The raw text arrives, not stripped and not interpreted."""
        with self.made() as judge:
            reply: Any = judge.ask(self.question(), Deadline.after(SECONDS))
            odd: Any = judge.ask(self.question(ODD_TEXT), Deadline.after(SECONDS))
        assert isinstance(reply, JudgeReply)
        assert (reply.text, odd.text) == (self.answer, self.answer)
        assert not reply.cached, "caching is the core's"

    @since("1.0")
    def test_overloaded_model_is_unavailable(self) -> None:
        """``JudgeUnavailable`` lets the core try again."""
        self._assert_raises("unavailable", JudgeUnavailable)

    @since("1.0")
    def test_declining_model_refuses(self) -> None:
        """``JudgeRefused`` is final."""
        self._assert_raises("refused", JudgeRefused)

    @since("1.0")
    def test_reply_that_was_cut_is_unreadable(self) -> None:
        """Half a verdict is none."""
        self._assert_raises("cut", JudgeUnreadable)

    @since("1.0")
    def test_malformed_reply_is_unreadable(self) -> None:
        """A proxy's HTML page is no verdict."""
        self._assert_raises("malformed", JudgeUnreadable)

    @since("1.0")
    def test_errors_and_repr_hold_no_secret(self) -> None:
        """The key is in no ``repr`` and no message: both reach logs and records."""
        replies: tuple[BadReply, ...] = ("unavailable", "refused", "cut", "malformed")
        with self.made() as judge:
            texts = [
                repr(judge),
                repr(judge.config),
                str(judge.config),
                repr(judge.ask(self.question(), Deadline.after(SECONDS))),
            ]
        for kind in replies:
            with self.made(partial(self._make_bad, kind)) as judge:
                try:
                    judge.ask(self.question(), Deadline.after(SECONDS))
                except Exception as error:
                    texts.append(f"{error!r} {error.__cause__!r} {getattr(error, 'hint', '')} {getattr(error, 'details', '')}")
        assert not [text for text in texts if self.secret in text], "the judge's key is shown"

    @since("1.0")
    def test_what_is_sent_tells_questions_apart_and_holds_no_secret(self) -> None:
        """``sent`` is JSON and the same each time; a cache would give one question's reply to another one."""
        with self.made() as judge:
            questions = (self.question(), self.question("Is it wrong?"), self.question(options={"temperature": 0.5}))
            sent = [json.dumps(judge.sent(question), sort_keys=True) for question in (*questions, self.question())]
        assert len(set(sent[:3])) == 3, "sent() says the same of different questions"
        assert sent[0] == sent[3], "sent() says different things of one question"
        assert not [text for text in sent if self.secret in text], "sent() holds the judge's key"

    @since("1.0")
    def test_eight_threads_ask_at_once(self) -> None:
        """One judge serves eight threads."""
        with self.made() as judge:
            replies = in_threads(lambda number: judge.ask(self.question(str(number)), Deadline.after(SECONDS)).text)
        assert replies == [self.answer] * 8

    @since("1.0")
    def test_deadline_that_has_passed_is_kept(self) -> None:
        """A call with a deadline of now returns or raises a ``JudgeError`` at once."""
        with self.made() as judge:

            def ask() -> bool:
                try:
                    judge.ask(self.question(), Deadline.after(0))
                except JudgeError:
                    return True
                return True

            assert within(SECONDS / 4, ask, "ask with a deadline of now")

    def _make_bad(self, reply: BadReply, host: Host) -> Judge[Any]:
        return self.make_bad(host, reply)

    def _assert_raises(self, reply: BadReply, error: type[JudgeError]) -> None:
        with self.made(partial(self._make_bad, reply)) as judge, pytest.raises(JudgeError) as caught:
            within(SECONDS, lambda: judge.ask(self.question(), Deadline.after(SECONDS / 2)), "ask")
        assert type(caught.value) is error, f"a reply that is {reply} raised {caught.value!r}; raise {error.__name__}"
