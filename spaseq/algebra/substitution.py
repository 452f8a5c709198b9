"""Substitution of bindings into a pattern, and when joining a pattern with bindings afterwards is
the same.

Most patterns are evaluated alone, and their solutions are joined with the bindings of earlier
steps; `sensitive` and `core` say when the join gives the same solutions as the substitution.

A graph pattern has the bindings of earlier steps substituted into it
(docs/meaning.md#known-variables), and SPARQL 1.1 section 18.6 substitutes the bindings of a
solution into the pattern of EXISTS. SPARQL does not define this for variables in places where a
term cannot stand. Here a substituted variable *keeps its name and has its value*:

- In triple patterns, property paths and after GRAPH it stands for its value, also inside OPTIONAL,
  MINUS, UNION and EXISTS. Each such pattern binds it, so MINUS shares it if it is in scope on both
  sides. A path of length zero leads from a value to itself, even if the graph does not have it.
- In expressions it has its value, whether or not it is in scope of the FILTER's group.
- BIND(... AS ?x) and VALUES give the solutions that agree with its value, by term; where BIND fails
  or VALUES says UNDEF, it is the value.
- The variables that a sub-SELECT does not project are other variables, and are not substituted.
  ORDER BY, LIMIT and aggregates come afterwards.
- SERVICE gets the values, without blank nodes, and is joined with all of them.
- A value that cannot stand in its place (a literal as a subject) matches nothing.

Where a variable has no value yet, the pattern is evaluated as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from spaseq.algebra import nodes as n
from spaseq.algebra.groups import conjoined
from spaseq.algebra.nodes import certain, expressions, mapped, possible, term_variables
from spaseq.lang import ast
from spaseq.lang.variables import (
    conjuncts,
    exists_uses,
    expression_variables,
    looks_back,
    rewritten,
    variables_of,
)

Values = Mapping[str, str | None]
"""Terms by variable; None is a term that is known only when the pattern is evaluated."""

Deferred = tuple[ast.Expr, ...]


def substituted(pattern: n.Pattern, values: Values) -> n.Pattern:
    """The pattern with values substituted; its solutions bind the variables in scope to them.

    >>> bgp = n.BGP((n.TriplePattern(ast.Var("x"), "<http://e/p>", ast.Var("y")),))
    >>> print(substituted(bgp, {"x": "<http://e/a>"}).left.triples[0].subject)
    <http://e/a>
    """
    if not values:
        return pattern
    match pattern:
        case n.BGP(triples):
            ground = n.BGP(tuple(_triple(t, values) for t in triples))
            return _knowing(ground, values, possible(pattern))
        case n.Path(subject, path, object_):
            inner = n.Path(_term(subject, values), path, _term(object_, values))
            return _knowing(inner, values, possible(pattern))
        case n.Graph(name, inner):
            known = term_variables(name)
            return _knowing(n.Graph(_name(name, values), substituted(inner, values)), values, known)
        case n.Table(variables) | n.EventName(variables=variables):
            return _knowing(pattern, values, variables)
        case n.Service(name, inner, silent):
            # A query to an endpoint cannot name a blank node.
            sent = {v: t for v, t in values.items() if t is None or t[0] != "_"}
            service = n.Service(_name(name, sent), substituted(inner, sent), silent)
            return _knowing(service, values, possible(pattern))
        case n.Project(inner, variables):
            shown = {v: t for v, t in values.items() if v in variables or n.is_reserved(v)}
            return n.Project(substituted(inner, shown), variables)
        case n.Extend(inner, variable):
            replaced = _with_expressions(pattern, values)
            return _knowing(replaced, values, (variable,))
        case _:
            return _with_expressions(pattern, values)


def given(pattern: n.Pattern, names: Iterable[str]) -> n.Pattern | None:
    """The pattern with values that are given when it is evaluated; None if a GRAPH prevents that.

    >>> bgp = n.BGP((n.TriplePattern(ast.Var("x"), "<http://e/p>", ast.Var("y")),))
    >>> given(bgp, ["x"]) == n.Join(bgp, n.Given(("x",)))
    True
    """
    return _outside_graphs(substituted(pattern, dict.fromkeys(names)))


def _outside_graphs(pattern: n.Pattern) -> n.Pattern | None:
    """The pattern with GRAPH around triple patterns only, where it is around values given later."""
    if isinstance(pattern, n.Join) and isinstance(pattern.left, n.Path):
        return _from_itself(pattern.left, pattern)
    if isinstance(pattern, n.Graph):
        if not _has_given(pattern.pattern):
            return pattern
        inner = _outside_graphs(pattern.pattern)
        is_constant = isinstance(pattern.name, str)
        return None if inner is None or not is_constant else _in_graph(pattern.name, inner)
    return _with_operands(pattern, _outside_graphs)


def _from_itself(path: n.Path, joined: n.Join) -> n.Pattern:
    """The path joined with values given later, and the path of length zero from such a value.

    A path with a constant at one end already finds the path of length zero from the constant.
    """
    names = possible(path)
    if not isinstance(joined.right, n.Given) or not _may_be_empty(path.path):
        return joined
    if any(isinstance(term, str) for term in (path.subject, path.object)):
        return joined
    first = min(names & possible(joined.right))
    itself: n.Pattern = n.Given((first,))
    for other in names - {first}:
        itself = n.Extend(itself, other, ast.Var(first))
    return n.Distinct(n.Union(joined, n.Join(itself, joined.right)))


def _has_given(pattern: n.Pattern) -> bool:
    return isinstance(pattern, n.Given) or any(map(_has_given, n.children(pattern)))


def _in_graph(name: n.PatternTerm, pattern: n.Pattern) -> n.Pattern | None:
    """The pattern with its triple patterns in a graph; None if it has EXISTS."""
    match pattern:
        case n.BGP() | n.Path():
            return n.Graph(name, pattern)
        case n.Graph() | n.Given() | n.Table():
            return pattern
    if any(map(exists_uses, expressions(pattern))):
        return None
    return _with_operands(pattern, lambda operand: _in_graph(name, operand))


def _with_operands(
    pattern: n.Pattern, change: Callable[[n.Pattern], n.Pattern | None]
) -> n.Pattern | None:
    """The pattern with its operands changed; None if one of them cannot be."""
    changed = [change(operand) for operand in n.children(pattern)]
    operands = iter([operand for operand in changed if operand is not None])
    return None if None in changed else mapped(pattern, lambda _: next(operands))


def mentions(expr: ast.Expr) -> frozenset[str]:
    """The variables in an expression, and in the patterns of its EXISTS."""
    inner = (variables_of(use.pattern) for use in exists_uses(expr))
    return expression_variables(expr).union(*inner)


def _with_expressions(pattern: n.Pattern, values: Values) -> n.Pattern:
    """An inner node with its operands substituted, whose expressions see the values."""
    read = frozenset[str]().union(*map(mentions, expressions(pattern)))
    changed = mapped(pattern, lambda operand: substituted(operand, values))
    hidden = read & values.keys() - certain(changed)
    match changed:
        case n.LeftJoin(left, right, expr):
            changed = n.LeftJoin(left, _knowing(right, values, hidden), expr)
        case n.Filter() | n.Extend() | n.OrderBy() | n.Group():
            changed = mapped(changed, lambda operand: _knowing(operand, values, hidden))
    extra = hidden - possible(pattern)
    return n.Project(changed, tuple(sorted(possible(pattern)))) if extra else changed


def _knowing(pattern: n.Pattern, values: Values, names: Iterable[str]) -> n.Pattern:
    """The pattern joined with the values of some variables."""
    known = tuple(sorted(set(names) & values.keys()))
    if not known:
        return pattern
    row = tuple(values[v] for v in known)
    return n.Join(pattern, n.Given(known) if None in row else n.Table(known, (row,)))


def _triple(triple: n.TriplePattern, values: Values) -> n.TriplePattern:
    return n.TriplePattern(*(_term(t, values) for t in triple.terms))


def _term(term: n.PatternTerm, values: Values) -> n.PatternTerm:
    if not isinstance(term, ast.Var):
        return term
    value = values.get(term.name)
    return term if value is None else value


def _name(name: n.PatternTerm, values: Values) -> n.PatternTerm:
    """A graph's name. A value that is no IRI names no graph: the join with it is empty."""
    value = _term(name, values)
    return value if isinstance(value, ast.Var) or value[0] == "<" else name


