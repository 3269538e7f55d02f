"""Where a run's steps happen: a worktree of the user's repository, or the workspace of a trial."""

from evalwright_plugins.workflow.sites.site import RunFiles, Site, StepCall, StepResult

__all__ = ["RunFiles", "Site", "StepCall", "StepResult"]
