"""What a scorer works with in a test: sessions on directories that the test fills, and judges that the test gives."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sys
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from evalwright.errors import JudgeError
from evalwright.interfaces import Deadline, JudgeReply, JudgeRequest, SandboxRequest, Session, give_tree
from evalwright.judging import read_verdict
from evalwright.testing._fake_sandboxes import FakeSandbox

__all__ = ["FakeScoreContext"]

PREFIXES = ("EVALWRIGHT_", "EVALCTL_")
SECONDS = 60.0


class FakeScoreContext:
    """See :class:`evalwright.interfaces.ScoreContext`. A context manager that ends what sessions left running.

    ``final``, ``fixture`` and ``hidden`` are directories below ``place`` that the test fills; ``judge`` answers questions.
    ``questions`` and ``kept`` say what was asked and kept; ``opened`` counts sessions.
    """

    def __init__(self, place: Path, judge: Callable[[str, JudgeRequest], JudgeReply] | None = None) -> None:
        self.deadline = Deadline.after(SECONDS)
        self.final, self.fixture, self.hidden = place / "final", place / "fixture", place / "hidden"
        for directory in (self.final, self.fixture, self.hidden):
            directory.mkdir(parents=True, exist_ok=True)
        self.output = ""
        self.kept: dict[str, bytes] = {}
        self.questions: list[tuple[str, JudgeRequest]] = []
        self.opened = 0
        self._place = place
        self._judge = judge
        self._sandbox = FakeSandbox()

    def judge(self, name: str, request: JudgeRequest) -> JudgeReply:
        """Answer with the test's judge, and read the verdict as the core does. Raises ``JudgeError`` without one."""
        self.questions.append((name, request))
        if self._judge is None:
            raise JudgeError(f'the test gives no judge "{name}"', hint="pass judge=... to FakeScoreContext")
        reply = self._judge(name, request)
        if request.form is None or reply.verdict is not None:
            return reply
        question = "\n".join(message["content"] for message in request.messages)
        return replace(reply, verdict=read_verdict(reply.text, request.form, question))

    @contextlib.contextmanager
    def session(
        self,
        sandbox: str | None = None,
        *,
        workspace: Literal["final", "fixture", "empty"] = "final",
        hidden: bool = False,
    ) -> Generator[Session]:
        """Open a session on a private clone, which is removed after the block."""
        self.opened += 1
        root = self._place / f"session-{secrets.token_hex(4)}"
        self._lay_out(root, workspace, hidden=hidden)
        give_tree(root, self._sandbox.user)
        session = self._sandbox.open(SandboxRequest(owner="test", workspace=root / "w", exchange=root / "x", role="grader"))
        try:
            yield session
        finally:
            session.kill(Deadline.after(SECONDS))
            session.destroy(Deadline.after(SECONDS))
            shutil.rmtree(root)

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return a plain environment with the trial's paths."""
        exchange = session.exchange
        paths = {
            "CASE_FILE": exchange / "case.json",
            "OUTPUT_FILE": exchange / "output.txt",
            "WORKSPACE": session.workspace,
            "SUITE": self._place,
        }
        path = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
        variables = {prefix + name: str(value) for name, value in paths.items() for prefix in PREFIXES}
        return {"HOME": str(self._place), "LANG": "C.UTF-8", "PATH": path, **variables}

    def keep(self, name: str, content: bytes) -> None:
        """Remember evidence."""
        self.kept[name] = content

    def __enter__(self) -> FakeScoreContext:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the commands of every session."""
        self._sandbox.close(Deadline.after(SECONDS))

    def _lay_out(self, root: Path, workspace: str, *, hidden: bool) -> None:
        (root / "x" / "empty").mkdir(parents=True)
        (root / "w").mkdir()
        sources = {"final": [self.final], "fixture": [self.fixture], "empty": list[Path]()}[workspace]
        for source in [*sources, *([self.hidden] if hidden else [])]:
            shutil.copytree(source, root / "w", symlinks=True, dirs_exist_ok=True)
        (root / "x" / "output.txt").write_text(self.output, encoding="utf-8", newline="")
        (root / "x" / "case.json").write_text("{}", encoding="utf-8")
