"""The table of built-in functions, filled by the decorator `builtin`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Builtin:
    """One function of SPARQL 1.1 section 17.4.

    `run` gets values, or N-Triples texts if `takes_terms`, and gives a value, or an N-Triples text
    if `gives_term`; it raises ExpressionError where the specification has an error. `volatile`
    functions give another result on each call.
    """

    name: str
    minimum: int
    maximum: int | None  # None: any number
    run: Callable[..., Any]
    takes_terms: bool = False
    gives_term: bool = False
    volatile: bool = False

    def accepts(self, count: int) -> bool:
        """Whether the function may be called with so many arguments."""
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
    """Enter a function into `BUILTINS`; `maximum` is `minimum` unless given."""
    most = minimum if maximum == -1 else maximum

    def enter(run: F) -> F:
        BUILTINS[name] = Builtin(name, minimum, most, run, takes_terms, gives_term, volatile)
        return run

    return enter
