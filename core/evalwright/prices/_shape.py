"""The shape of one model in a file of prices."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

__all__ = ["PriceShape", "objection"]

Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class PriceShape(BaseModel):
    """Rates in US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    input: Rate
    output: Rate
    cache_read: Rate | None = None
    cache_write: Rate | None = None
    effective: date | None = None
    aliases: list[Annotated[str, Field(min_length=1)]] = []


def objection(table: Any) -> str | None:
    """Return what is wrong with a model's table: the key and why, to be read after the model's name."""
    try:
        PriceShape.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f".{where}: {first['msg']}" if where else ": must be a table"
    return None
