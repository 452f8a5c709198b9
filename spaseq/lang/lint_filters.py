"""Warnings about FILTERs and other expressions: unbound variables, own times, vain comparisons of
values that are never equal and have no order, such as a number and a string.

They follow from the variables that each FILTER of a GPM sees, and from the outcomes that a
condition can have where some variables are unbound.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import reduce
from itertools import product
from typing import Literal, TypeAlias, cast

from spaseq.errors import Diagnostic, Span
from spaseq.lang import ast
from spaseq.lang.names import XSD
from spaseq.lang.resolve import Resolved
from spaseq.lang.scope import seen_before
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import (
    children,
    exists_uses,
    filters_of,
    nested_groups,
    pattern_variables,
    timestamp_uses,
    walk,
    walk_patterns,
)
from spaseq.records import record

Kind: TypeAlias = Literal["number", "string", "time", "duration"]

_NUMERIC = ("integer", "decimal", "double", "float", "long", "int", "short", "byte",
            "nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong")  # fmt: skip
_DATATYPES: dict[str | None, Kind] = {
    None: "string",
    **{XSD + name: "number" for name in _NUMERIC},
    **dict.fromkeys((XSD + "dateTime", XSD + "dateTimeStamp"), "time"),
    **dict.fromkeys((XSD + "dayTimeDuration", XSD + "duration"), "duration"),
    XSD + "string": "string",
}
_FUNCTIONS: dict[str, Kind] = {
    **dict.fromkeys(("CEIL", "FLOOR", "ROUND", "STRLEN", "RAND", "COUNT"), "number"),
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"), "number"),
    **dict.fromkeys(("STR", "LANG", "TZ", "STRUUID", "GROUP_CONCAT"), "string"),
    **dict.fromkeys(("MD5", "SHA1", "SHA256", "SHA384", "SHA512"), "string"),
    "NOW": "time",
    "TIMEZONE": "duration",
}
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_ORDER = ("<", "<=", ">", ">=")
_NAMES = {"number": "a number", "string": "a string", "time": "a time", "duration": "a duration"}
_HINTS: dict[frozenset[str], str] = {
    frozenset({"number", "duration"}): 'write a duration as "PT5S"^^xsd:dayTimeDuration',
    frozenset({"number", "time"}): 'write a time as "2020-01-31T00:00:00Z"^^xsd:dateTime',
    frozenset({"string", "time"}): 'write a time as "2020-01-31T00:00:00Z"^^xsd:dateTime',
    frozenset({"string", "duration"}): 'write a duration as "PT5S"^^xsd:dayTimeDuration',
    frozenset({"time", "duration"}): "subtract two times first",
}


def vain_comparisons(node: ast.Node) -> Iterator[tuple[ast.Compare, str]]:
    """The comparisons below a node whose result never varies, each with its message."""
    for inner in walk_patterns(node):
        if isinstance(inner, ast.Compare) and (message := _message(inner)) is not None:
            yield inner, message


def _message(compare: ast.Compare) -> str | None:
    left, right = kind_of(compare.left), kind_of(compare.right)
    if left is not None and right is not None and left != right:
        result = "always" if compare.op == "!=" else "never"
        hint = _hint(compare, left, right)
        return f"this {result} holds: {_NAMES[left]} is compared with {_NAMES[right]}; {hint}"
    for one, other in ((compare.left, compare.right), (compare.right, compare.left)):
        written = _number_in_quotes(one)
        if compare.op in _ORDER and written and isinstance(other, ast.Var | ast.Prev):
            return (
                f'this never holds for a number: "{written}" is a string; write {written} '
                "without quotation marks"
            )
    return None


def _hint(compare: ast.Compare, left: Kind, right: Kind) -> str:
    for side in (compare.left, compare.right):
        written = _number_in_quotes(side)
        if written and "number" in (left, right):
            return f"write {written} without quotation marks"
        if isinstance(side, ast.Call) and side.function == "STR" and "number" in (left, right):
            return "leave STR out, or write xsd:decimal(...) around it"
    return _HINTS.get(frozenset({left, right}), "cast one of them, as in xsd:decimal(...)")


def _number_in_quotes(expr: ast.Expr) -> str | None:
    match expr:
        case ast.Literal(lexical, None, None) if _NUMBER.fullmatch(lexical):
            return lexical
    return None


def kind_of(expr: ast.Expr) -> Kind | None:
    """The kind that every value of an expression has; None if that is not certain.

    >>> kind_of(ast.Arithmetic("+", ast.Var("x"), ast.Literal("1", XSD + "integer")))
    'number'
    """
    match expr:
        case ast.Literal(_, datatype, None):
            return _DATATYPES.get(datatype)
        case ast.Literal():
            return "string"
        case ast.Timestamp():
            return "time"
        case ast.Call(function, _) | ast.Aggregate(function, _):
            return _FUNCTIONS.get(function)
        case ast.FunctionCall(ast.Iri(iri), _):
            return _DATATYPES.get(iri)
        case ast.Sign(_, operand):
            return kind_of(operand)
        case ast.Arithmetic(op, left, right):
            return _of_arithmetic(op, kind_of(left), kind_of(right))
    return None


def _of_arithmetic(op: str, left: Kind | None, right: Kind | None) -> Kind | None:
    match op, left, right:
        case "+" | "-", "number", _:
            return "number"
        case "+" | "-", _, "number":
            return "number"
        case "-", "time", "time":
            return "duration"
        case "*" | "/", "number", "number":
            return "number"
    return None


@record
class SeenFilter:
    """A FILTER with the variables that it may see bound."""

    expr: ast.Expr
    visible: frozenset[str]
    inside: ast.Element | None = None  # the innermost part of the GPM around it; None in EXISTS


def seen_filters(
    group: ast.GroupGraphPattern,
    earlier: frozenset[str],
    around: frozenset[str] = frozenset(),
    inside: ast.Element | None = None,
    begins: frozenset[str] = frozenset(),
) -> Iterator[SeenFilter]:
    """The FILTERs of a group at any depth, in the order of the text, also inside EXISTS.

    Args:
        group: the group.
        earlier: variables that are substituted into the group.
        around: more variables that the FILTERs of the group itself see.
        inside: the part of the GPM that the group is in.
        begins: variables that are bound at the begin of the group: those of EVENT.
    """
    bound = pattern_variables(group) | begins
    visible = bound | earlier | around
    for element in group.elements:
        if isinstance(element, ast.Filter):
            yield SeenFilter(element.expr, visible, inside)
            for exists in exists_uses(element.expr):
                yield from seen_filters(exists.pattern, visible)
        outer = bound if isinstance(element, ast.OptionalGraphPattern) else frozenset[str]()
        for inner in nested_groups(element):
            handed_on = _handed_on(element, earlier)
            yield from seen_filters(inner, handed_on, outer, element, _of_event(element))


def _of_event(element: ast.Element) -> frozenset[str]:
    """The variables that EVENT binds before its group."""
    if not isinstance(element, ast.EventGraphPattern):
        return frozenset()
    return frozenset(v.name for v in (element.event, element.time) if v is not None)


def _handed_on(element: ast.Element, earlier: frozenset[str]) -> frozenset[str]:
    """The variables of earlier steps that an element sees."""
    match element:
        case ast.SubSelect(items=items) if items is not None:
            return earlier & {item.var.name for item in items if item.var}
        case _:
            return earlier


Outcome: TypeAlias = Literal["true", "false", "error"]
Outcomes: TypeAlias = frozenset[Outcome]

_ANY: Outcomes = frozenset({"true", "false", "error"})
_ERROR: Outcomes = frozenset({"error"})
_OPPOSITE: dict[Outcome, Outcome] = {"true": "false", "false": "true", "error": "error"}


def can_hold(expr: ast.Expr, unbound: Collection[str]) -> bool:
    """Whether a condition may be true if these variables are unbound.

    >>> x, one = ast.Var("x"), ast.Literal("1")
    >>> can_hold(ast.Compare("=", x, one), {"x"})
    False
    >>> can_hold(ast.Not(ast.Call("BOUND", (x,))), {"x"})
    True
    """
    return "true" in _outcomes(expr, unbound)


def _outcomes(expr: ast.Expr, unbound: Collection[str]) -> Outcomes:
    """The outcomes that cannot be excluded by the unbound variables alone."""
    match expr:
        case ast.Var(name):
            return _ERROR if name in unbound else _ANY
        case ast.Prev() | ast.Aggregate() | ast.Timestamp() | ast.Exists():
            return _ANY
        case ast.Not(operand):
            return frozenset(_OPPOSITE[o] for o in _outcomes(operand, unbound))
        case ast.And(operands):
            return reduce(_both, (_outcomes(o, unbound) for o in operands))
        case ast.Or(operands):
            negated = (_outcomes(ast.Not(o), unbound) for o in operands)
            return frozenset(_OPPOSITE[o] for o in reduce(_both, negated))
        case ast.Call("BOUND", (ast.Var(name),)):
            return frozenset({"false"}) if name in unbound else _ANY
        case ast.Call("COALESCE", args):
            return frozenset().union(*(_outcomes(a, unbound) for a in args))
        case ast.Call("IF", (condition, then, otherwise)):
            outcomes = _outcomes(condition, unbound)
            chosen = _ERROR & outcomes
            chosen |= _outcomes(then, unbound) if "true" in outcomes else chosen
            return chosen | (_outcomes(otherwise, unbound) if "false" in outcomes else chosen)
        case ast.In(operand, options):
            fails = _fails(operand, unbound) or all(_fails(o, unbound) for o in options)
            return _ERROR if fails and options else _ANY
        case _:
            parts = (cast("ast.Expr", child) for child in children(expr))
            return _ERROR if any(_fails(part, unbound) for part in parts) else _ANY


def _fails(expr: ast.Expr, unbound: Collection[str]) -> bool:
    return _outcomes(expr, unbound) == _ERROR


def _both(left: Outcomes, right: Outcomes) -> Outcomes:
    """The outcomes of `left && right`."""
    return frozenset(_and(a, b) for a, b in product(left, right))


def _and(left: Outcome, right: Outcome) -> Outcome:
    if "false" in (left, right):
        return "false"
    return "error" if "error" in (left, right) else "true"


def lint_filters(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about the variables of expressions."""
    yield from _unbound(resolved)
    yield from _unbound_outputs(resolved)
    yield from _own_times(resolved)


