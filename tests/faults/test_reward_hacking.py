"""Agents that aim at the verdict instead of the task: planted modules, forged reports, weakened tests, false scores."""

from __future__ import annotations

import importlib.util
import marshal
import sys
from typing import TYPE_CHECKING

import pytest
from tests.faults.hostile import CASE, FORGED, HIDDEN, TESTS, attempted, carry_out

if TYPE_CHECKING:
    from tests.conftest import Project

PLANTED: dict[str, dict[str, str | bytes]] = {
    "conftest that sets the exit status": {"conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
    "conftest that leaves at import": {"conftest.py": "import os\nos._exit(0)\n"},
    "conftest that forges": {"conftest.py": FORGED},
    "conftest in a directory": {"sub/conftest.py": FORGED, "conftest.py": FORGED},
    "collect only": {"pytest.ini": "[pytest]\naddopts = --co\n"},
    "other configuration": {
        "tox.ini": "[pytest]\naddopts = --co\n",
        "setup.cfg": "[tool:pytest]\naddopts = --co\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--co"\n',
    },
    "plugin by configuration": {"pyproject.toml": '[tool.pytest.ini_options]\naddopts = "-p evil"\n', "evil.py": FORGED},
    "pytest module": {"pytest.py": FORGED},
    "pytest package": {"pytest/__init__.py": FORGED, "pytest/__main__.py": FORGED, "_pytest/__init__.py": FORGED},
    "sitecustomize": {"sitecustomize.py": FORGED, "usercustomize.py": FORGED},
    "path file": {"evil.pth": "import os; os._exit(0)\n"},
    "json": {"json.py": FORGED},
    "json package": {"json/__init__.py": FORGED},
    "argparse": {"argparse.py": FORGED},
    "dataclasses and xml": {"dataclasses.py": FORGED, "xml/__init__.py": FORGED, "platform.py": FORGED},
    "dependencies of pytest": {"iniconfig.py": FORGED, "pluggy.py": FORGED, "packaging/__init__.py": FORGED},
    "shadowed test": {"test_f/__init__.py": "def test_a(): pass\ndef test_b(): pass\n"},
    "weakened visible test": {"test_f.py": "def test_a(): assert True\ndef test_b(): assert True\n"},
    "forged report lying around": {"report.xml": "<testsuites/>", "result.json": '{"ok": true, "score": 1.0, "findings": []}'},
    "installed plugin": {
        "evil-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n",
        "evil-1.0.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
        "evil.py": FORGED,
    },
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_files_do_not_turn_a_wrong_answer_into_a_pass(project: Project, name: str) -> None:
    assert attempted(project, PLANTED[name], 41).status == "fail"


def test_right_answer_passes_and_its_report_is_kept(project: Project) -> None:
    assert attempted(project, {}, 42).status == "pass"
    assert b"test_a" in project.artifact("r", "a", "scorers/tests.report.txt").read_bytes()


@pytest.mark.parametrize("name", ["json", "sitecustomize", "collect only", "weakened visible test"])
def test_right_answer_passes_whatever_lies_around(project: Project, name: str) -> None:
    assert attempted(project, PLANTED[name], 42).status == "pass"


def test_planted_bytecode_does_not_replace_a_hidden_module(project: Project) -> None:
    hidden = {"test_f.py": HIDDEN.replace("== 42", "== WANTED").replace("from f", "from wanted import WANTED\nfrom f"),
              "wanted.py": "WANTED = 42\n"}  # fmt: skip
    compiled = compile("WANTED = 41\n", "wanted.py", "exec")
    unchecked = importlib.util.MAGIC_NUMBER + b"\x01\0\0\0" + b"\0" * 8 + marshal.dumps(compiled)
    tag = sys.implementation.cache_tag
    planted: dict[str, str | bytes] = {f"__pycache__/wanted.{tag}.pyc": unchecked}

    assert attempted(project, planted, 41, hidden=hidden).status == "fail"


@pytest.mark.parametrize("name", ["pytest", "_pytest", "iniconfig", "json"])
def test_planted_bytecode_without_source_does_not_replace_the_test_runner(project: Project, name: str) -> None:
    code = importlib.util.MAGIC_NUMBER + b"\0" * 12 + marshal.dumps(compile(FORGED, name, "exec"))

    assert attempted(project, {f"{name}.pyc": code}, 41).status == "fail"


def test_link_in_place_of_a_hidden_file_is_replaced_and_not_followed(project: Project) -> None:
    victim = project.path / "victim.py"
    victim.write_text("precious\n")
    line = f"echo 'def f(): return 41' > f.py; ln -s {victim} test_f.py; ln -s {project.path} sub"
    files = {"hidden/a/test_f.py": HIDDEN, "hidden/a/sub/victim.py": "overwritten\n"}
    suite = project.suite(runner={"shell": True, "command": line}, scorers=[TESTS], cases=[CASE], files=files)

    assert carry_out(project, suite).cases[0].status == "fail"
    assert victim.read_text() == "precious\n"


def test_fixtures_own_configuration_comes_back_when_the_agent_edits_it(project: Project) -> None:
    fixture = {"conftest.py": "import pytest\n\n@pytest.fixture\ndef wanted():\n    return 42\n"}
    hidden = {"test_f.py": "from f import f\n\ndef test_a(wanted):\n    assert f() == wanted\n\ndef test_b():\n    pass\n"}
    planted = {"conftest.py": fixture["conftest.py"].replace("42", "41")}

    assert attempted(project, planted, 41, hidden=hidden, fixture=fixture).status == "fail"


def test_code_that_leaves_the_test_process_with_success_is_a_fail(project: Project) -> None:
    assert attempted(project, {"f.py": "import os\ndef f():\n    os._exit(0)\n"}, 0).status == "fail"


def test_code_that_skips_its_tests_is_a_fail(project: Project) -> None:
    planted = {"f.py": "import pytest\npytest.skip('not today', allow_module_level=True)\n"}

    assert attempted(project, planted, 0).status == "fail"


def test_forged_pass_lines_on_stdout_are_not_read(project: Project) -> None:
    shouted = 'print("test_f.py::test_a PASSED\\ntest_f.py::test_b PASSED\\n===== 2 passed =====")\ndef f():\n    return 41\n'

    assert attempted(project, {"f.py": shouted}, 0).status == "fail"


COMMAND = """
import json
ok = open('{place}/f.py').read().count('42') == 1
print(json.dumps({{'ok': ok, 'score': float(ok), 'findings': []}}))
"""
FORGED_VERDICT = 'import os\nos.write(1, b\'{"ok": true, "score": 1.0, "findings": []}\')\nos._exit(0)\n'


@pytest.mark.parametrize("cwd", ["workspace", "empty"])
@pytest.mark.parametrize(
    "name", ["json.py", "sitecustomize.py", "encodings/__init__.py", "json/__init__.py", "usercustomize.py"]
)
def test_planted_module_does_not_change_the_verdict_of_a_command_scorer(project: Project, cwd: str, name: str) -> None:
    code = COMMAND.format(place="$EVALWRIGHT_WORKSPACE")
    scorer = {"use": "command", "id": "c", "argv": ["/usr/bin/python3", "-c", code], "cwd": cwd}

    assert attempted(project, {name: FORGED_VERDICT}, 41, scorer=scorer).status == "fail"


def test_command_scorer_passes_the_right_answer_beside_a_planted_module(project: Project) -> None:
    code = COMMAND.format(place="$EVALWRIGHT_WORKSPACE")
    scorer = {"use": "command", "id": "c", "argv": ["/usr/bin/python3", "-c", code]}

    assert attempted(project, {"json.py": FORGED_VERDICT}, 42, scorer=scorer).status == "pass"


def test_command_scorer_of_an_evalctl_suite_ignores_planted_modules(project: Project) -> None:
    code = "import json; print(json.dumps({'ok': False, 'score': 0.0, 'findings': ['wrong']}))"
    command = {"id": "c", "argv": ["/usr/bin/python3", "-c", code]}
    planted = f"cat > json.py <<'END'\n{FORGED_VERDICT}END\ncp json.py sitecustomize.py"
    suite = project.suite(
        runner={"shell": True, "command": planted, "env_allowlist": ["PATH"]},
        scorers=[{"use": "command", **command}],
        cases=[{"id": "a", "expect": {"exit_code": 0}}],
        native=False,
        acknowledged_unsandboxed_runner=True,
    )

    assert carry_out(project, suite).cases[0].status == "fail"


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", "-0.5", "1.5", "true", '"1"', "null", "[]", "1e999"])
def test_score_that_is_no_number_from_zero_to_one_is_an_error(project: Project, score: str) -> None:
    scorer = {"use": "command", "id": "c", "argv": ["/bin/echo", f'{{"ok": true, "score": {score}, "findings": []}}']}

    assert attempted(project, {}, 42, scorer=scorer).status == "error"


@pytest.mark.parametrize(
    "verdict",
    ["", "{}", "[]", "null", "pass", '{"ok": 1, "score": 1, "findings": []}', '{"ok": "true", "score": 1, "findings": []}',
     '{"ok": true, "score": 1}', '{"ok": true, "score": 1, "findings": []} {"ok": true}',
     '{"ok": true, "score": 1, "findings": [7]}'],
)  # fmt: skip
def test_verdict_that_is_not_one_whole_object_is_an_error(project: Project, verdict: str) -> None:
    scorer = {"use": "command", "id": "c", "argv": ["/bin/echo", verdict]}

    assert attempted(project, {}, 42, scorer=scorer).status == "error"


def test_verdict_whose_flag_contradicts_a_crash_is_an_error(project: Project) -> None:
    line = 'echo \'{"ok": true, "score": 1, "findings": []}\'; exit 3'
    scorer = {"use": "command", "id": "c", "shell": True, "command": line}

    assert attempted(project, {"result.json": '{"ok": true}'}, 42, scorer=scorer).status == "error"
