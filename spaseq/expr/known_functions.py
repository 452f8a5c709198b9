"""All functions that queries may call by IRI: those of places, and those of the user."""

from __future__ import annotations

from functools import lru_cache

from spaseq.expr.extension import Function, registered
from spaseq.expr.places import PLACE_FUNCTIONS


def known_functions() -> tuple[Function, ...]:
    """All functions, by IRI; a function of the user takes the place of another one."""
    return _with_those_of_places(registered())


@lru_cache(maxsize=1)
def _with_those_of_places(functions: tuple[Function, ...]) -> tuple[Function, ...]:
    every = {**PLACE_FUNCTIONS, **{function.iri: function for function in functions}}
    return tuple(every[iri] for iri in sorted(every))
