"""Verbs of other packages: listed by ``--help`` without an import, otherwise like every verb."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evalwright.cli.contract import VERBS

VERB = '''"""Count what nobody counts.

More of it.
"""
from evalwright.errors import UsageError
from evalwright.interfaces import PluginVerb, VerbAnswer, VerbFlag

class Count(PluginVerb):
    args = ("up|down", "NAME?")
    actions = {"up NAME": "one more", "down [NAME]": "one less"}
    flags = (VerbFlag(name="--by", kind="count", help="step", metavar="N"),)

    def answer(self, options, warn):
        if options.name == "nothing":
            raise UsageError("nothing cannot be counted", hint="name something")
        if options.name == "raw":
            return VerbAnswer(data=None, text="", body="as it is\\n")
        warn("W_COUNTED", "it was counted")
        data = {"action": options.action, "name": options.name, "by": options.by}
        return VerbAnswer(data=data, text="counted\\n", next_steps={"evalwright count down": "go back"})

def plain(words):
    print("plain", *words)
    return 4
'''


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Return a directory of installed packages: one with good verbs, one with a verb that cannot be imported."""
    (tmp_path / "counting.py").write_text(VERB)
    (tmp_path / "broken.py").write_text('"""Break."""\nraise RuntimeError("no")\n')
    for name, points in {
        "counting": "count = counting:Count\nplain = counting:plain\n",
        "broken": "break = broken:Verb\n",
    }.items():
        info = tmp_path / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(
            f"[console_scripts]\nx = y:z\n\n[evalwright.commands]\n{points}\n[other]\na = b:c\n"
        )
    return tmp_path


def call(packages: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; sys.path.insert(0, sys.argv.pop(1)); from evalwright.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, str(packages), *words]
    return subprocess.run(command, cwd=packages, capture_output=True, text=True, timeout=120, check=False)


def test_help_lists_verbs_of_other_packages_even_broken_ones(packages: Path) -> None:
    shown = call(packages, "--help")
    assert shown.returncode == 0
    assert "  count         count what nobody counts\n" in shown.stdout
    assert "  break         break\n" in shown.stdout
    assert all(f"  {name} " in shown.stdout for name in VERBS)
    assert "console_scripts" not in shown.stdout


def test_help_of_such_a_verb_is_made_from_its_definition(packages: Path) -> None:
    shown = call(packages, "count", "--help")
    assert shown.stdout.startswith(
        "evalwright count: count what nobody counts\n\nUsage: evalwright count up|down [NAME] [flags]\n"
    )
    assert "\nActions:\n  up NAME      one more\n  down [NAME]  one less\n" in shown.stdout
    assert "--by N  step" in shown.stdout


def test_answer_comes_in_the_envelope_with_warnings_and_next_steps(packages: Path) -> None:
    done = call(packages, "count", "up", "x", "--by", "3", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["ok"]) == (0, True)
    assert document["data"] == {"action": "up", "name": "x", "by": 3}
    assert [record["code"] for record in document["warnings"]] == ["W_COUNTED"]
    assert document["commands"] == [{"command": "evalwright count down", "rationale": "go back"}]
    assert call(packages, "count", "up", "--format", "text").stdout == "counted\n"
    assert call(packages, "count", "up", "raw").stdout == "as it is\n"


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (["count", "up", "nothing"], "E_CASE_INVALID", 1),
        (["count", "sideways"], "E_CASE_INVALID", 1),
        (["count", "up", "--bye", "3"], "E_UNKNOWN_FLAG", 1),
        (["break"], "E_PLUGIN_BROKEN", 3),
        (["counted"], "E_UNKNOWN_COMMAND", 1),
    ],
)
def test_wrong_words_and_broken_packages_get_the_usual_errors(packages: Path, words: list[str], code: str, status: int) -> None:
    done = call(packages, *words)
    assert done.returncode == status
    assert [record["code"] for record in json.loads(done.stdout)["errors"]] == [code]


def test_plain_function_takes_its_words_as_they_are(packages: Path) -> None:
    done = call(packages, "plain", "--anything", "x")
    assert (done.returncode, done.stdout) == (4, "plain --anything x\n")
