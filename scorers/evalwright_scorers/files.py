"""Scorers of the workspace: file-exists and workspace-diff."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, RootModel

from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import Manifest, Score, ScoredTrial
from evalwright_scorers.expectation import expected
from evalwright_scorers.path_globs import Globs, matches, normalized

__all__ = ["FileExists", "FileExistsConfig", "WorkspaceDiff", "WorkspaceDiffConfig"]


class PathList(RootModel[list[str]], strict=True, frozen=True):
    """Paths or patterns, relative to the workspace."""


class FileExistsConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The paths that every case expects unless it names its own, and how patterns are read."""

    files_exist: list[str] = []
    globs: Globs = "segments"


class FileExists(Scorer[FileExistsConfig]):
    """Passes when every path, or a match of every pattern, is in the final workspace.

    Entries of any kind count. A pattern that ends in ``/`` wants a directory.
    """

    api = "scorer/1.0"
    Config = FileExistsConfig
    Expect = MappingProxyType({"files_exist": PathList})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether any path is expected."""
        return bool(expected(expect, "files_exist", self.config))

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """List what is missing."""
        patterns = expected(trial.expect, "files_exist", self.config)
        missing = [pattern for pattern in patterns if not self._present(pattern, trial.after)]
        return Score.decided(tuple({"path": path, "why": "expected file missing"} for path in missing))

    def _present(self, pattern: str, tree: Manifest) -> bool:
        path = normalized(pattern)
        if self.config.globs == "fnmatch":
            globbed = any(character in path for character in "*?[")
            return any(entry.path == path or (globbed and fnmatch(entry.path, path)) for entry in tree.entries)
        directory = path.endswith("/")
        path = path.rstrip("/")
        return any(
            entry.path == path or matches(path, entry.path)
            for entry in tree.entries
            if entry.kind == "directory" or not directory
        )


class WorkspaceDiffConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The patterns of every case that has none of its own.

    ``always`` records a score even for a case without patterns.
    """

    files_changed: list[str] = []
    files_forbidden: list[str] = []
    globs: Globs = "segments"
    always: bool = False


class WorkspaceDiff(Scorer[WorkspaceDiffConfig]):
    """Passes when every wanted path changed and no forbidden one did."""

    api = "scorer/1.0"
    Config = WorkspaceDiffConfig
    Expect = MappingProxyType({"files_changed": PathList, "files_forbidden": PathList})
    pure = True

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether any pattern is given, or the entry asks for a score in any case."""
        keys = ("files_changed", "files_forbidden")
        return self.config.always or any(expected(expect, key, self.config) for key in keys)

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """List wanted changes that are missing, then forbidden ones: one finding for each changed path."""
        changed = [change.path for change in trial.changes]
        wanted = expected(trial.expect, "files_changed", self.config)
        forbidden = expected(trial.expect, "files_forbidden", self.config)
        globs = self.config.globs
        missing = [pattern for pattern in wanted if not any(matches(pattern, path, globs) for path in changed)]
        broken = [pattern for pattern in forbidden for path in changed if matches(pattern, path, globs)]
        return Score.decided(
            (
                *({"path": pattern, "why": "expected change missing"} for pattern in missing),
                *({"path": pattern, "why": "forbidden path modified"} for pattern in broken),
            )
        )
