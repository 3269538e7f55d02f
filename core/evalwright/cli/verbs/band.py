"""``band``: how much do repeats of the same arm differ?"""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.experiments import screen
from evalwright.cli.gating import named_sides
from evalwright.cli.project import open_project
from evalwright.report.figures.banding import band_of
from evalwright.report.forms.banding_text import band_text

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the band of every arm, or of the one that ``ID:ARM`` names."""
    options = session.options
    view, sides = named_sides(open_project(session).layout, options.experiment)
    for warning in view.warnings:
        session.warn(warning["code"], warning["message"])
    if not view.finished:
        session.warn("W_PARTIAL_RUN", f"{view.id}: {len(view.trials)} of {view.planned} trials are finished")
    metric = options.metric or view.primary or "pass_rate"
    bands = [band_of(side, metric=metric, items=options.items or "pass") for side in sides if side.trials]
    data = {"experiment": view.id, "metric": metric, "arms": [found.as_json() for found in bands]}
    reply = Reply(data=data, text=screen().text("\n".join(map(band_text, bands)).splitlines()))
    if len(sides) > 1:
        reply.then(f"evalwright compare {view.id}", "compare the arms with each other")
    return reply
