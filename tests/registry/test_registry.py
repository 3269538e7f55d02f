"""From a reference to a class: every reference form, every way to be broken, and nothing imported that nobody wants."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evalwright.errors import PluginAmbiguous, PluginApiMismatch, PluginBroken, PluginError, PluginInvalid, PluginNotFound
from evalwright.registry import Catalog, PluginHost, Registry

Package = Callable[..., Path]

GOOD = """
from evalwright.interfaces import Scorer
from evalwright.model import Score

class Good(Scorer[None]):
    api = "scorer/1.0"

    def score(self, trial, context):
        return Score.passed()

class Old(Good):
    api = "scorer/0.9"

class Newer(Good):
    api = "scorer/1.99"

class Next(Good):
    api = "scorer/2.0"

class Silent(Good):
    api = None

class Wrong(Good):
    api = "runner/1.0"

class Garbage(Good):
    api = "scorer/1.x"

class Half(Scorer[None]):
    api = "scorer/1.0"

class Quitting(Good):
    def __init__(self, config, host):
        raise SystemExit(0)

class Failing(Good):
    def __init__(self, config, host):
        raise RuntimeError("no luck")

class Outer:
    class Inner(Good):
        pass

class NoPlugin:
    api = "scorer/1.0"

def function():
    return None
"""


def forget() -> None:
    """Make the next look see what is installed now."""
    importlib.invalidate_caches()
    extension = sys.modules.get("stevedore.extension")
    if extension is not None:
        extension.ExtensionManager.ENTRY_POINT_CACHE.clear()


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Package]:
    """Return what installs a distribution: ``package(name, entry_points, files={}, metadata=None)``."""
    site = tmp_path / "site"
    site.mkdir()
    sys.path.append(str(site))
    modules = set(sys.modules)

    def install(
        name: str, entry_points: str | bytes = "", files: dict[str, str] | None = None, metadata: str | None = None
    ) -> Path:
        info = site / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        if metadata:
            (info / "METADATA").write_text(metadata)
        content = entry_points.encode() if isinstance(entry_points, str) else entry_points
        (info / "entry_points.txt").write_bytes(content)
        for file, text in (files or {}).items():
            (site / file).write_text(text)
        forget()
        return info

    yield install
    sys.path.remove(str(site))
    for module in set(sys.modules) - modules:
        del sys.modules[module]
    forget()


def scorers(**targets: str) -> str:
    return "[evalwright.scorers]\n" + "".join(f"{name} = {target}\n" for name, target in targets.items())


def test_listing_imports_no_plugin(package: Package) -> None:
    package("p1", scorers(loud="loud_module:X"), {"loud_module.py": "raise SystemExit('imported')"})

    found = {item.name: item.origin for item in Catalog().listings("scorer")}

    assert found["loud"] == "p1 1.0"
    assert "exact" in found
    assert "loud_module" not in sys.modules


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Old", PluginApiMismatch), ("Newer", PluginApiMismatch), ("Next", PluginApiMismatch), ("Silent", PluginInvalid),
        ("Wrong", PluginApiMismatch), ("Garbage", PluginApiMismatch), ("Half", PluginInvalid), ("NoPlugin", PluginInvalid),
        ("function", PluginInvalid), ("Absent", PluginBroken), ("Outer.Absent", PluginBroken),
    ],
)  # fmt: skip
def test_class_that_does_not_fit_is_refused_with_its_distribution(
    package: Package, name: str, error: type[PluginError]
) -> None:
    package("p1", scorers(mine=f"good_module:{name}"), {"good_module.py": GOOD})

    with pytest.raises(error) as caught:
        Registry().load("scorer", "mine")

    assert "p1 1.0" in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ImportError('gone')", "gone"),
        ("raise SystemExit(1)", "1"),
        ("import evalwright._internal_gone", "_internal_gone"),
        ("def broken(:", "invalid syntax"),
        ("raise RuntimeError", "RuntimeError"),
        ("class Odd(BaseException): pass\nraise Odd('odd')", "odd"),
        ("def f(): f()\nf()", "recursion"),
    ],
    ids=["import error", "exit", "missing name", "syntax", "no message", "base exception", "recursion"],
)
def test_module_that_cannot_be_imported_is_broken_with_the_reason(package: Package, text: str, reason: str) -> None:
    package("p1", scorers(mine="bad_module:X"), {"bad_module.py": text})

    with pytest.raises(PluginBroken, match=reason) as caught:
        Registry().load("scorer", "mine")

    assert "p1 1.0" in caught.value.message
    assert Registry().load("scorer", "exact").distribution == "evalwright"


@pytest.mark.parametrize(
    "target", ["bad_target", "good_module", "good_module:", ":Good", "", "good module:Good", "good_module:Good:x"]
)
def test_target_that_names_no_class_is_a_plugin_error_and_no_crash(package: Package, target: str) -> None:
    package("p1", scorers(mine=target), {"good_module.py": GOOD})

    with pytest.raises(PluginError):
        Registry().load("scorer", "mine")

    assert Registry().load("scorer", "exact").distribution == "evalwright"


def test_target_with_extras_is_the_class_before_them(package: Package) -> None:
    package("p1", scorers(mine="good_module:Good [fast]"), {"good_module.py": GOOD})

    assert Registry().load("scorer", "mine").cls.__name__ == "Good"


@pytest.mark.parametrize("metadata", ["", "Metadata-Version: 2.1\n", "Name:\nVersion:\n", "\x00\x01", "Name: p1\n"])
@pytest.mark.parametrize(
    "entry_points", ["", scorers(mine="good_module:Good"), b"\xff\xfe", "no section\n", "[evalwright.scorers\n"]
)
def test_damaged_metadata_of_one_distribution_breaks_no_other(package: Package, metadata: str, entry_points: str) -> None:
    package("p1", entry_points, {"good_module.py": GOOD}, metadata=metadata)
    package("p2", scorers(other="good_module:Good"))

    names = {item.name for item in Catalog().listings("scorer")}

    assert {"exact", "other"} <= names
    assert Registry().load("scorer", "other").distribution == "p2"


@pytest.mark.parametrize("order", [("p1", "p2"), ("p2", "p1")])
def test_name_that_two_packages_claim_is_refused_by_both_names_and_each_is_reachable(
    package: Package, order: tuple[str, str]
) -> None:
    for name in order:
        package(name, scorers(shared=f"good_{name}:Good"), {f"good_{name}.py": GOOD})

    with pytest.raises(PluginAmbiguous) as caught:
        Registry().load("scorer", "shared")

    assert "p1 1.0" in caught.value.message
    assert "p2 1.0" in caught.value.message
    for name in ("p1", "p2"):
        loaded = Registry().load("scorer", f"{name}:shared")
        assert (loaded.distribution, loaded.cls.__module__) == (name, f"good_{name}")
    assert Registry().load("scorer", "exact").distribution == "evalwright"


def test_name_of_a_shipped_scorer_claimed_by_a_package_is_ambiguous_and_both_are_reachable(package: Package) -> None:
    package("p2", scorers(exact="good_module:Good"), {"good_module.py": GOOD})

    with pytest.raises(PluginAmbiguous):
        Registry().load("scorer", "exact")

    assert Registry().load("scorer", "evalwright:exact").distribution == "evalwright"
    assert Registry().load("scorer", "p2:exact").distribution == "p2"


def test_one_package_that_claims_a_name_twice_is_no_crash(package: Package) -> None:
    package("p1", scorers(a="good_module:Good") + "a = good_module:Outer.Inner\n", {"good_module.py": GOOD})

    with contextlib.suppress(PluginAmbiguous):
        assert Registry().load("scorer", "a").distribution == "p1"
    assert Registry().load("scorer", "exact").distribution == "evalwright"


@pytest.mark.parametrize("spelling", ["my-pack.age", "my_pack_age", "MY-PACK-AGE"])
def test_spelling_of_a_distribution_does_not_matter(package: Package, spelling: str) -> None:
    package("my-pack-age", scorers(mine="good_module:Good"), {"good_module.py": GOOD})

    assert Registry().load("scorer", f"{spelling}:mine").distribution == "my-pack-age"


def test_class_can_be_named_by_module_and_by_file(package: Package, tmp_path: Path) -> None:
    package("p1", files={"good_module.py": GOOD})
    (tmp_path / "mine.py").write_text(GOOD)

    assert Registry().load("scorer", "good_module:Outer.Inner").cls.__qualname__ == "Outer.Inner"
    loaded = Registry(tmp_path).load("scorer", "mine.py:Good")
    assert loaded.version.startswith("sha256:")
    (tmp_path / "mine.py").write_text(GOOD + "\n# changed\n")
    assert Registry(tmp_path).load("scorer", "mine.py:Good").version != loaded.version


@pytest.mark.parametrize(
    "reference", ["absent.py:Good", "absent_module:Good", "exakt", "", ":", "a:b:c", "mine.py:", "mine.py:Gone"]
)
def test_reference_that_leads_nowhere_is_a_plugin_error(tmp_path: Path, reference: str) -> None:
    (tmp_path / "mine.py").write_text(GOOD)

    with pytest.raises(PluginError):
        Registry(tmp_path).load("scorer", reference)


def test_misspelt_name_has_a_suggestion() -> None:
    with pytest.raises(PluginNotFound, match="exakt") as caught:
        Registry().load("scorer", "exakt")

    assert "exact" in str(caught.value.hint)


def test_plugin_of_another_kind_is_refused() -> None:
    with pytest.raises(PluginInvalid, match="is not a scorer"):
        Registry().load("scorer", "evalwright_plugins.runners.command:CommandRunner")


@pytest.mark.parametrize("name", ["Failing", "Quitting"])
def test_plugin_that_fails_when_it_is_made_is_broken_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(GOOD)
    registry = Registry(tmp_path)

    with pytest.raises(PluginBroken, match=f"mine.py:{name}"):
        registry.create("scorer", f"mine.py:{name}", {}, PluginHost(registry))


def test_configuration_problems_are_told_with_key_and_suggestion() -> None:
    registry = Registry()

    with pytest.raises(PluginInvalid) as caught:
        registry.create("scorer", "command", {"argv": ["x"], "timeout_second": 3}, PluginHost(registry))

    assert caught.value.details["problems"][0]["did_you_mean"] == "timeout_seconds"


def test_plugin_without_configuration_refuses_every_key() -> None:
    registry = Registry()

    with pytest.raises(PluginInvalid, match="unknown key"):
        registry.create("queue", "local", {"slots": 3}, PluginHost(registry))


def test_named_table_that_the_suite_lacks_is_told_with_those_it_has() -> None:
    with pytest.raises(PluginNotFound, match=r"sandboxes\.grader"):
        PluginHost(Registry()).create("sandboxes.grader")