def lifted(pattern: n.Pattern) -> tuple[n.Pattern, Deferred]:
    """The pattern without the FILTER conjuncts over earlier steps, and these conjuncts.

    They mention a variable not in scope of their group, or use PREV, TIMESTAMP, NOW or an
    aggregate. They are at places where a FILTER commutes with all patterns around it.
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
        case n.Graph(name) | n.Service(name, silent=False):
            return _out_of_source(pattern, outside | term_variables(name))
        case n.EventBlock():
            return _out_of_source(pattern, outside)
        case _:
            return pattern, ()


def _out_of_source(
    pattern: n.Graph | n.Service | n.EventBlock, outside: frozenset[str]
) -> tuple[n.Pattern, Deferred]:
    """`lifted`, of a pattern over another graph, into which its EXISTS look."""
    inner, deferred = _lifted(pattern.pattern, outside)
    if any(map(exists_uses, deferred)):
        if not isinstance(pattern, n.Graph) or not isinstance(pattern.name, str):
            return pattern, ()
        deferred = tuple(_in_its_graph(expr, pattern.name) for expr in deferred)
    return mapped(pattern, lambda _: inner), deferred


def _in_its_graph(expr: ast.Expr, name: str) -> ast.Expr:
    """An expression of a GRAPH, for use outside."""

    def within(node: ast.Node) -> ast.Node | None:
        if not isinstance(node, ast.Exists):
            return None
        graph = ast.GraphGraphPattern(ast.Iri(name[1:-1]), node.pattern)
        return replace(node, pattern=ast.GroupGraphPattern((graph,)))

    return rewritten(expr, within)


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
    read = frozenset[str]().union(*map(mentions, expressions(pattern)))
    match pattern:
        case n.LeftJoin(left, right):
            return inside | ((possible(right) | read) - certain(left))
        case n.Minus(left, right):
            return inside | (possible(right) - certain(left))
        case n.Filter(pattern=inner) | n.Extend(inner) | n.OrderBy(inner):
            return inside | (read - certain(inner))
        case n.Project(inner, variables) | n.Group(inner, variables):
            known = inside | (read - certain(inner))
            return frozenset(v for v in known if v in variables or n.is_parameter(v))
        case n.Slice(inner):
            return inside | possible(inner)
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
