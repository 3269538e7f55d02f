"""What can be read from the transcript of an agent's work."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalwright.model.usage import Usage

__all__ = ["Transcript"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """Consumption and last words of one agent. What the transcript does not say is ``None``.

    Turns, tool calls and tool errors stand in ``usage``. ``model`` is the one model that did the work, ``None`` when there
    were several. ``final_text`` is the agent's last answer.
    """

    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    final_text: str | None = None

    @property
    def turns(self) -> int | None:
        """Return how often the model was asked."""
        return self.usage.turns

    @property
    def tool_calls(self) -> int | None:
        """Return how many tools were called."""
        return self.usage.tool_calls

    @property
    def tool_errors(self) -> int | None:
        """Return how many of the calls failed."""
        return self.usage.tool_errors
