"""Functions called by IRI: the user's extension functions (SPARQL 1.1 section 17.6), and the
functions and set functions of GeoSPARQL.

GeoSPARQL's functions need the extra `geo`, which is imported when one is first called.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

from spaseq.errors import RunError, UsageError
from spaseq.expr.env import ExpressionError
from spaseq.expr.values import Value, encode
from spaseq.extras import missing
from spaseq.rdf.geosparql import AGGREGATE_IRIS, ARITIES, GEOF
from spaseq.rdf.terms.term import (
    XSD,
    XSD_DATE_TIME,
    Term,
    bnode_text,
    from_rdflib,
    iri_text,
    literal_text,
    split_literal,
)
from spaseq.rdf.terms.triple_terms import triple_term_parts, triple_term_text

F = TypeVar("F", bound=Callable[..., Any])
Arguments = Literal["values", "terms"]

_DATA_ERRORS = (ExpressionError, ValueError, TypeError, ArithmeticError, LookupError)


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A registered function; `function` documents its arguments."""

    iri: str
    run: Callable[..., Any]
    arguments: Arguments = "values"
    vectorised: bool = False

    def accepts(self, count: int) -> bool:
        """Whether it can be called with a number of arguments."""
        try:
            inspect.signature(self.run).bind(*range(count))
        except TypeError:
            return False
        except ValueError:  # a function written in C has no signature
            return True
        return True

    def problem(self) -> str | None:
        """Why it cannot be called here, None if it can."""
        return None

    def __call__(self, terms: Sequence[str]) -> str:
        """The result as canonical N-Triples text, given the arguments as such texts.

        Raises:
            ExpressionError: the call is an error in the sense of SPARQL.
            RunError: the function failed.
        """
        if self.vectorised:
            (text,) = self.column([terms])
            if text is None:
                raise ExpressionError(f"<{self.iri}> has no result")
            return text
        arguments = [self._argument(term) for term in terms]
        try:
            return _text(self.run(*arguments))
        except _DATA_ERRORS as error:
            raise ExpressionError(str(error)) from error
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error

    def column(self, rows: Sequence[Sequence[str]]) -> list[str | None]:
        """The results of a vectorised function for n rows of arguments, in one call."""
        if not rows:
            return []
        columns = [[self._argument(term) for term in column] for column in zip(*rows, strict=True)]
        try:
            results = list(self.run(*columns))
        except (Exception, SystemExit) as error:
            raise self._failure(error) from error
        if columns and len(results) != len(rows):
            counts = f"{len(results)} results for {len(rows)} rows"
            raise RunError(f"the function <{self.iri}> gave {counts}")
        return [_text_or_none(result) for result in results]

    def _argument(self, term: str) -> Any:
        known = Term(term)
        if self.arguments == "terms" or known.kind != "literal":
            return known
        return known.to_python()

    def _failure(self, error: BaseException) -> RunError:
        return RunError(f"the function <{self.iri}> failed: {type(error).__name__}: {error}")


_functions: dict[str, Function] = {}


def function(
    iri: str, *, arguments: Arguments = "values", vectorised: bool = False
) -> Callable[[F], F]:
    """Register a Python function that queries call as `<iri>(...)`, or by a prefixed name.

    Queries that are compiled later can call it. A second registration of an IRI replaces the first.
    The function is called once for each distinct combination of arguments, at any time and in any
    process, so its result must depend on its arguments alone.

    Args:
        iri: absolute IRI of the function.
        arguments: "values" gives literals as Python values (`Term.to_python`), and IRIs and blank
            nodes as `Term`; "terms" gives every argument as `Term`.
        vectorised: the function takes a list of n values per parameter, and returns n results.

    A result is a Term, a str, int, float, Decimal, bool, datetime, date, numpy scalar or rdflib
    term. None is an error in the sense of SPARQL: a FILTER fails, BIND leaves its variable unbound.
    So is a ValueError, TypeError, ArithmeticError or LookupError, unless the function is
    vectorised. Any other exception ends the run.

    >>> @function("http://example/f#double")
    ... def double(x: float) -> float:
    ...     return 2 * x

    Raises:
        UsageError: the IRI is not absolute, or the object cannot be called.
    """
    if not isinstance(iri, str):
        raise UsageError("a function needs an IRI: @spaseq.function('http://...')")
    if ":" not in iri or any(c in iri for c in ' <>"'):
        raise UsageError(f"{iri!r} is not an absolute IRI")

    def enter(run: F) -> F:
        if not callable(run):
            raise UsageError(f"<{iri}>: a {type(run).__name__} cannot be called")
        _functions[iri] = Function(iri, run, arguments, vectorised)
        return run

    return enter


