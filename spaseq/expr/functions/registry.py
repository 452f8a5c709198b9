"""The table of built-in functions, filled by the decorator `builtin`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from spaseq.records import record

F = TypeVar("F", bound=Callable[..., Any])


@record
class Builtin:
    """One function of SPARQL 1.1 section 17.4.

    `run` takes values, or N-Triples texts if `takes_terms`. It returns a value, or an N-Triples
    text if `gives_term`, and raises ExpressionError where the specification has an error. A
    `volatile` function has another result on each call.
    """

    name: str
    minimum: int
    maximum: int | None  # None: any number
    run: Callable[..., Any]
    takes_terms: bool = False
    gives_term: bool = False
    volatile: bool = False

    def accepts(self, count: int) -> bool:
        """Whether the function takes this number of arguments."""
        return self.minimum <= count and (self.maximum is None or count <= self.maximum)


BUILTINS: dict[str, Builtin] = {}


def builtin(
    name: str,
    minimum: int,
    maximum: int | None = -1,
    *,
    takes_terms: bool = False,
    gives_term: bool = False,
    volatile: bool = False,
) -> Callable[[F], F]:
    """Register a function in `BUILTINS`; the default of `maximum` is `minimum`."""
    most = minimum if maximum == -1 else maximum

    def register(run: F) -> F:
        BUILTINS[name] = Builtin(name, minimum, most, run, takes_terms, gives_term, volatile)
        return run

    return register
