"""The pages about workflows: the tutorial works as it is pasted, no key, action or flag is left out, schemas are current."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.conftest import clean_environment

from evalwright.canonical import is_array, is_object
from evalwright_plugins.workflow.commands.verb import WorkVerb
from evalwright_plugins.workflow.model.loading import PRESETS, preset
from evalwright_plugins.workflow.model.schemas import published_schemas

DOCS = Path(__file__).parents[2] / "docs"
SCHEMAS = DOCS / "reference" / "schemas"
WAITS = 10


@pytest.mark.parametrize("name", sorted(published_schemas()))
def test_published_schema_is_current(name: str, request: pytest.FixtureRequest) -> None:
    text = json.dumps(published_schemas()[name], indent=2, ensure_ascii=False) + "\n"
    path = SCHEMAS / f"{name}.schema.json"
    if request.config.getoption("--update-golden"):
        SCHEMAS.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("name", PRESETS)
def test_presets_fit_the_published_schema(name: str) -> None:
    validator = Draft202012Validator(published_schemas()["workflow"])

    assert [error.message for error in validator.iter_errors(preset(name))] == []
    odd: dict[str, Any] = {**preset(name), "step": 1}
    assert list(validator.iter_errors(odd))


def keys_of(schema: Any) -> Iterator[str]:
    """Yield every key that a schema knows, at any depth."""
    if is_object(schema):
        properties: dict[str, Any] = schema.get("properties", {})
        yield from properties
        for value in schema.values():
            yield from keys_of(value)
    elif is_array(schema):
        for value in schema:
            yield from keys_of(value)


def test_page_about_files_has_every_key() -> None:
    page = (DOCS / "reference" / "workflow-files.md").read_text(encoding="utf-8")

    missing = {
        key for schema in published_schemas().values() for key in keys_of(schema) if not re.search(rf"[`{{ ]{key}\b", page)
    }

    assert missing - {"script"} == set()
    assert "{script: [...], timeout: 60}" in page


def test_page_about_the_verb_has_every_action_flag_and_exit_code() -> None:
    page = (DOCS / "reference" / "work.md").read_text(encoding="utf-8").replace("\\|", "|")

    assert [words for words in WorkVerb.actions if f"`{words}`" not in page] == []
    assert [flag.name for flag in WorkVerb.flags if f"`{flag.name}" not in page] == []
    assert [code for code in WorkVerb.exit_codes if not re.search(rf"\b{code}\b", page)] == []


@pytest.mark.acceptance
def test_tutorial_can_be_pasted(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "run-a-workflow.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    env = clean_environment() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    ends: list[int] = []
    place = tmp_path
    for block in blocks:
        done = subprocess.run(
            ["bash", "-ec", block], cwd=place, env=env, capture_output=True, text=True, timeout=120, check=False
        )
        ends.append(done.returncode)
        place = tmp_path / "toy"
        if done.returncode not in (0, WAITS):
            pytest.fail(f"{block}\n{done.stdout}\n{done.stderr}")

    assert ends.count(WAITS) == 1
    assert (place / "calc.py").read_text() == "def add(a, b):\n    return a + b\n"
    assert len(blocks) > 6
