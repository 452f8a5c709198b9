"""Extension functions: user functions called by IRI (SPARQL 1.1 section 17.6)."""

from __future__ import annotations

from collections.abc import Callable

ExtensionFunction = Callable[..., str | None]
"""Takes the arguments and gives the result as canonical N-Triples texts. None, ExpressionError,
ValueError, TypeError and ArithmeticError are evaluation errors; anything else ends the run."""

_functions: dict[str, ExtensionFunction] = {}


def register(iri: str, function: ExtensionFunction) -> None:
    """Make `function` callable in queries as `<iri>(...)`; a later registration replaces it."""
    _functions[iri] = function


def unregister(iri: str) -> None:
    """Forget a function; no error if it is not known."""
    _functions.pop(iri, None)


def lookup(iri: str) -> ExtensionFunction | None:
    """The function registered under an IRI, or None."""
    return _functions.get(iri)
