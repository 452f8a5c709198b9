"""Closures for three-valued logic, IF, COALESCE and IN (SPARQL 1.1 section 17.4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from spaseq.expr.env import Env, ExpressionError
from spaseq.expr.operators import equal
from spaseq.expr.values import Value

R = TypeVar("R")
Test: TypeAlias = Callable[[Env], bool]
ValueOf: TypeAlias = Callable[[Env], Value]


def conjunction(tests: Sequence[Test]) -> Test:
    """`&&`: false if an operand is false, else an error if an operand is an error, else true."""
    return _connective(tests, decisive=False)


def disjunction(tests: Sequence[Test]) -> Test:
    """`||`: true if an operand is true, else an error if an operand is an error, else false."""
    return _connective(tests, decisive=True)


def _connective(tests: Sequence[Test], decisive: bool) -> Test:
    def run(env: Env) -> bool:
        failure = None
        for test in tests:
            try:
                if test(env) is decisive:
                    return decisive
            except ExpressionError as error:
                failure = error
        if failure is not None:
            raise failure
        return not decisive

    return run


def negation(test: Test) -> Test:
    """`!`: an error stays an error."""
    return lambda env: not test(env)


def conditional(
    test: Test, then: Callable[[Env], R], otherwise: Callable[[Env], R]
) -> Callable[[Env], R]:
    """IF: it evaluates only one of the branches."""
    return lambda env: then(env) if test(env) else otherwise(env)


def coalescence(operands: Sequence[Callable[[Env], R]]) -> Callable[[Env], R]:
    """COALESCE: the first operand without an error."""

    def run(env: Env) -> R:
        for operand in operands:
            try:
                return operand(env)
            except ExpressionError:
                continue
        raise ExpressionError("every operand of COALESCE is an error")

    return run


def membership(operand: ValueOf, options: Sequence[ValueOf]) -> Test:
    """IN: true if an option is equal, else an error if a comparison is an error, else false."""

    def run(env: Env) -> bool:
        value = operand(env)
        failure = None
        for option in options:
            try:
                if equal(value, option(env)):
                    return True
            except ExpressionError as error:
                failure = error
        if failure is not None:
            raise failure
        return False

    return run
