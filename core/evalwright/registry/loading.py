"""From a reference to a checked class: a name, ``package:name``, ``module:Class`` or ``file.py:Class``."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from evalwright import interfaces
from evalwright.canonical import digest_bytes
from evalwright.errors import PluginApiMismatch, PluginBroken, PluginError, PluginInvalid, PluginNotFound
from evalwright.interfaces import API, Plugin
from evalwright.registry.catalog import Catalog, Listing
from evalwright.registry.configuring import configured

__all__ = ["BASES", "Loaded", "Registry", "load_object"]

BASES: Mapping[str, str] = MappingProxyType(
    {
        "runner": "Runner",
        "scorer": "Scorer",
        "sandbox": "Sandbox",
        "queue": "Queue",
        "judge": "Judge",
        "service": "Service",
        "importer": "Importer",
        "exporter": "Exporter",
        "transcript": "TranscriptParser",
    }
)
"""The class that plugins of a kind inherit from, by its name in :mod:`evalwright.interfaces`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A plugin class and where it came from; ``reference`` is what the suite wrote."""

    kind: str
    reference: str
    cls: type[Plugin[Any]]
    distribution: str
    version: str

    def provenance(self) -> dict[str, str]:
        """Return the record that goes into ``run.json``."""
        return {
            "group": f"evalwright.{self.kind}s" if self.kind != "sandbox" else "evalwright.sandboxes",
            "name": self.reference,
            "distribution": self.distribution,
            "version": self.version,
        }


class Registry:
    """Loads plugins by reference. Each class is loaded and checked once; relative files are taken from ``base``."""

    def __init__(self, base: Path | None = None, catalog: Catalog | None = None) -> None:
        self.base = base or Path()
        self.catalog = catalog or Catalog()
        self._loaded: dict[tuple[str, str], Loaded] = {}

    def load(self, kind: str, reference: str) -> Loaded:
        """Return the class behind a reference.

        Raises ``PluginNotFound``, ``PluginAmbiguous``, ``PluginBroken`` (it cannot be imported), ``PluginInvalid`` (it is not
        of that kind, or a method is missing) or ``PluginApiMismatch``.
        """
        key = (kind, reference)
        if key not in self._loaded:
            self._loaded[key] = self._load(kind, reference)
        return self._loaded[key]

    def names_with(self, kind: str, capabilities: Collection[str]) -> list[str]:
        """Return the names of the installed plugins of a kind that declare all of these; broken ones are passed by."""
        found: list[str] = []
        for listing in self.catalog.listings(kind):
            with contextlib.suppress(PluginError):
                if set(capabilities) <= self.load(kind, listing.name).cls.capabilities:
                    found.append(listing.name)
        return found

    def default_id(self, kind: str, reference: str) -> str:
        """Return the name behind ``package:name``, and any other reference as it is."""
        left, _, right = reference.rpartition(":")
        return right if left and not left.endswith(".py") and self._listing(kind, reference, left, right) else reference

    def create(self, kind: str, reference: str, config: Mapping[str, Any], host: Any) -> Any:
        """Return a new plugin with its validated configuration. Raises as :meth:`load`, or ``PluginInvalid``."""
        loaded = self.load(kind, reference)
        checked = configured(loaded.cls, config, f"{kind} {reference}")
        try:
            return loaded.cls(checked, host)
        except (Exception, SystemExit, GeneratorExit) as error:
            raise PluginBroken(
                f'{kind} "{reference}" ({loaded.distribution} {loaded.version}) cannot be created: {error}',
                hint=_details(reference),
            ) from error

    def _load(self, kind: str, reference: str) -> Loaded:
        left, colon, right = reference.rpartition(":")
        if colon and left.endswith(".py"):
            return self._from_file(kind, reference, left, right)
        listing = self._listing(kind, reference, left, right)
        if listing:
            cls = self._attribute(reference, *_target(listing), origin=listing.origin)
            return self._checked(kind, reference, cls, listing.distribution, listing.version)
        cls = self._attribute(reference, left, right, origin=left)
        return self._checked(kind, reference, cls, *_distribution_of(left))

    def _listing(self, kind: str, reference: str, left: str, right: str) -> Listing | None:
        """Return the entry point that the reference names, or ``None`` when it names a module and a class."""
        if not left:
            return self.catalog.find(kind, reference)
        try:
            return self.catalog.find(kind, right, left)
        except PluginNotFound:
            return None

    def _from_file(self, kind: str, reference: str, file: str, name: str) -> Loaded:
        path = (self.base / file).resolve()
        if not path.is_file():
            raise PluginNotFound(f'{kind} "{reference}": there is no file {path}', hint="give the path from the suite")
        digest = digest_bytes(path.read_bytes())
        module = _module_from(path, digest, reference)
        cls = _member(module, name, reference, str(path))
        return self._checked(kind, reference, cls, str(file), digest)

    def _attribute(self, reference: str, module: str, name: str, *, origin: str) -> Any:
        try:
            loaded = importlib.import_module(module)
        except BaseException as error:
            raise _broken(reference, origin, error) from error
        return _member(loaded, name, reference, origin)

    def _checked(self, kind: str, reference: str, cls: Any, distribution: str, version: str) -> Loaded:
        base: type[Plugin[Any]] = getattr(interfaces, BASES[kind])
        origin = f"{distribution} {version}"
        if not _inherits(cls, base):
            raise PluginInvalid(
                f'"{reference}" ({origin}) is not a {kind}', hint=f"inherit from evalwright.interfaces.{base.__name__}"
            )
        _check_api(kind, reference, origin, cls)
        missing = sorted(getattr(cls, "__abstractmethods__", ()))
        if missing:
            raise PluginInvalid(f'"{reference}" ({origin}) lacks {", ".join(missing)}', hint="implement what is missing")
        return Loaded(kind=kind, reference=reference, cls=cls, distribution=distribution, version=version)


def _inherits(cls: Any, base: type[Plugin[Any]]) -> bool:
    return inspect.isclass(cls) and issubclass(cls, base)


def _check_api(kind: str, reference: str, origin: str, cls: type[Plugin[Any]]) -> None:
    declared = getattr(cls, "api", None)
    ours = API[kind]
    if not isinstance(declared, str):
        raise PluginInvalid(f'"{reference}" ({origin}) does not say its api', hint=f'add: api = "{ours}"')
    name, _, version = declared.partition("/")
    major, _, minor = version.partition(".")
    our_major, _, our_minor = ours.partition("/")[2].partition(".")
    fits = name == kind and major == our_major and minor.isdigit() and int(minor) <= int(our_minor)
    if not fits:
        raise PluginApiMismatch(
            f'"{reference}" ({origin}) was written for {declared}; this is {ours}',
            hint="install a matching version of the plugin or of evalwright",
        )


def _target(listing: Listing) -> tuple[str, str]:
    """Return module and attribute of an entry point; the attribute may be missing, and extras mean nothing here."""
    module, _, name = listing.target.partition("[")[0].strip().partition(":")
    return module, name


def _broken(reference: str, origin: str, error: BaseException) -> PluginBroken:
    """Return the error for a failed import. A Ctrl-C stays one."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    reason = str(error).strip() or type(error).__name__
    return PluginBroken(
        f'Plugin "{reference}" ({origin}) cannot be loaded: {reason}. Suites that do not use it are unaffected.',
        hint=_details(reference),
        plugin=reference,
        origin=origin,
    )