def unbound_warning(
    resolved: Resolved, message: str, var: ast.Var, visible: Collection[str] | None = None
) -> Diagnostic:
    """A warning about an unbound variable, with the nearest of those that may be bound there."""
    names = visible if visible is not None else {v for vs in resolved.binds.values() for v in vs}
    near = None if var.name in names else suggested(var.name, names)
    shown = None if near is None else f"?{near}"
    return _warning(resolved, "unbound-variable", message, var.span, shown)


def _warning(
    resolved: Resolved, code: str, message: str, span: Span, suggestion: str | None = None
) -> Diagnostic:
    return Diagnostic("warning", code, message, span, resolved.source, (), suggestion)


# --- unbound variables ---------------------------------------------------------------------------


def _unbound(resolved: Resolved) -> Iterator[Diagnostic]:
    """Variables that are unbound whenever a FILTER that reads them is evaluated."""
    seen = seen_before(resolved.chain, resolved.scope, resolved.binds)
    for gpm in resolved.query.gpms:
        if gpm.name not in seen:
            continue
        for test in seen_filters(gpm.pattern, frozenset(seen[gpm.name])):
            unread = {v.name: v for v in _reads(test.expr) if v.name not in test.visible}
            holds = can_hold(test.expr, unread)
            for name in sorted(unread):
                cause = _cause(resolved, gpm, test, unread[name], seen)
                message = f"{cause}" if holds else f"the FILTER can never hold: {cause}"
                near = test.visible if cause.startswith("nothing") else {name}
                yield unbound_warning(resolved, message, unread[name], near)


