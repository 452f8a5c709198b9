"""The causes that only GPMs on windows have: empty windows, HAVING, levels that never end."""

from __future__ import annotations

import re
from dataclasses import replace

from spaseq.diagnosis.conditions import failing
from spaseq.diagnosis.observed import Observed
from spaseq.diagnosis.probes import Probe, Probes
from spaseq.diagnosis.question import Condition, GpmPlace, group_of
from spaseq.diagnosis.report import Cause, plural
from spaseq.lang import ast
from spaseq.lang.format_patterns import PatternText
from spaseq.lang.format_triples import uses_of_blank_nodes
from spaseq.lang.functions import SET_FUNCTIONS
from spaseq.lang.variables import expression_variables, rewritten
from spaseq.plan.query_plan import GpmPlan

_TYPED = re.compile(r'"([^"]*)"\^\^(?:<[^>]*#|xsd:)(?:decimal|double|integer|float)>?')
"""A number with its type, as computed ones are written."""


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
        """Whether no window of the GPM has ever held an event."""
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
