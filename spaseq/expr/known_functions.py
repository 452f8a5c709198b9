"""All functions that queries may call by IRI: those of places, and those of the user."""

from __future__ import annotations

from spaseq.expr.extension import Function, registered
from spaseq.expr.places import PLACE_FUNCTIONS


def known_functions() -> tuple[Function, ...]:
    """All functions, by IRI; a function of the user takes the place of another one."""
    every = {**PLACE_FUNCTIONS, **{function.iri: function for function in registered()}}
    return tuple(every[iri] for iri in sorted(every))
