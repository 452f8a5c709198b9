"""The causes in the FILTERs of a group: no solution passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from spaseq.algebra.constants import constant_text
from spaseq.diagnosis.nearest_terms import is_string, nearest_term, nearest_variable, number
from spaseq.diagnosis.probes import Probe, Probes
from spaseq.diagnosis.question import Condition, GpmPlace, Part, group_of
from spaseq.diagnosis.report import Cause, plural
from spaseq.lang import ast
from spaseq.lang.variables import expression_variables
from spaseq.rdf.terms.term import XSD

_ORDERED = ("<", "<=", ">", ">=")


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
        return _false(place, condition, base)
    for name in sorted(expression_variables(expr)):
        if not base.values.get(name):
            meant = nearest_variable(name, bound)
            text = f"?{name} is unbound in {_all(base)}{_elsewhere(place, name)}"
            text = _asked(text, meant)
            return place.condition(
                "filter-error", condition, text, base.solutions, f"?{name}", meant
            )
    return _mixed(place, condition, base)


def _false(place: GpmPlace, condition: Condition, base: Solved) -> Cause:
    """The cause in a conjunct that is false."""
    expr, text = condition.expr, f"false for {_all(base)}"
    term = suggestion = example = None
    pair = _against_constant(expr)
    if pair is not None and (seen := base.values.get(pair[0])):
        name, op, constant = pair
        example = _nearest_miss(op, constant, seen)
        term = place.shown(constant)
        if op in ("=", "IN") and (near := nearest_term(constant_text(constant), seen)) is not None:
            suggestion = place.written(near)
        span = _range(place, seen) if op in _ORDERED else None
        text += f"; ?{name} is {span}" if span else f"; ?{name} is {place.written(example)}"
        example = place.written(example)
    else:
        example = _sample(place, expr, base)
        text += f"; for example {example}" if example else ""
    text = _asked(text, suggestion)
    return place.condition(
        "filter-false", condition, text, base.solutions, term, suggestion, example
    )


def _mixed(place: GpmPlace, condition: Condition, base: Solved) -> Cause:
    """The cause in a conjunct that is an error although its variables are bound."""
    expr, text = condition.expr, f"an error for {_all(base)}"
    term = suggestion = None
    example = _sample(place, expr, base)
    pair = _against_constant(expr)
    if pair is not None:
        name, _, constant = pair
        written = constant_text(constant)
        value = next(iter(base.values.get(name, ())), "")
        term = place.shown(constant)
        if is_string(written) and number(written) is not None and not is_string(value):
            suggestion = str(constant.lexical) if isinstance(constant, ast.Literal) else None
            text += f": ?{name} is a number, such as {place.written(value)}, and {term} a string"
        elif is_string(value) and number(value) is not None:
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
    values = {text: v for text in seen if (v := number(text)) is not None}
    if op in _ORDERED and values:
        pick: Callable[..., str] = max if op.startswith(">") else min
        return pick(values, key=lambda text: values[text])
    near = nearest_term(constant_text(constant), seen)
    return near if near is not None else seen.most_common(1)[0][0]


def _range(place: GpmPlace, seen: Mapping[str, int]) -> str | None:
    """The least and the greatest value; None if they are no numbers."""
    values = {text: v for text in seen if (v := number(text)) is not None}
    if len(values) < len(seen) or not values:
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
