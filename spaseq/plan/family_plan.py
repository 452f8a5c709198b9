"""The query and the plan of a family: variables and a table replace its members' constants.
Families that differ only in a window's length are planned once.

Where the first step of every match is one GPM, a family may *begin with the member*: this GPM alone
has the table, and the number is no variable of PARTITION BY. Its solutions carry the constants of
comparisons in later steps, so solutions of later steps belong to all members, and are made once.
Partial matches of members then wait together in a partition. This needs conditions on single
partial matches: no `,`, no selection strategy, no AFTER MATCH.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial

from spaseq.errors import QueryText
from spaseq.lang import ast
from spaseq.lang.format import format_query, with_window
from spaseq.lang.resolve import resolve
from spaseq.lang.sequence import Chain, GpmStep, Repeat, chains, occurrences, steps
from spaseq.lang.shapes import QUERY, Constant, Shape, parameter, total
from spaseq.lang.variables import is_made, rewritten, walk
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.planner import plan_as_written, signature, with_fingerprint
from spaseq.plan.query_plan import CompileOptions, EvaluatorName, QueryPlan, StageKey
from spaseq.plan.rules import apply_rules
from spaseq.plan.sequencing import sequence_window, with_gpms
from spaseq.records import record

_NO_SUM = ast.Iri("no:sum")
"""The value of a sum that is an error: nothing is less or greater than an IRI."""

_ANY = ast.Iri("any:thing")
"""It replaces the constants of members in the text of a fingerprint."""

_ANY_LENGTH = ast.TimeSpan(1, "SECONDS")
"""It replaces the length of a window where families that differ only in it are planned once."""


@record
class FamilyTable:
    """The table of a family: the `places` of its constants, and the GPM that has it.

    The `carrier` has it, if the family begins with the member; else all GPMs have it.
    """

    places: frozenset[int]
    carrier: str | None = None


def open_query(shape: Shape, constants: Sequence[Constant], table: FamilyTable) -> ast.Query:
    """The query of a family without the constants of any member."""
    some = [_ANY if i in table.places else constant for i, constant in enumerate(constants)]
    return family_query(shape, some, table)


def family_query(shape: Shape, constants: Sequence[Constant], table: FamilyTable) -> ast.Query:
    """The query of a family, with the constants that all members have in common."""
    places, carrier = table.places, table.carrier
    fixed = {parameter(i).name: c for i, c in enumerate(constants) if i not in places}

    def restore(node: ast.Node) -> ast.Node | None:
        return fixed.get(node.name) if isinstance(node, ast.Var) else None

    query: ast.Query = rewritten(shape.query, restore)
    binders = [(i, gpm) for i, gpm in shape.binders if i in places]
    sums = {parameter(i).name: i for i, _ in binders}
    made: dict[int, ast.Arithmetic] = {}

    def replaced(node: ast.Node) -> ast.Node | None:
        """The variable that replaces a sum."""
        if isinstance(node, ast.Arithmetic) and isinstance(node.right, ast.Var):
            number = sums.get(node.right.name)
            if number is not None:
                made[number] = node
                return total(number)
        return None

    gpms = [rewritten(gpm, replaced) for gpm in query.gpms]
    bound = {gpm: [(i, made[i]) for i, binder in binders if binder == gpm] for _, gpm in binders}
    if carrier is None:
        defined = tuple(_gpm(g, places, bound.get(g.name, ()), constants) for g in gpms)
        partition = (*query.partition, ast.Var(QUERY))
        return replace(query, gpms=defined, partition=partition)
    later = [gpm for gpm in gpms if gpm.name != carrier]
    names = {node.name for gpm in later for node in walk(gpm) if isinstance(node, ast.Var)}
    carried = {parameter(i).name: total(i) for i in sorted(places) if parameter(i).name in names}
    columns = [(i, total(i)) for i in places if parameter(i).name in carried]

    def read(node: ast.Node) -> ast.Node | None:
        """The variable that replaces a constant of the first step."""
        return carried.get(node.name) if isinstance(node, ast.Var) else None

    defined = tuple(
        _gpm(gpm, places, bound.get(carrier, ()), constants, columns)
        if gpm.name == carrier
        else rewritten(gpm, read)
        for gpm in gpms
    )
    return replace(query, gpms=defined)


def _gpm(
    gpm: ast.Gpm,
    places: Iterable[int],
    sums: Sequence[tuple[int, ast.Arithmetic]],
    constants: Sequence[Constant],
    carried: Sequence[tuple[int, ast.Var]] = (),
) -> ast.Gpm:
    """A GPM with the columns of the table that it reads, and the sums that it makes.

    It also has constants that later steps read, as variables.
    """
    mentioned = {node.name for node in walk(gpm) if isinstance(node, ast.Var)}
    read_places = sorted(i for i in places if parameter(i).name in mentioned or i in dict(sums))
    columns = [*((i, parameter(i)) for i in read_places), *carried]
    variables = (ast.Var(QUERY), *(variable for _, variable in columns))
    table = ast.Values(variables, ((ast.Literal("0"), *(constants[i] for i, _ in columns)),))
    pattern = ast.GroupGraphPattern((*gpm.pattern.elements, table))
    if sums:
        binds = (ast.Bind(ast.Call("COALESCE", (e, _NO_SUM)), total(i)) for i, e in sums)
        pattern = ast.GroupGraphPattern((pattern, *binds))
    return replace(gpm, pattern=pattern)


def carrier_of(first: QueryPlan, shape: Shape, places: frozenset[int]) -> str | None:
    """The GPM with which the family of these queries may begin; None if there is none.

    `first` is the plan of a member.
    """
    links = first.sequence.chain.links
    begin = links[0].step if links else None
    answers = first.answers
    if not isinstance(begin, GpmStep) or answers.strategy != "ALL":
        return None
    if not answers.after_match.keeps_all or "," in _joins(first.sequence.chain):
        return None
    name = begin.occurrence.gpm
    if sum(use.gpm == name for use in occurrences(first.sequence.chain)) > 1:
        return None
    if isinstance(shape.query.window, ast.CountWindow) or shape.query.windows:
        return None
    summed = {i for i, binder in shape.binders if binder == name}
    later = [gpm for gpm in shape.query.gpms if gpm.name != name]
    for gpm in later:
        mentioned = {v.name for v in walk(gpm) if isinstance(v, ast.Var)}
        here = {i for i in places if parameter(i).name in mentioned}
        if not here <= summed | _bounds(gpm, here):
            return None
    return name if later else None


def _joins(chain: Chain) -> set[str]:
    """The kinds of operators between the steps of a sequence."""
    of_loops = {s.own.kind for s in steps(chain) if isinstance(s, Repeat) and s.own is not None}
    return of_loops | {link.join.kind for part in chains(chain) for link in part.links}


def _bounds(gpm: ast.Gpm, places: Collection[int]) -> set[int]:
    """The places of constants that a FILTER of a GPM compares by order with a variable."""
    names = {parameter(i).name: i for i in places}
    return {
        names[side.name]
        for node in walk(gpm)
        if isinstance(node, ast.Compare) and node.op != "="
        for side in (node.left, node.right)
        if isinstance(side, ast.Var) and side.name in names
    }


class FamilyPlans:
    """The plans of several families.

    A plan does not depend on the length of a window of time. So one of the families that differ in
    nothing else is planned, and the others get its plan with their windows.
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
    """The plan of a family, shared with other windows."""

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
    """The query, with a fixed length of its window if that is a window of time."""
    if not isinstance(query.window, ast.TimeWindow):
        return query
    return replace(query, window=replace(query.window, length=_ANY_LENGTH))


def family_plan(
    first: QueryPlan, shape: Shape, constants: Sequence[Constant], table: FamilyTable
) -> QueryPlan | None:
    """The plan of a family; its table has one row.

    None if the planner refuses the family's query.
    """
    query = family_query(shape, constants, table)
    resolved = resolve(query, QueryText("", "<family>"))
    if any(d.severity == "error" for d in resolved.diagnostics):
        return None
    plan = plan_as_written(resolved, first.identity.title, CompileOptions(disable=first.disabled))
    gpms = plan.patterns.gpms
    plan = with_gpms(plan, tuple(replace(g, certain=g.certain | _sums(g)) for g in gpms))
    # Limits and sets of runs need the key of a single query.
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
