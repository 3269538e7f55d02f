"""The JSON Schemas of the files that people write, made from the models that read them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from evalwright_plugins.workflow.model.config import WorkConfig
from evalwright_plugins.workflow.model.workflow import Workflow

__all__ = ["published_schemas"]

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def published_schemas() -> dict[str, dict[str, Any]]:
    """Return each schema by the name under which it is published."""
    models: dict[str, type[BaseModel]] = {"workflow": Workflow, "work-config": WorkConfig}
    return {name: {"$schema": DRAFT, **model.model_json_schema()} for name, model in models.items()}
