"""What a run is begun with, as its first event tells it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright_plugins.workflow.drive.turn import UNVERIFIED
from evalwright_plugins.workflow.model.loading import Plan
from evalwright_plugins.workflow.sites.repository import digests_below

__all__ = ["creation"]


def creation(plan: Plan, base: str, files: Path, versions: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of RUN_CREATED; the documents that people accept are looked up below ``files``.

    ``versions`` are those of the plugins that the run is begun with.
    """
    artifacts = digests_below(files, list(plan.config.artifacts.values()))
    return {
        "workflowRef": plan.workflow.name,
        "workflowDigest": plan.workflow_digest,
        "configDigest": plan.digest,
        "base": base,
        "entry": plan.workflow.first,
        "planDigest": artifacts.get(plan.config.artifacts.get("plan", ""), UNVERIFIED),
        "intentDigest": plan.intent_digest,
        "envelopeDigest": plan.prompts_digest,
        "plugins": dict(versions),
        "budgets": plan.workflow.budgets.model_dump(include={"tokens", "cost", "wall"}),
    }
