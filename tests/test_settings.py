"""Settings: one documented precedence, every value with its origin, and nonsense refused with its source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from evalwright.errors import UsageError
from evalwright.settings import FIELDS, Settings, _plain, _read_sources, load_settings

LAYERS = [
    ("command line", 20.0),
    ("EVALWRIGHT_TIMEOUT", 40.0),
    ("EVALCTL_TIMEOUT", 45.0),
    ("evalwright.toml", 30.0),
    ("default", None),
]


@pytest.mark.parametrize("removed", range(len(LAYERS)))
def test_first_layer_that_is_left_gives_the_value_and_is_its_origin(tmp_path: Path, removed: int) -> None:
    left = dict(LAYERS[removed:])
    environment = {name: str(value) for name, value in left.items() if name.startswith("EVAL")}
    if "evalwright.toml" in left:
        (tmp_path / "evalwright.toml").write_text("timeout = 30\n")

    settings = load_settings(environment, tmp_path).overridden(timeout=left.get("command line"))

    origin, value = LAYERS[removed]
    assert (settings.timeout, settings.origin("timeout")) == (value, origin)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("JOBS", "four"), ("JOBS", "0"), ("JOBS", "-1"), ("JOBS", "1025"), ("JOBS", "2.5"), ("JOBS", ""),
        ("TIMEOUT", "soon"), ("TIMEOUT", "0"), ("TIMEOUT", "-5"), ("TIMEOUT", "nan"), ("TIMEOUT", "inf"),
        ("RESERVATION_TTL", "-1"), ("KEEP_WORKSPACE", "sometimes"), ("CLONE", "hardlink"), ("PARANOID", "very"),
        ("PROFILE", "sometimes"), ("ACKNOWLEDGE_UNSANDBOXED_RUNNER", "perhaps"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["environment", "file"])
def test_value_that_cannot_be_meant_is_refused_and_its_place_named(tmp_path: Path, name: str, value: str, place: str) -> None:
    environment: Mapping[str, str] = {}
    if place == "environment":
        environment = {f"EVALWRIGHT_{name}": value}
    else:
        bare = value if value.lstrip("-").replace(".", "").isdigit() or value in {"nan", "inf"} else f'"{value}"'
        (tmp_path / "evalwright.toml").write_text(f"{name.lower()} = {bare}\n")

    with pytest.raises(UsageError) as caught:
        load_settings(environment, tmp_path)

    assert (f"EVALWRIGHT_{name}" if place == "environment" else "evalwright.toml") in str(caught.value)


@pytest.mark.parametrize("text", ["jobs =", "[jobs]\nx = 1", "jbos = 2", "jobs = [1]", "\x00", "jobs = 1\njobs = 2"])
def test_file_that_is_wrong_is_refused_by_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "evalwright.toml").write_text(text)

    with pytest.raises(UsageError, match=r"evalwright\.toml"):
        load_settings({}, tmp_path)


def test_file_that_is_not_utf8_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "evalwright.toml").write_bytes(b'sandbox = "\xff"\n')

    with pytest.raises(UsageError, match=r"evalwright\.toml"):
        load_settings({}, tmp_path)


def test_every_setting_can_be_set_by_environment_and_keeps_its_origin(tmp_path: Path) -> None:
    values = {
        "jobs": "3", "timeout": "2.5", "evals": "e", "runs": "r", "workspaces": "w", "sandbox": "s", "queue": "q",
        "keep_workspace": "all", "acknowledge_unsandboxed_runner": "true", "reservation_ttl": "60",
        "clone": "copy", "paranoid": "true", "profile": "true",
    }  # fmt: skip
    known = {name: values[name] for name in FIELDS if name in values}

    settings = load_settings({f"EVALWRIGHT_{name.upper()}": value for name, value in known.items()}, tmp_path)

    assert {name: settings.origin(name) for name in known} == {name: f"EVALWRIGHT_{name.upper()}" for name in known}
    assert (settings.jobs, settings.timeout, settings.acknowledge_unsandboxed_runner) == (3, 2.5, True)
    assert settings.runs_directory == Path("r")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "0",
        "1",
        "01",
        "1024",
        "1025",
        "999999999",
        "9999999999",
        "1.5",
        "\u0661",
        "true",
        "True",
        "false",
        "all",
        "copy",
        "a/b",
    ],
)
@pytest.mark.parametrize("name", FIELDS)
def test_text_that_is_read_without_the_library_means_the_same_to_it(tmp_path: Path, name: str, text: str) -> None:
    value = _plain(name, text)

    if value is not None:
        read, _ = _read_sources({name: ("EVALWRIGHT_X", text)}, tmp_path / "evalwright.toml")
        assert (read[name], type(read[name])) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text"), [("jobs", "4"), ("timeout", "30"), ("evals", "e"), ("clone", "copy"), ("paranoid", "1")]
)
def test_plain_text_is_read_without_the_library(name: str, text: str) -> None:
    assert _plain(name, text) is not None


def test_foreign_variables_mean_nothing(tmp_path: Path) -> None:
    assert load_settings({"JOBS": "9", "TIMEOUT": "1", "EVALWRIGHTJOBS": "8"}, tmp_path).timeout is None


def test_runs_lie_below_evals_unless_told_otherwise() -> None:
    assert Settings(evals=Path("x")).runs_directory == Path("x/runs")