def unregister(iri: str) -> None:
    """Remove a function; no error if there is none."""
    _functions.pop(iri, None)


def registered() -> tuple[Function, ...]:
    """The user's functions, by IRI."""
    return tuple(_functions[iri] for iri in sorted(_functions))


# --- modules with functions -----------------------------------------------------------------------

_from_files: dict[str, ModuleType] = {}


def load_functions(place: str) -> None:
    """Import a module that registers functions, by name or by the path of a `.py` file.

    Raises:
        UsageError: the module does not exist, fails, or registers nothing.
    """
    before = dict(_functions)
    try:
        if place.endswith(".py"):
            _load_file(Path(place))
        else:
            importlib.import_module(place)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UsageError(f"cannot load functions from {place}: {reason}") from error
    if not any(f.run.__module__ == place or f is not before.get(i) for i, f in _functions.items()):
        raise UsageError(f"{place} registers no function: decorate one with @spaseq.function(IRI)")


def _load_file(path: Path) -> None:
    digest = blake2b(str(path.absolute()).encode(), digest_size=4).hexdigest()
    name = f"{path.stem}_{digest}"  # so that no other module has the name
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = _from_files[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def modules_from_files() -> list[ModuleType]:
    """The modules that `load_functions` loaded from files; no other process can import them."""
    return list(_from_files.values())


# --- results --------------------------------------------------------------------------------------


def _text_or_none(result: object) -> str | None:
    try:
        return _text(result)
    except _DATA_ERRORS:
        return None


def _text(result: Any) -> str:
    """The canonical text of a function's result."""
    match result:
        case None:
            raise ExpressionError("no result")
        case Term():
            return _canonical(result)
        case bool() | int() | float() | Decimal():
            return encode(_plain(result))
        case datetime():
            return literal_text(result.isoformat().replace("+00:00", "Z"), XSD_DATE_TIME)
        case date():
            return literal_text(result.isoformat(), XSD + "date")
    if hasattr(result, "n3"):  # rdflib's terms, some of which are also strings
        return from_rdflib(result)
    if isinstance(result, str):
        return literal_text(result)
    if hasattr(result, "item"):  # a numpy scalar
        return _text(result.item())
    raise ExpressionError(f"a {type(result).__name__} is not an RDF term")


def _plain(number: bool | float | Decimal) -> Value:
    """The number as a value of the built-in type, without a subclass such as numpy's."""
    return next(t(number) for t in (bool, int, float, Decimal) if isinstance(number, t))


def _canonical(term: Term) -> str:
    match term.kind:
        case "iri":
            return iri_text(term[1:-1])
        case "bnode":
            return bnode_text(term[2:])
        case "triple":
            return triple_term_text(*(_canonical(Term(t)) for t in triple_term_parts(term)))
        case _:
            return literal_text(*split_literal(term))


@dataclass(frozen=True, slots=True, eq=False)
class PlaceFunction(Function):
    """A function of GeoSPARQL."""

    def accepts(self, count: int) -> bool:
        least, most = ARITIES[self.iri.removeprefix(GEOF)]
        return least <= count <= most

    def problem(self) -> str | None:
        lacks = missing("geo")
        return f"functions of places need {lacks}" if lacks else None

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
