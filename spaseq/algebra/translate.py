"""A GPM as algebra: a pattern over one event, and the FILTERs over earlier steps.

*Correlated* GPMs can be evaluated only with the bindings of earlier steps. For most GPMs, joining
with these bindings and testing FILTERs afterwards is the same as substituting the bindings. Where
it is not, stage 1 evaluates only the core of the pattern, and passes on each event with a solution.
Stage 2 evaluates the pattern when the sequence takes the event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.entailment import entailed
from spaseq.algebra.groups import conjoined, translate_group
from spaseq.algebra.nodes import certain, expressions, mapped, possible, visible, with_expressions
from spaseq.algebra.substitution import Deferred, core, lifted, sensitive
from spaseq.lang import ast
from spaseq.lang.variables import (
    exists_uses,
    expression_variables,
    group_function_uses,
    now_uses,
    prev_uses,
    rewritten,
    timestamp_uses,
    variables_of,
)
from spaseq.rdf.schema import Schema
from spaseq.records import record

EVENT = n.RESERVED + "event"
"""The variable that holds the event of a correlated GPM's solution, as a literal."""

LookBack = ast.Prev | ast.Timestamp | ast.Aggregate | ast.Call


@record
class Correlation:
    """The evaluation of a GPM when the sequence takes an event.

    An event must match `core`, whatever the bindings. The values of the variables `reads` are
    substituted. `parameters` are variables for PREV, TIMESTAMP, NOW and aggregates.
    """

    core: n.Pattern
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, ast.Expr], ...]
    reason: str


def why_correlated(pattern: n.Pattern, deferred: Deferred, elsewhere: frozenset[str]) -> str | None:
    """Why a GPM cannot be evaluated on its event alone; None if it can.

    `pattern` and `deferred` are the results of `lifted`; `elsewhere` are the variables that may
    have a value before.
    """
    hidden = sorted(visible(sensitive(pattern)) & elsewhere)
    if hidden:
        return f"what matches depends on the value that an earlier step gives ?{hidden[0]}"
    if next(_look_backs(pattern), None) is not None:
        return "PREV, TIMESTAMP, NOW or an aggregate stands where it cannot be tested afterwards"
    if any(exists_uses(expr) for expr in deferred):
        return "EXISTS stands in one condition with bindings of earlier steps"
    return None


AWAITED = "a request to SERVICE is sent only if a partial match awaits the event"


def asks(pattern: n.Pattern) -> bool:
    """Whether a pattern contains SERVICE outside of FILTERs."""
    return isinstance(pattern, n.Service) or any(map(asks, n.children(pattern)))


def correlate(
    pattern: n.Pattern, variables: frozenset[str], reason: str
) -> tuple[n.Pattern, Correlation]:
    """The pattern with variables for PREV, TIMESTAMP, NOW and aggregates, and its correlation.

    `variables` are all variables in the text of the GPM.
    """
    names: dict[LookBack, str] = {}

    def named(node: ast.Node) -> ast.Node | None:
        match node:
            case ast.SubSelect():  # the aggregates of a sub-SELECT do not look back
                return replace(rewritten(node, times), pattern=rewritten(node.pattern, named))
            case ast.Prev() | ast.Timestamp() | ast.Aggregate() | ast.Call("NOW", ()):
                return ast.Var(names.setdefault(node, n.parameter(len(names))))
        return None

    def times(node: ast.Node) -> ast.Node | None:
        return None if isinstance(node, ast.Aggregate | ast.SubSelect) else named(node)

    def change(node: n.Pattern) -> n.Pattern:
        return with_expressions(mapped(node, change), lambda e: rewritten(e, named))

    changed = change(pattern)
    parameters = tuple((name, node) for node, name in names.items())
    return changed, Correlation(core(changed), tuple(sorted(variables)), parameters, reason)


def _look_backs(pattern: n.Pattern) -> Iterator[ast.Node]:
    for expr in expressions(pattern):
        yield from (*prev_uses(expr), *timestamp_uses(expr), *group_function_uses(expr))
        yield from now_uses(expr)
        for use in exists_uses(expr):
            yield from _look_backs(translate_group(use.pattern))
    for inner in n.children(pattern):
        yield from _look_backs(inner)


@record
class GpmAlgebra:
    """One GPM.

    A GPM is evaluated with the bindings of earlier steps substituted into it
    (docs/meaning.md#known-variables, `spaseq.algebra.substitution`). For most GPMs that is the
    same as joining the solutions over the event alone with these bindings, and then testing the
    `deferred` expressions. For the others, `correlation` says how they are evaluated; only
    conditions on aggregates over their own solutions are deferred.
    """

    pattern: n.Pattern
    deferred: Deferred
    possible: frozenset[str]  # variables that a solution may bind
    certain: frozenset[str]  # variables that every solution over the event alone binds
    correlation: Correlation | None = None


def split_gpm(
    gpm: ast.Gpm,
    elsewhere: frozenset[str] = frozenset(),
    schema: Schema | None = None,
    awaited: bool = False,
) -> GpmAlgebra:
    """The algebra of a GPM, without the FILTER conjuncts over earlier steps.

    These conjuncts mention a variable not in scope of their group, or use PREV, TIMESTAMP or an
    aggregate. `elsewhere` are the variables that may have a value before the GPM is evaluated. The
    patterns are rewritten with `schema`. With `awaited`, a GPM that uses endpoints is correlated,
    unless it comes first in the sequence.
    """
    whole = entailed(translate_group(gpm.pattern), schema)
    pattern, deferred = lifted(whole)
    reason = why_correlated(pattern, deferred, elsewhere)
    if awaited and reason is None and elsewhere and asks(pattern):
        reason = AWAITED
    if reason is None:
        names = visible(possible(pattern)), visible(certain(pattern))
        return GpmAlgebra(pattern, deferred, *names)
    running = tuple(expr for expr in deferred if _counts_in(expr, possible(pattern)))
    if running:
        rest = conjoined([expr for expr in deferred if expr not in running])
        whole = pattern if rest is None else n.Filter(rest, pattern)
    pattern, how = correlate(whole, variables_of(gpm.pattern), reason)
    names = visible(possible(pattern)), visible(certain(how.core))
    return GpmAlgebra(pattern, running, *names, how)


def _counts_in(expr: ast.Expr, own: frozenset[str]) -> bool:
    """Whether an expression aggregates values of a GPM's own solution, too."""
    read = (expression_variables(use) for use in group_function_uses(expr))
    return not exists_uses(expr) and any(not own.isdisjoint(names) for names in read)


def membership_pattern(gpm: ast.Gpm, schema: Schema | None = None) -> n.Pattern:
    """The GPM's pattern without FILTERs, whose solutions decide the partitions of an event."""
    return entailed(without_filters(translate_group(gpm.pattern)), schema)


def without_filters(pattern: n.Pattern) -> n.Pattern:
    """The pattern with all FILTERs left out, at any depth (docs/meaning.md#partition)."""
    match pattern:
        case n.Filter(pattern=inner):
            return without_filters(inner)
        case n.LeftJoin(left, right):
            return n.LeftJoin(without_filters(left), without_filters(right))
        case _:
            return mapped(pattern, without_filters)
