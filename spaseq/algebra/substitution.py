"""Substitution of bindings into a pattern.

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

from collections.abc import Iterable, Mapping

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import expressions, mapped
from spaseq.algebra.scope import certain, possible, term_variables
from spaseq.lang import ast
from spaseq.lang.variables import exists_uses, expression_variables, pattern_mentions

Values = Mapping[str, str]
"""Terms by variable."""


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
            sent = {v: t for v, t in values.items() if t[0] != "_"}
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


def mentions(expr: ast.Expr) -> frozenset[str]:
    """The variables in an expression, and in the patterns of its EXISTS."""
    inner = (pattern_mentions(use.pattern) for use in exists_uses(expr))
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
    return n.Join(pattern, n.Table(known, (tuple(values[v] for v in known),)))


def _triple(triple: n.TriplePattern, values: Values) -> n.TriplePattern:
    return n.TriplePattern(*(_term(t, values) for t in triple.terms))


def _term(term: n.PatternTerm, values: Values) -> n.PatternTerm:
    return values.get(term.name, term) if isinstance(term, ast.Var) else term


def _name(name: n.PatternTerm, values: Values) -> n.PatternTerm:
    """A graph's name. A value that is no IRI names no graph: the join with it is empty."""
    value = _term(name, values)
    return value if isinstance(value, ast.Var) or value[0] == "<" else name
