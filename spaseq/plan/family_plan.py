"""The plan of a family's query, made once for families that differ in a window's length only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cached_property, partial

from spaseq.errors import QueryText
from spaseq.lang import ast
from spaseq.lang.format import format_query, with_window
from spaseq.lang.resolve import resolve
from spaseq.lang.shapes import QUERY, Constant, Shape, is_made
from spaseq.lang.variables import walk
from spaseq.plan.family_query import FamilyTable, carrier_of, family_query, open_query
from spaseq.plan.planner import plan_as_written, signature, with_fingerprint
from spaseq.plan.planning_options import CompileOptions
from spaseq.plan.query_plan import EvaluatorName, GpmPlan, QueryPlan, StageKey
from spaseq.plan.rules import apply_rules
from spaseq.plan.sequencing import sequence_window, with_gpms

_ANY_LENGTH = ast.TimeSpan(1, "SECONDS")
"""It stands for the length of a window where families that differ in it only are planned once."""


class FamilyPlans:
    """The plans of several families.

    A plan does not depend on how long a window of time is. So of families that differ in nothing
    else one is planned, and the others get its plan with their own windows.
    """

    def __init__(self, begun: Collection[EvaluatorName]) -> None:
        """`begun` are the evaluators that may run families which begin with the member."""
        self._known: dict[object, _Planned | None] = {}
        self._begun = begun

    def plan(self, first: QueryPlan, places: tuple[int, ...]) -> QueryPlan | None:
        """The plan of a family; None if no plan can run it.

        `first` is the plan of a member. Members differ in the constants at `places`.
        """
        assert first.shaped is not None
        shape, constants = first.shaped.shape, first.shaped.constants
        common = tuple(constant for i, constant in enumerate(constants) if i not in places)
        alike = _without_length(shape.query), shape.binders, places, common, first.disabled
        if alike not in self._known:
            table = FamilyTable(frozenset(places))
            plan = None
            if first.sequence.evaluator.name in self._begun:
                carrier = carrier_of(first, shape, table.places)
                if carrier is not None:
                    table = replace(table, carrier=carrier)
                    plan = family_plan(first, shape, constants, table)
            if plan is None or plan.sequence.evaluator.name not in self._begun:
                table = replace(table, carrier=None)
                plan = family_plan(first, shape, constants, table)
            query = partial(open_query, shape, constants, table)
            self._known[alike] = None if plan is None else _Planned(plan, query)
            return plan
        known = self._known[alike]
        return None if known is None else known.within(shape.query)


class _Planned:
    """The plan of a family, which others may get with their own windows."""

    def __init__(self, plan: QueryPlan, query: Callable[[], ast.Query]) -> None:
        """`query` makes its query without the constants of any member."""
        self._plan, self._query = plan, query

    @cached_property
    def _text(self) -> tuple[ast.TimeWindow, str]:
        """The window, and the canonical text."""
        query = self._query()
        assert isinstance(query.window, ast.TimeWindow)
        return query.window, format_query(query)

    def within(self, query: ast.Query) -> QueryPlan:
        """The plan with the window of another query."""
        (old, text), window = self._text, query.window
        assert isinstance(window, ast.TimeWindow)
        sequence = replace(self._plan.sequence, window=sequence_window(query))
        plan = replace(self._plan, sequence=sequence)
        return replace(
            plan,
            signature=signature(plan, plan.identity.title, lambda: with_window(text, old, window)),
        )


def _without_length(query: ast.Query) -> ast.Query:
    """The query with a window of a fixed length if its window is one of time."""
    if not isinstance(query.window, ast.TimeWindow):
        return query
    return replace(query, window=replace(query.window, length=_ANY_LENGTH))


def family_plan(
    first: QueryPlan, shape: Shape, constants: Sequence[Constant], table: FamilyTable
) -> QueryPlan | None:
    """The plan of a family; its table has one row.

    None if the family's query is none that the planner takes.
    """
    query = family_query(shape, constants, table)
    resolved = resolve(query, QueryText("", "<family>"))
    if any(d.severity == "error" for d in resolved.diagnostics):
        return None
    plan = plan_as_written(resolved, first.identity.title, CompileOptions(disable=first.disabled))
    gpms = plan.patterns.gpms
    plan = with_gpms(plan, tuple(replace(g, certain=g.certain | _sums(g)) for g in gpms))
    # Limits and sets of runs ask for the key of a single query.
    key = first.sequence.key
    if key.variables is not None and table.carrier is None:
        key = StageKey((*key.variables, QUERY), key.reason)
    plan = replace(plan, sequence=replace(plan.sequence, key=key))
    plan = titled(apply_rules(plan, first.disabled), "family")
    plan = with_fingerprint(plan, open_query(shape, constants, table))
    if any(gpm.correlation is not None for gpm in plan.patterns.gpms):
        return None
    if any(window.content is not None for window in plan.inputs.windows):
        return None  # only groups that are kept know members
    # Answers have the variables that they have for a single query.
    pairs = [*zip(plan.patterns.gpms, first.patterns.gpms, strict=True)]
    if any(own.private & _compared(gpm) for gpm, own in pairs):
        return None  # later conditions need one that a single query does not hand on
    gpms = tuple(replace(gpm, private=own.private) for gpm, own in pairs)
    return replace(plan, patterns=replace(plan.patterns, gpms=gpms))


def _compared(gpm: GpmPlan) -> frozenset[str]:
    """The variables in conditions between events."""
    nodes = (node for condition in gpm.conditions for node in walk(condition))
    return frozenset(node.name for node in nodes if isinstance(node, ast.Var))


def _sums(gpm: GpmPlan) -> frozenset[str]:
    """The sums that a GPM makes; each has a value in every solution."""
    return frozenset(filter(is_made, gpm.variables))


def titled(plan: QueryPlan, title: str) -> QueryPlan:
    """The plan under another name."""
    return replace(plan, identity=replace(plan.identity, name=title, title=title))
