"""The sample suite that ``init`` writes: one case that its agent passes and one that it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.canonical import stable_json
from evalwright.errors import RunConflict
from evalwright.suite.author import render
from evalwright.workspace import remove_tree

__all__ = ["write_sample"]

NAME = "code-review"
EXPECT: dict[str, Any] = {
    "exit_code": 0,
    "files_changed": ["review.md"],
    "files_exist": ["review.md"],
    "files_forbidden": ["src/secrets.py"],
}
SUITE: dict[str, Any] = {
    "name": NAME,
    "cases": "cases.jsonl",
    "acknowledged_unsandboxed_runner": True,
    "runner": {
        "argv": ["python3", "$EVALWRIGHT_WORKSPACE/runner.py"],
        "shell": False,
        "command": None,
        "cwd": None,
        "timeout_seconds": 30,
        "max_output_bytes": 1048576,
        "env_allowlist": ["PATH", "HOME"],
        "redact_env_values": [],
        "redact_patterns": ["(?i)secret[=:]\\s*\\S+", "(?i)token[=:]\\s*\\S+"],
    },
    "scorers": [{"name": name, "required": True} for name in ("contains", "exit-code", "file-exists", "workspace-diff")],
}
CASES: list[dict[str, Any]] = [
    {
        "id": "cr-pass",
        "task": "Read the change, find the call that breaks when a value is missing, and write it to review.md.",
        "workspace": "fixtures/cr-pass",
        "diff": "fixtures/cr-pass/change.diff",
        "expect": EXPECT | {"text_contains": ["null dereference", "src/app.py:7"]},
    },
    {
        "id": "cr-fail",
        "task": "Read the change, name the index that is out of range in review.md, and leave every secret alone.",
        "workspace": "fixtures/cr-fail",
        "diff": "fixtures/cr-fail/change.diff",
        "expect": EXPECT | {"text_contains": ["bounds check"]},
    },
]
CAREFUL_AGENT = """import os
from pathlib import Path

finding = "null dereference: src/app.py:7 calls a method on a value that may be None\\n"
Path(os.environ["EVALWRIGHT_OUTPUT_FILE"]).write_text(finding)
Path("review.md").write_text(finding)
"""
CARELESS_AGENT = """import os
from pathlib import Path

Path(os.environ["EVALWRIGHT_OUTPUT_FILE"]).write_text("Looks fine\\n")
Path("src/secrets.py").write_text("password = 'hunter2'\\n")
"""
PASS_SOURCE = """import json


def greet(line):
    person = json.loads(line)
    name = person.get("name")
    return "Hello " + name.title()
"""
PASS_DIFF = """--- a/src/app.py
+++ b/src/app.py
@@ -4,4 +4,4 @@
 def greet(line):
     person = json.loads(line)
-    name = person["name"]
+    name = person.get("name")
     return "Hello " + name.title()
"""
FAIL_SOURCE = """def last(items):
    return items[len(items)]
"""
FAIL_DIFF = """--- a/src/app.py
+++ b/src/app.py
@@ -1,2 +1,2 @@
 def last(items):
-    return items[-1]
+    return items[len(items)]
"""
FILES = {
    "cr-pass/src/app.py": PASS_SOURCE,
    "cr-pass/change.diff": PASS_DIFF,
    "cr-pass/runner.py": CAREFUL_AGENT,
    "cr-fail/src/app.py": FAIL_SOURCE,
    "cr-fail/change.diff": FAIL_DIFF,
    "cr-fail/runner.py": CARELESS_AGENT,
}


def write_sample(evals: Path, *, force: bool = False) -> dict[str, Any]:
    """Write the sample into ``evals`` and return ``{created, suite, files}``.

    Raises ``RunConflict`` when ``evals`` exists, unless ``force``; then only the sample suite itself is replaced.
    """
    if evals.exists() and not force:
        raise RunConflict(
            f"{evals}/ exists already",
            hint="check it: evalwright validate code-review; or replace the sample: evalwright init --force",
        )
    directory = evals / "suites" / NAME
    if directory.is_symlink():
        raise RunConflict(f"{directory} is a link", hint="remove the link first; nothing is written through it")
    if directory.exists():
        remove_tree(directory, inside=directory.parent)
    for name, content in FILES.items():
        path = directory / "fixtures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")
    (evals / "runs").mkdir(parents=True, exist_ok=True)
    (directory / "suite.json").write_text(render(SUITE), encoding="utf-8", newline="")
    lines = "".join(stable_json(case) + "\n" for case in CASES)
    (directory / "cases.jsonl").write_text(lines, encoding="utf-8", newline="")
    return {
        "created": str(evals),
        "suite": NAME,
        "files": [str(directory / "suite.json"), str(directory / "cases.jsonl")],
    }
