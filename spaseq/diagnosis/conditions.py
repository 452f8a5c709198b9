"""The causes in the conditions of a group: no solution passes its FILTERs.

Also the causes of GPMs on windows: empty windows, HAVING, levels that never end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from spaseq.diagnosis.nearest_terms import (
    is_string,
    nearest_term,
    nearest_variable,
    number,
    numeric,
)
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.probes import MOST_VALUES, Probe, Probes
from spaseq.diagnosis.question import Condition, GpmPlace, Part, group_of
from spaseq.diagnosis.report import Cause, plural
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.format import PatternText
from spaseq.lang.format_triples import uses_of_blank_nodes
from spaseq.lang.functions import SET_FUNCTIONS
from spaseq.lang.variables import expression_variables, rewritten
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.rdf.terms.term import XSD

_ORDERED = ("<", "<=", ">", ">=")

_TYPED = re.compile(r'"([^"]*)"\^\^(?:<[^>]*#|xsd:)(?:decimal|double|integer|float)>?')
"""A number with its type, as computed ones are written."""


class Solved(Protocol):
    """The solutions that FILTERs are tested on: their number, and values of their variables."""

    @property
    def solutions(self) -> int: ...

    @property
    def values(self) -> Mapping[str, Counter[str]]: ...


class Conditions:
    """The FILTERs of a group over its event: probes for each conjunct and for all before it."""

    def __init__(
        self, probes: Probes, parts: Sequence[Part], own: Sequence[Condition], base: Probe
    ) -> None:
        group = group_of(part.node for part in parts)
        self._base, self._own = base, tuple(own)

        def test(*exprs: ast.Expr) -> Probe:
            return probes.probe(group, exprs)

        exprs = [condition.expr for condition in own]
        self._true = [test(expr) for expr in exprs]
        self._false = [test(ast.Not(expr)) for expr in exprs]
        self._until = [test(*exprs[: i + 1]) for i in range(len(own))] if len(own) > 1 else []

    def causes(self, place: GpmPlace, bound: frozenset[str]) -> Iterator[Cause]:
        """The conjuncts that no solution passes, or the one after which none is left.

        `bound` are all variables that the GPM may use.
        """
        failed = False
        for condition, true, false in zip(self._own, self._true, self._false, strict=True):
            if true.fails:
                failed = True
                yield failing(place, condition, self._base, false.solutions, bound)
        if failed:
            return
        for condition, until in zip(self._own, self._until, strict=False):
            if until.fails:
                text = "each condition holds for some solution, but not all for the same one"
                yield place.condition("filter-false", condition, text, self._base.solutions)
                return


def failing(
    place: GpmPlace, condition: Condition, base: Solved, false: int, bound: frozenset[str]
) -> Cause:
    """The cause in a conjunct that holds for no solution; for `false` of them it is false."""
    expr = condition.expr
    errors = base.solutions - false
    if errors <= false:
        return _false(place, condition, base, errors)
    for name in sorted(expression_variables(expr)):
        if not base.values.get(name):
            meant = nearest_variable(name, bound)
            text = f"?{name} is unbound in {_all(base)}{_elsewhere(place, name)}"
            text = _asked(text, meant)
            return place.condition(
                "filter-error", condition, text, base.solutions, f"?{name}", meant
            )
    return _mixed(place, condition, base, false)


def _false(place: GpmPlace, condition: Condition, base: Solved, errors: int) -> Cause:
    """The cause in a conjunct that is false, and for some solutions an error."""
    expr, text = condition.expr, f"false for {_all(base)}"
    if errors:
        text = f"false for {base.solutions - errors:,}, and an error for {errors:,}, of "
        text += plural(base.solutions, "solution")
    term = suggestion = example = None
    pair = _against_constant(expr)
    if pair is not None and (seen := base.values.get(pair[0])):
        name, op, constant = pair
        example = _nearest_miss(op, constant, seen)
        term = place.shown(constant)
        if op in ("=", "IN") and (near := nearest_term(constant_text(constant), seen)) is not None:
            suggestion = place.written(near)
        span = _range(place, seen) if op in _ORDERED else None
        example = place.written(example)
        text += f"; ?{name} is {span or example}" + ", for example" * (not span and len(seen) > 1)
    else:
        example = _sample(place, expr, base)
        text += f"; for example {example}" if example else ""
    text = _asked(text, suggestion)
    return place.condition(
        "filter-false", condition, text, base.solutions, term, suggestion, example
    )


def _mixed(place: GpmPlace, condition: Condition, base: Solved, false: int) -> Cause:
    """The cause in a conjunct that is an error although its variables are bound."""
    expr, text = condition.expr, f"an error for {_all(base)}"
    if false:
        text = f"an error for {base.solutions - false:,}, and false for {false:,}, of "
        text += plural(base.solutions, "solution")
    term = suggestion = None
    example = _sample(place, expr, base)
    pair = _against_constant(expr)
    if pair is not None:
        name, _, constant = pair
        written = constant_text(constant)
        values = base.values.get(name, Counter())
        is_number = _is_numeric(written)  # the value shown is of another kind, if one is
        value = max(values, key=lambda text: _is_numeric(text) != is_number, default="")
        term = place.shown(constant)
        if is_string(written) and number(written) is not None and all(map(_is_numeric, values)):
            suggestion = str(constant.lexical) if isinstance(constant, ast.Literal) else None
            text += f": ?{name} is a number, such as {place.written(value)}, and {term} a string"
        elif is_number and all(is_string(text) and number(text) is not None for text in values):
            term, suggestion = f"?{name}", f"{place.question.terms.iri(f'{XSD}double')}(?{name})"
            text += f": ?{name} is a string, such as {place.written(value)}"
        elif value:
            text += f": ?{name} is {place.written(value)}, which cannot be compared with {term}"
    elif example:
        text += f"; for example {example}"
    text = _asked(text, suggestion)
    return place.condition(
        "filter-error", condition, text, base.solutions, term, suggestion, example
    )


def _is_numeric(text: str) -> bool:
    return numeric(text) is not None


def _against_constant(expr: ast.Expr) -> tuple[str, str, ast.Iri | ast.Literal] | None:
    """(variable, operator as if it stood first, constant) of a comparison with a constant."""
    match expr:
        case ast.Compare(op, ast.Var(name), ast.Iri() | ast.Literal() as constant):
            return name, op, constant
        case ast.Compare(op, ast.Iri() | ast.Literal() as constant, ast.Var(name)):
            return name, _MIRRORED.get(op, op), constant
        case ast.In(ast.Var(name), (ast.Iri() | ast.Literal() as constant, *_), False):
            return name, "IN", constant
    return None


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _nearest_miss(op: str, constant: ast.Iri | ast.Literal, seen: Counter[str]) -> str:
    """The value that comes nearest to passing; any value if they are no numbers."""
    values = {text: v for text in seen if (v := numeric(text)) is not None}
    if op in _ORDERED and values:
        pick: Callable[..., str] = max if op.startswith(">") else min
        return pick(values, key=lambda text: values[text])
    near = nearest_term(constant_text(constant), seen)
    return near if near is not None else seen.most_common(1)[0][0]


def _range(place: GpmPlace, seen: Mapping[str, int]) -> str | None:
    """The least and the greatest value; None if they are no numbers, or not all are known."""
    values = {text: v for text in seen if (v := numeric(text)) is not None}
    if len(values) < len(seen) or not values or len(seen) >= MOST_VALUES:
        return None
    least, most = (pick(values, key=lambda text: values[text]) for pick in (min, max))
    return f"{place.written(least)} to {place.written(most)}"


def _sample(place: GpmPlace, expr: ast.Expr, base: Solved) -> str | None:
    """A value of each variable of an expression."""
    names = sorted(expression_variables(expr))
    shown = [
        f"?{name} = {place.written(next(iter(base.values[name])))}"
        for name in names
        if base.values.get(name)
    ]
    return ", ".join(shown) or None


def _all(base: Solved) -> str:
    return (
        "the only solution" if base.solutions == 1 else f"all {plural(base.solutions, 'solution')}"
    )


def _elsewhere(place: GpmPlace, name: str) -> str:
    """The GPM that binds a variable, if it is another one."""
    binds = place.question.resolved.binds
    other = next((gpm for gpm in binds if gpm != place.gpm and name in binds[gpm]), None)
    return "" if other is None else f"; {other} binds it, which is no earlier step"


def _asked(text: str, suggestion: str | None) -> str:
    return f"{text}; did you mean {suggestion}?" if suggestion else text


class WindowQuestion:
    """Why one GPM has no solution, as far as it is its windows' or NEW's and GONE's fault."""

    def __init__(self, observed: Observed, place: GpmPlace, plan: GpmPlan) -> None:
        assert observed.windows is not None
        self._place, self._plan = place, plan
        question = observed.question
        self._gpm = question.gpm(plan.name)
        self._windows = [question.plan.inputs.windows[each.window].name for each in plan.windows]
        self._has_content = any(observed.windows.has_content(each.window) for each in plan.windows)
        self._events = sum(
            seen.events for seen in observed.streams if seen.name in question.streams_of(plan.name)
        )

    @property
    def is_empty(self) -> bool:
        """Whether no window of the GPM has ever contained an event."""
        return not self._has_content and not self._plan.streams

    def causes(self, whole: Probe) -> list[Cause]:
        """The causes; `whole` probes the pattern on the window events."""
        if self.is_empty:
            return [self._empty()]
        changes = {each.change for each in self._plan.windows}
        if changes == {"GONE"} and not self._plan.streams and whole.solutions:
            return [self._stays(whole)]
        return []

    def _empty(self) -> Cause:
        names = ", ".join(dict.fromkeys(self._windows))
        text = f"no event is in the window {names}: its KEY has no solution on "
        text += plural(self._events, "event")
        window = next(
            w for w in self._place.question.resolved.query.windows if w.name in self._windows
        )
        return self._place.cause("window-empty", window, text, self._events)

    def _stays(self, whole: Probe) -> Cause:
        text = f"{plural(whole.solutions, 'solution')} on {plural(whole.events, 'window event')}, "
        text += "and the window event after has each of them, too, or there is none after"
        source = self._gpm.streams[0]
        text += f": on {source.name}, without GONE, the GPM matches"
        given = (whole.solutions, f"GONE {source.name}", source.name, whole.example)
        return self._place.cause("gone-never", source, text, *given)


