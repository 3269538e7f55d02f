"""Acme's plugins keep Evalwright's contracts."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from acme_evalwright.niced import NicedConfig, NicedSandbox
from acme_evalwright.questions import QuestionsImporter
from acme_evalwright.wordcount import WordCount, WordRange

from evalwright.errors import UsageError
from evalwright.interfaces import Host
from evalwright.model import ScoredTrial
from evalwright.testing import FakeHost, ImporterContract, SandboxContract, ScorerContract


class TestWordCount(ScorerContract):
    kit = "1.0"
    expect = MappingProxyType({"acme_words": {"min": 2, "max": 3}})

    def make(self, host: Host) -> WordCount:
        return WordCount(WordRange(), host)

    def right(self) -> ScoredTrial:
        return self.trial("two words")

    def wrong(self) -> ScoredTrial:
        return self.trial("one")


class TestNicedSandbox(SandboxContract):
    kit = "1.0"

    def make(self, host: Host) -> NicedSandbox:
        return NicedSandbox(NicedConfig(niceness=5), host)

    def test_commands_are_nice(self, tmp_path: Path) -> None:
        with self.session(tmp_path) as session:
            assert int(self.sh(session, "nice").stdout.text) >= 5


class TestQuestionsImporter(ImporterContract):
    kit = "1.0"
    records = 3

    def make(self, host: Host) -> QuestionsImporter:
        return QuestionsImporter(None, host)

    def write_source(self, place: Path) -> Path:
        path = place / "questions.csv"
        path.write_text('question,answer\n"1 + 1, as a word?",two\n,nothing\nHow many?,"a, b"\n', encoding="utf-8")
        return path


def test_file_without_the_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with FakeHost() as host, pytest.raises(UsageError, match="lacks the columns"):
        list(QuestionsImporter(None, host).read(path))