def _details(reference: str) -> str:
    """Return where more is to be learned of a broken plugin; only installed ones can be checked by name."""
    if ":" in reference:
        return "import it in a Python of this environment to see the whole traceback"
    return f"details: evalwright plugins check {reference}"


def _member(module: ModuleType, name: str, reference: str, origin: str) -> Any:
    found: Any = module if name else None
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise _broken(reference, origin, AttributeError(f"{module.__name__} has no {name or 'class named by the entry point'}"))
    return found


def _module_from(path: Path, digest: str, reference: str) -> ModuleType:
    name = f"evalwright_file_{digest[7:23]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise _broken(reference, str(path), ImportError("not a Python file"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        raise _broken(reference, str(path), error) from error
    return module


def _distribution_of(module: str) -> tuple[str, str]:
    top = module.partition(".")[0]
    names = importlib.metadata.packages_distributions().get(top, [])
    return (names[0], importlib.metadata.version(names[0])) if names else (module, "unpackaged")


def load_object(listing: Listing) -> Any:
    """Import what an entry point names, whatever it is. Raises ``PluginBroken``."""
    module, name = _target(listing)
    try:
        loaded = importlib.import_module(module)
    except BaseException as error:
        raise _broken(listing.name, listing.origin, error) from error
    return _member(loaded, name, listing.name, listing.origin) if name else loaded
