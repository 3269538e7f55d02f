"""The git side of a workflow: the repository, one worktree a run, what is in it, and proof of what was not written."""

from evalwright_plugins.workflow.workspace.git import Execute, Git, GitError, printable
from evalwright_plugins.workflow.workspace.locks import Lock, hold, owner_of
from evalwright_plugins.workflow.workspace.mounts import ENVIRONMENT, mounts_of
from evalwright_plugins.workflow.workspace.places import Place
from evalwright_plugins.workflow.workspace.proof import Proof
from evalwright_plugins.workflow.workspace.repository import Repository
from evalwright_plugins.workflow.workspace.worktree import CandidateUnfit, Workspace

__all__ = [
    "ENVIRONMENT",
    "CandidateUnfit",
    "Execute",
    "Git",
    "GitError",
    "Lock",
    "Place",
    "Proof",
    "Repository",
    "Workspace",
    "hold",
    "mounts_of",
    "owner_of",
    "printable",
]