def _reads(expr: ast.Node) -> Iterator[ast.Var]:
    """The variables whose own value an expression reads: not in PREV, aggregates or EXISTS."""
    if isinstance(expr, ast.Var):
        yield expr
    elif not isinstance(expr, ast.Prev | ast.Aggregate | ast.Exists):
        for child in children(expr):
            yield from _reads(child)


def _cause(
    resolved: Resolved, gpm: ast.Gpm, test: SeenFilter, var: ast.Var, seen: dict[str, set[str]]
) -> str:
    """The reason why a variable has no value in a FILTER, and the remedy."""
    name = var.name
    if name in resolved.binds[gpm.name]:
        return _bound_outside(name, test.inside)
    later = [g for g, names in resolved.binds.items() if name in names and g in seen]
    if later:
        reads = {v.name for v in _reads(test.expr)}
        goal = next((g for g in later if reads <= seen[g] | resolved.binds[g]), None)
        advice = "" if goal is None else f"; move it to {goal}"
        return f"?{name} is bound only later{advice}"
    if _mentioned_apart(gpm.pattern, name):
        return (
            f"?{name} has a value only inside other braces of {gpm.name}; move the FILTER there, "
            f"or SELECT ?{name} in the sub-SELECT"
        )
    return f"nothing binds ?{name}"