class HavingProbes:
    """A sub-SELECT without its HAVING, with the aggregates that HAVING compares as values."""

    def __init__(self, probes: Probes, node: ast.SubSelect) -> None:
        self._node = node
        writer = PatternText(probes.observed.question.terms, uses_of_blank_nodes([node]))
        names: dict[ast.Aggregate, str] = {}

        def change(inner: ast.Node) -> ast.Node | None:
            if isinstance(inner, ast.Aggregate) and inner.function in SET_FUNCTIONS:
                return ast.Var(names.setdefault(inner, writer.expressions.text(inner)))
            return None

        self._tests = [rewritten(expr, change) for expr in node.having]
        items = [*(node.items or ())]
        items += [item for item in node.group_by if item.var and item not in items]
        items += [ast.SelectItem(ast.Var(name), use) for use, name in names.items()]
        self._names = frozenset(names.values())
        free = replace(node, items=tuple(items), having=(), order_by=(), limit=None, offset=None)
        group = group_of([ast.GroupGraphPattern((free,))])
        read = sorted({v for test in self._tests for v in expression_variables(test)})
        self._base = probes.probe(group, keep=read)
        self._true = [probes.probe(group, [test]) for test in self._tests]
        self._false = [probes.probe(group, [ast.Not(test)]) for test in self._tests]

    def cause(self, place: GpmPlace) -> Cause | None:
        """The condition that no group passes; None if there are no groups, or each passes some."""
        if not self._base.solutions:
            return None
        tests = zip(self._node.having, self._tests, self._true, self._false, strict=True)
        for expr, test, true, false in tests:
            if true.fails:
                condition = Condition(
                    ast.Filter(expr, span=expr.span), replace(test, span=expr.span)
                )
                cause = failing(place, condition, self._base, false.solutions, frozenset())
                text, term = _TYPED.sub(r"\1", cause.text), cause.term
                for name in self._names:
                    text = text.replace(f"?{name}", name)
                    term = term and term.replace(f"?{name}", name)
                return replace(cause, kind="having-never", text=text, term=term)
        return None
