"""Counts the literals that functions met and that are no geometry."""

from __future__ import annotations

from spaseq.measures import ProcessCount


class BadGeometryCount(ProcessCount):
    """Counts the bad geometries that functions of this process meet."""