def _bound_outside(name: str, inside: ast.Element | None) -> str:
    match inside:
        case ast.MinusGraphPattern():
            return f"MINUS does not see ?{name}; write FILTER NOT EXISTS {{ ... }} instead of MINUS"
        case ast.SubSelect():
            return f"?{name} is bound outside of the sub-SELECT; move the FILTER out of it"
        case _:
            return f"?{name} is bound outside of the braces around the FILTER; move it out of them"


def _mentioned_apart(node: ast.Node, name: str) -> bool:
    """Whether a variable occurs in a part of a GPM that binds variables, such as a triple."""
    if isinstance(node, ast.Triples | ast.Values):
        return any(isinstance(n, ast.Var) and n.name == name for n in walk(node))
    return any(_mentioned_apart(child, name) for child in children(node))


def _unbound_outputs(resolved: Resolved) -> Iterator[Diagnostic]:
    """Variables in the expressions of SELECT and in HAVING that nothing binds."""
    query = resolved.query
    bound = set(resolved.scope.owner) | set(resolved.scope.singles)
    if isinstance(query.form, ast.Select):
        bound |= {item.var.name for item in query.form.items or () if item.expr and item.var}
        for item in query.form.items or ():
            for var in _reads(item.expr) if item.expr is not None else ():
                if var.name not in bound:
                    message = f"nothing binds ?{var.name}"
                    yield unbound_warning(resolved, message, var, bound)
    if query.having is None:
        return
    unread = {v.name: v for v in _reads(query.having) if v.name not in bound}
    never = "" if can_hold(query.having, unread) else "HAVING can never hold: "
    for name, var in sorted(unread.items()):
        yield unbound_warning(resolved, f"{never}nothing binds ?{name}", var, bound)


# --- own times, comparisons -----------------------------------------------------------------------


def _own_times(resolved: Resolved) -> Iterator[Diagnostic]:
    """TIMESTAMP of a step in its own FILTER, where the step has no event yet."""
    if ast.Timestamp not in resolved.kinds:
        return
    uses = Counter(o.gpm for o in resolved.scope.occurrences)
    repeated = {o.gpm for o in resolved.scope.occurrences if o.repeats}
    for gpm in resolved.query.gpms:
        if uses[gpm.name] != 1 or gpm.name in repeated:
            continue
        for stamp in (use for e in filters_of(gpm.pattern) for use in timestamp_uses(e)):
            if stamp.gpm.name == gpm.name:
                message = (
                    f"TIMESTAMP({gpm.name}) has no value in the FILTER of {gpm.name} itself: "
                    "the time of its event is NOW()"
                )
                yield _warning(resolved, "own-timestamp", message, stamp.span)


def lint_comparisons(resolved: Resolved) -> Iterator[Diagnostic]:
    """The warnings about comparisons, which do not depend on anything around them."""
    has_any = ast.Compare in resolved.kinds
    for compare, message in vain_comparisons(resolved.query) if has_any else ():
        yield _warning(resolved, "vain-comparison", message, compare.span)
