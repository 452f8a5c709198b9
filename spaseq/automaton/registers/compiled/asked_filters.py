"""FILTERs between steps as asked tests, which Python answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from spaseq.automaton.program.bound_variables import EVENT_TIME, last_time
from spaseq.automaton.program.gpm_columns import GpmColumns
from spaseq.automaton.registers.compiled.edge_tests import AskedTest, Number
from spaseq.expr.uses import timestamp_uses
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, expression_variables, is_now, walk


def asked_test(conditions: Sequence[ast.Expr], gpm: GpmColumns, known: frozenset[str]) -> AskedTest:
    """The asked test of a GPM's FILTERs; `known` are the variables that the run may have."""
    nodes = [node for condition in conditions for node in walk(condition)]
    read = {node.name for node in nodes if isinstance(node, ast.Var)}
    before = {node.var.name for node in nodes if isinstance(node, ast.Prev)}
    timed = {last_time(name) for c in conditions for name in timestamp_uses(c)}
    of_own = [Number(v, by_term=True) for v in gpm.variables if v in read]
    if any(map(is_now, nodes)):
        of_own.append(Number(EVENT_TIME, offset_ms=0))
    of_run = [Number(v, by_term=True) for v in sorted((read - gpm.certain | before) & known)]
    of_run += [Number(name, offset_ms=0) for name in sorted(timed & known)]
    return AskedTest(tuple(conditions), tuple(of_own), tuple(of_run))


def late_test(conditions: Sequence[ast.Expr], gpm: GpmColumns, taken: tuple[int, int]) -> AskedTest:
    """The asked test of the late FILTERs of an edge that takes a solution of a GPM."""
    test = asked_test(conditions, gpm, frozenset())
    time = Number(EVENT_TIME, offset_ms=0)
    own = test.of_own if time in test.of_own else (*test.of_own, time)
    return replace(test, of_own=own, taken=taken, late=True)


def with_asked(gpms: Sequence[GpmColumns], variables: frozenset[str]) -> list[GpmColumns]:
    """The GPMs with FILTERs on some variables in a form that no edge test has."""

    def asked(condition: ast.Expr) -> ast.Expr:
        is_other = expression_variables(condition).isdisjoint(variables)
        return condition if is_other else ast.Not(ast.Not(condition))

    return [replace(g, conditions=tuple(map(asked, conjuncts(g.conditions)))) for g in gpms]
