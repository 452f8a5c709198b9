"""All functions that queries may call by IRI: the functions and set functions of GeoSPARQL, and the
user's extension functions.

GeoSPARQL's functions need the extra `geo`, which is imported when one is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from spaseq.errors import RunError
from spaseq.expr.env import ExpressionError
from spaseq.expr.extension import Function, registered
from spaseq.expr.values import encode
from spaseq.places.vocabulary import AGGREGATE_IRIS, ARITIES, GEOF, MISSING, is_installed


@dataclass(frozen=True, slots=True, eq=False)
class PlaceFunction(Function):
    """A function of GeoSPARQL."""

    def accepts(self, count: int) -> bool:
        least, most = ARITIES[self.iri.removeprefix(GEOF)]
        return least <= count <= most

    def problem(self) -> str | None:
        return None if is_installed() else MISSING

    def column(self, rows: Sequence[Sequence[str]]) -> list[str | None]:
        from spaseq.places import operations

        try:
            results = operations.results(self.iri.removeprefix(GEOF), rows)
        except Exception as error:
            raise RunError(f"<{self.iri}> failed: {type(error).__name__}: {error}") from error
        return [
            result if result is None or isinstance(result, str) else encode(result)
            for result in results
        ]


def _not_run(*_: object) -> None:
    raise NotImplementedError


PLACE_FUNCTIONS: Mapping[str, Function] = {
    GEOF + name: PlaceFunction(GEOF + name, _not_run, "terms", True) for name in ARITIES
}
"""By IRI."""


def place_aggregate(iri: str) -> Callable[[Sequence[str | None]], str] | None:
    """The set function of an IRI, None if it is no function of places.

    Its result is an error if an operand is one or is no geometry, and if there is none.
    """
    if iri not in AGGREGATE_IRIS:
        return None

    def combine(elements: Sequence[str | None]) -> str:
        from spaseq.places import operations

        terms = [element for element in elements if element is not None]
        if len(terms) < len(elements):
            raise ExpressionError("a value of the aggregate is an error")
        try:
            return operations.combined(iri.removeprefix(GEOF), terms)
        except ValueError as error:
            raise ExpressionError(str(error)) from error

    return combine


def known_functions() -> tuple[Function, ...]:
    """All functions, by IRI; a function of the user takes the place of another one."""
    return _with_those_of_places(registered())


@lru_cache(maxsize=1)
def _with_those_of_places(functions: tuple[Function, ...]) -> tuple[Function, ...]:
    every = {**PLACE_FUNCTIONS, **{function.iri: function for function in functions}}
    return tuple(every[iri] for iri in sorted(every))
