"""``band``: how much do repeats of the same arm differ?"""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.experiments import exit_code_of, screen, warn_of
from evalwright.cli.gating import named_sides
from evalwright.cli.project import open_project
from evalwright.report.figures.banding import band_of
from evalwright.report.forms.banding_text import band_text
from evalwright.report.forms.experiment_data import damage_data

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the band of every arm, or of the one that ``ID:ARM`` names."""
    options = session.options
    view, sides = named_sides(open_project(session).layout, options.experiment)
    warn_of(session, view)
    metric = options.metric or view.primary or "pass_rate"
    bands = [band_of(side, metric=metric, items=options.items or "pass") for side in sides if side.trials]
    data = {"experiment": view.id, "metric": metric, "arms": [found.as_json() for found in bands]}
    data |= {"damaged": damage_data(view)}
    reply = Reply(data=data, text=screen().text("\n".join(map(band_text, bands)).splitlines()), exit_code=exit_code_of(view))
    if len(sides) > 1:
        reply.then(f"evalwright compare {view.id}", "compare the arms with each other")
    return reply
