"""Directory trees: what a fixture holds, private copies of it, and what a trial changed."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.workspace.clone import Clone, Cloner, Fixture
    from evalwright.workspace.diff import unified_diff
    from evalwright.workspace.digest import digest_file
    from evalwright.workspace.fixture import fixture_problems
    from evalwright.workspace.repository import find_repositories, without_history
    from evalwright.workspace.scan import UnreadableError
    from evalwright.workspace.scratch import (
        Scratch,
        TrialPlace,
        clear_abandoned,
        clear_scratch,
        force_remove,
        left_scratch,
        owned_name,
        remove_tree,
    )
    from evalwright.workspace.stamps import lasting_stamp, stamp_of
    from evalwright.workspace.stat_cache import StatCache
    from evalwright.workspace.write import copy_file, copy_tree, open_readable, restore
else:
    __getattr__ = lazy(
        __name__,
        {
            ".clone": "Clone Cloner Fixture",
            ".diff": "unified_diff",
            ".digest": "digest_file",
            ".fixture": "fixture_problems",
            ".repository": "find_repositories without_history",
            ".scan": "UnreadableError",
            ".scratch": "Scratch TrialPlace clear_abandoned clear_scratch force_remove left_scratch owned_name remove_tree",
            ".stamps": "lasting_stamp stamp_of",
            ".stat_cache": "StatCache",
            ".write": "copy_file copy_tree open_readable restore",
        },
    )

__all__ = [
    "Clone",
    "Cloner",
    "Fixture",
    "Scratch",
    "StatCache",
    "TrialPlace",
    "UnreadableError",
    "clear_abandoned",
    "clear_scratch",
    "copy_file",
    "copy_tree",
    "digest_file",
    "find_repositories",
    "fixture_problems",
    "force_remove",
    "lasting_stamp",
    "left_scratch",
    "open_readable",
    "owned_name",
    "remove_tree",
    "restore",
    "stamp_of",
    "unified_diff",
    "without_history",
]
