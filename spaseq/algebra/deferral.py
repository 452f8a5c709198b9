"""When joining a pattern with bindings afterwards is the same as substituting them into it.

Most patterns are evaluated alone, and their solutions are joined with the bindings of earlier
steps. `spaseq.algebra.substitution` defines the solutions; this module says when the join gives
the same ones.
"""

from __future__ import annotations

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjoined
from spaseq.algebra.scope import certain, possible, term_variables
from spaseq.algebra.substitution import mentions
from spaseq.lang import ast
from spaseq.lang.variables import conjuncts, expression_variables, looks_back

Deferred = tuple[ast.Expr, ...]


def lifted(pattern: n.Pattern) -> tuple[n.Pattern, Deferred]:
    """The pattern without the FILTER conjuncts that look at earlier steps, and these conjuncts.

    They mention a variable not in scope of their group, or use PREV, TIMESTAMP, NOW or an
    aggregate. They stand where a FILTER commutes with all patterns around it.
    """
    return _lifted(pattern, frozenset())


def _lifted(pattern: n.Pattern, outside: frozenset[str]) -> tuple[n.Pattern, Deferred]:
    """`lifted`, where the patterns around this one may bind the variables `outside`."""
    match pattern:
        case n.Filter(expr, inner):
            return _split_filter(expr, inner, outside)
        case n.Join(left, right):
            left_found, first = _lifted(left, outside | possible(right))
            right_found, second = _lifted(right, outside | possible(left))
            return n.Join(left_found, right_found), first + second
        case n.LeftJoin(left, right, expr):
            left, deferred = _lifted(left, outside | possible(right))
            return n.LeftJoin(left, right, expr), deferred
        case n.Minus(left, right):
            left, deferred = _lifted(left, outside)
            return n.Minus(left, right), deferred
        case n.Extend(inner, variable, expr):
            inner, deferred = _lifted(inner, outside | {variable})
            return n.Extend(inner, variable, expr), deferred
        case n.Graph(name, inner):
            inner, deferred = _lifted(inner, outside | term_variables(name))
            return n.Graph(name, inner), deferred
        case n.Service(name, inner, False):
            inner, deferred = _lifted(inner, outside | term_variables(name))
            return n.Service(name, inner), deferred
        case _:
            return pattern, ()


def _split_filter(
    expr: ast.Expr, inner: n.Pattern, outside: frozenset[str]
) -> tuple[n.Pattern, Deferred]:
    scope, sure = possible(inner), certain(inner)
    inner, deferred = _lifted(inner, outside)
    local: list[ast.Expr] = []
    back: list[ast.Expr] = []
    for part in conjuncts([expr]):
        names = expression_variables(part)
        here = names <= scope and not looks_back(part)
        stays = here or not names & outside <= sure
        (local if stays else back).append(part)
    kept = conjoined(local)
    pattern = inner if kept is None else n.Filter(kept, inner)
    return pattern, deferred + tuple(back)


def sensitive(pattern: n.Pattern) -> frozenset[str]:
    """Variables whose value must be substituted: joining with it afterwards is not the same."""
    inside = frozenset[str]().union(*map(sensitive, n.children(pattern)))
    match pattern:
        case n.LeftJoin(left, right, expr):
            mentioned = possible(right) | (mentions(expr) if expr else frozenset())
            return inside | (mentioned - certain(left))
        case n.Minus(left, right):
            return inside | (possible(right) - certain(left))
        case n.Filter(expr, inner) | n.Extend(inner, _, expr):
            return inside | (mentions(expr) - certain(inner))
        case n.Project(_, variables) | n.Group(_, variables):
            return frozenset(v for v in inside if v in variables or n.is_parameter(v))
        case n.Slice(inner):
            return possible(inner)
        case n.Path(path=path) if _may_be_empty(path):
            return possible(pattern)
        case n.Service(name):
            return inside | term_variables(name)
        case _:
            return inside


def _may_be_empty(path: ast.Path) -> bool:
    match path:
        case ast.PathRepeat(inner, modifier):
            return modifier != "+" or _may_be_empty(inner)
        case ast.PathSequence(parts):
            return all(map(_may_be_empty, parts))
        case ast.PathAlternative(parts):
            return any(map(_may_be_empty, parts))
        case ast.PathInverse(inner) | ast.PathFromNode(inner):
            return _may_be_empty(inner)
        case _:
            return False


def core(pattern: n.Pattern) -> n.Pattern:
    """The part of a pattern that must match, whatever values are substituted into the pattern.

    For every solution, with any values, the core has a solution over the event alone. The two agree
    on all variables that the core certainly binds.
    """
    match pattern:
        case n.Filter(pattern=inner) | n.LeftJoin(inner) | n.Minus(inner) | n.Extend(inner):
            return core(inner)
        case n.OrderBy(inner) | n.Slice(inner) | n.Distinct(inner):
            return core(inner)
        case n.Join(left, right):
            return n.Join(core(left), core(right))
        case n.Union(left, right):
            return n.Union(core(left), core(right))
        case n.Graph(name, inner):
            return n.Graph(name, core(inner))
        case n.EventBlock(inner, stream, number):
            return n.EventBlock(core(inner), stream, number)
        case n.Project(inner, variables):
            return n.Project(core(inner), variables)
        case n.Group(inner, keys):
            return n.Project(core(inner), keys) if keys else n.UNIT
        case n.Path(path=path) if _may_be_empty(path):
            return n.UNIT
        case n.Service():
            return n.UNIT
        case _:
            return pattern
