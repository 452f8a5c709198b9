"""Closures that read the environment: variables, PREV, TIMESTAMP, NOW, extension calls.

Also the two functions that need more than their arguments: IRI (the base) and BNODE (the solution).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b
from operator import methodcaller
from typing import TypeAlias, TypeVar

from spaseq.expr.env import BlankNodeScope, Env, ExpressionError
from spaseq.expr.extension import Function
from spaseq.expr.functions.rdf_terms import fresh_blank_node
from spaseq.expr.functions.strings import simple
from spaseq.expr.numbers import write_integer
from spaseq.expr.values import BlankNodeValue, IriValue, Value, decode
from spaseq.lang import ast
from spaseq.lang.iris import is_absolute, resolve
from spaseq.lang.variables import rewritten, walk
from spaseq.rdf.terms.term import literal_text
from spaseq.records import record

OF_SOLUTION = "BNODE of"
"""The function of a label and a solution that `with_solution` writes. No query can call it."""


def makes_labelled_nodes(expr: ast.Expr) -> bool:
    """Whether an expression calls BNODE with a label, outside the patterns of EXISTS."""
    return any(isinstance(n, ast.Call) and n.function == "BNODE" and n.args for n in walk(expr))


def with_solution(expr: ast.Expr, variable: str) -> ast.Expr:
    """The expression with `variable`, which differs by solution, added to each BNODE(label)."""

    def changed(node: ast.Node) -> ast.Node | None:
        match node:
            case ast.Call("BNODE", (label,)):
                return ast.Call(OF_SOLUTION, (rewritten(label, changed), ast.Var(variable)))
        return None

    return rewritten(expr, changed)


R = TypeVar("R")
ValueOf: TypeAlias = Callable[[Env], Value]
TermOf: TypeAlias = Callable[[Env], str]
TermOrNone: TypeAlias = Callable[[Env], str | None]
"""Returns None for an evaluation error."""

_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')


@record
class Element:
    """The bindings of `outer` with a group variable bound to one of its values."""

    outer: Env
    name: str
    element: str

    def value(self, name: str) -> str | None:
        return self.element if name == self.name else self.outer.value(name)

    def previous(self, name: str) -> str | None:
        return self.outer.previous(name)

    def group(self, name: str) -> Sequence[str]:
        return self.outer.group(name)

    def time(self, gpm: str) -> int | None:
        return self.outer.time(gpm)

    def now(self) -> int | None:
        return self.outer.now()


def decoded(term: TermOf) -> ValueOf:
    """The value of a compiled term."""
    return lambda env: decode(term(env))


def none_on_error(term: TermOf) -> TermOrNone:
    """A compiled term with None in place of an evaluation error."""

    def run(env: Env) -> str | None:
        try:
            return term(env)
        except ExpressionError:
            return None

    return run


def derived_integer(value: ValueOf, datatype: str) -> TermOf:
    """An integer value as a literal of a datatype that is derived from `xsd:integer`."""

    def run(env: Env) -> str:
        number = value(env)
        assert isinstance(number, int)
        return literal_text(write_integer(number), datatype)

    return run


def variable_term(name: str) -> TermOf:
    """The term of a variable; ExpressionError where it is unbound."""

    return _required(methodcaller("value", name), f"?{name} is unbound")


def variable_value(name: str) -> ValueOf:
    """The value of a variable; ExpressionError where it is unbound."""

    def run(env: Env) -> Value:
        if (term := env.value(name)) is not None:
            return decode(term)
        raise ExpressionError(f"?{name} is unbound")

    return run


def previous_term(name: str) -> TermOf:
    """The term of a variable in the repetition before; ExpressionError in the first one."""

    return _required(methodcaller("previous", name), f"?{name} has no previous value")


def event_time(gpm: str) -> Callable[[Env], int]:
    """The time (ms) of the last event of a GPM; ExpressionError where there is none."""

    return _required(methodcaller("time", gpm), f"{gpm} has no event")


def now() -> Callable[[Env], int]:
    """The time (ms) of `NOW()`; ExpressionError where there is neither an event nor a match."""

    return _required(methodcaller("now"), "NOW() has no event")


def _required(read: Callable[[Env], R | None], error: str) -> Callable[[Env], R]:
    """`read`, but raising ExpressionError with the message `error` instead of returning None."""

    def run(env: Env) -> R:
        result = read(env)
        if result is None:
            raise ExpressionError(error)
        return result

    return run


def iri_function(operand: ValueOf, base: str | None) -> ValueOf:
    """IRI(text): an absolute IRI, or one relative to the base if there is a base."""

    def run(env: Env) -> Value:
        value = operand(env)
        if isinstance(value, IriValue):
            return value
        reference = simple(value)
        if _NOT_IN_IRI.search(reference):
            raise ExpressionError("not an IRI")
        if base is None and not is_absolute(reference):
            raise ExpressionError("a relative IRI without a base")
        return IriValue(resolve(reference, base or ""))

    return run


def blank_node_function(operand: ValueOf) -> ValueOf:
    """BNODE(label): one node per label and solution, if the environment is a `BlankNodeScope`."""

    def run(env: Env) -> Value:
        label = simple(operand(env))
        if isinstance(env, BlankNodeScope):
            return decode(env.blank_node(label))
        return fresh_blank_node()

    return run


def labelled_node_function(operand: ValueOf, solution: TermOf) -> ValueOf:
    """BNODE(label): one node per label and term of `solution`, which differs by solution."""

    def run(env: Env) -> Value:
        key = f"{solution(env)}{simple(operand(env))}".encode()
        return BlankNodeValue("f" + blake2b(key, digest_size=16).hexdigest())

    return run


def extension_call(function: Function, terms: Sequence[TermOf]) -> TermOf:
    """A call of an extension function."""
    return lambda env: function([term(env) for term in terms])
