"""Families (queries that differ in constants only and run as one query), and units of evaluation. A
unit is a single query or a family. It has the number of its first query.

The query of a family has a variable in place of each constant in which its members differ. Each of
its GPMs begins with VALUES, which has a row for each member: the member's number and its constants.
PARTITION BY gets the number as one more variable. So each member has its own partitions, and the
rules of partitions hold for members: windows, selection strategies and negated steps concern the
events of one member.

A family evaluates a pattern for all members, and then joins the solutions with the table. So it has
more intermediate solutions than a member, whose pattern has constants. `family_plan` makes the
query and its plan.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import mapped, with_expressions
from spaseq.lang import ast
from spaseq.lang.constants import constant_text
from spaseq.lang.shapes import QUERY, Constant, parameter, total
from spaseq.lang.variables import rewritten
from spaseq.options import StageOptions
from spaseq.plan.evaluators import SET_EVALUATORS
from spaseq.plan.family_plan import FamilyPlans, FamilyTable, carrier_of, family_plan, titled
from spaseq.plan.query_plan import EvaluatorName, QueryPlan
from spaseq.rdf.terms.term import XSD_STRING, split_literal
from spaseq.records import record

if TYPE_CHECKING:
    from spaseq.rdf.columns.event_batch import EventBatch
    from spaseq.rdf.columns.solution_batch import SolutionBatch


def with_constants(
    pattern: n.Pattern, known: Mapping[str, Constant], carried: Mapping[str, str]
) -> n.Pattern:
    """A pattern of a family for one row of its table.

    The constants in `known`, by name of the parameter, replace the parameters. `carried` has the
    row's texts of the variables that stay in the table.
    """
    match pattern:
        case n.Table(variables):
            if QUERY not in variables:
                return pattern
            kept = tuple(v for v in variables if v in carried)
            return n.Table(kept, (tuple(carried[v] for v in kept),))
        case n.BGP(triples):
            return n.BGP(tuple(_triple(own, known) for own in triples))
    own = with_expressions(pattern, lambda expr: rewritten(expr, lambda node: _in(known, node)))
    return mapped(own, lambda operand: with_constants(operand, known, carried))


def constant_of(text: str) -> Constant:
    """The constant with a canonical N-Triples text.

    >>> constant_of('"1"^^<http://e/t>')
    Literal(lexical='1', datatype='http://e/t', language=None)
    """
    if text.startswith("<"):
        return ast.Iri(text[1:-1])
    lexical, datatype, language = split_literal(text)
    kind = None if datatype == XSD_STRING or language else datatype
    return ast.Literal(lexical, kind, language)


def _triple(triple: n.TriplePattern, known: Mapping[str, Constant]) -> n.TriplePattern:
    return n.TriplePattern(*(_term(term, known) for term in triple.terms))


def _term(term: n.PatternTerm, known: Mapping[str, Constant]) -> n.PatternTerm:
    constant = None if isinstance(term, str) else known.get(term.name)
    return term if constant is None else constant_text(constant)


def _in(known: Mapping[str, Constant], node: ast.Node) -> ast.Node | None:
    """The constant of a parameter."""
    return known.get(node.name) if isinstance(node, ast.Var) else None


@record
class Family:
    """Queries of one shape, and the plan that runs all of them.

    `members` are the numbers of the queries in their run. Queries with equal constants share a row:
    `rows` has the constants of each row of the table, and `owners` its queries. Only the constants
    at `places` differ. `first` is a member's plan.
    """

    plan: QueryPlan
    places: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    owners: tuple[tuple[int, ...], ...]
    first: QueryPlan

    @property
    def begins_with_member(self) -> bool:
        """Whether only solutions of the first step have a member's number."""
        return QUERY not in self.plan.sequence.partition

    @property
    def members(self) -> tuple[int, ...]:
        """The numbers of the queries, ascending."""
        return tuple(sorted(number for owners in self.owners for number in owners))

    def only(self, row: int) -> QueryPlan:
        """The family's plan for the queries of one row, with their constants in its patterns.

        It costs as much as one of these queries.
        """
        names = (parameter(place).name for place in self.places)
        known = dict(zip(names, map(constant_of, self.rows[row]), strict=True))
        carried = {total(i).name: text for i, text in zip(self.places, self.rows[row], strict=True)}
        carried[QUERY] = row_term(row)
        return _with_patterns(self.plan, lambda pattern: with_constants(pattern, known, carried))

    def takes(self, plan: QueryPlan) -> bool:
        """Whether a query differs from the members in constants at `places` only."""
        if not are_alike(self.first, plan):
            return False
        ours, its = self.first.shaped, plan.shaped
        assert ours is not None and its is not None
        pairs = enumerate(zip(ours.constants, its.constants, strict=True))
        return all(i in self.places or constant == other for i, (constant, other) in pairs)

    def row(self, plan: QueryPlan) -> tuple[str, ...]:
        """The constants of a query that the family takes, as a row of the table."""
        texts = plan.constant_texts
        return tuple(texts[i] for i in self.places)

    def changed(self, come: Mapping[int, QueryPlan], gone: Collection[int]) -> Family:
        """The family with other members, each in a new row, and without some.

        The table of the plan stays; see `tabled`.
        """
        owners, rows = [*self.owners], [*self.rows]
        if gone:
            owners = [tuple(n for n in some if n not in gone) for some in owners]
        for number, plan in come.items():
            rows.append(self.row(plan))
            owners.append((number,))
        return replace(self, rows=tuple(rows), owners=tuple(owners))

    def tabled(self, first: int = 0) -> Family:
        """The family of the members in rows from `first` on, with a table of these rows."""
        rows = {n: self.rows[n] for n in range(first, len(self.rows)) if self.owners[n]}
        owners = ((),) * first + self.owners[first:]
        return replace(self, plan=with_rows(self.plan, self.places, rows), owners=owners)


def row_term(row: int) -> str:
    """The N-Triples text for a row of a family's table."""
    return f'"{row}"'


def row_of(term: str) -> int:
    """The row of a term."""
    return int(term[1:-1])


def families_of(
    plans: Sequence[QueryPlan], begun: Collection[EvaluatorName] = ()
) -> tuple[Family, ...]:
    """The families with enough queries, in order of their first members.

    Families may begin with the member if one of the evaluators `begun` runs them: see `may_begin`.
    """
    alike: dict[object, list[int]] = {}
    known: dict[tuple[int, tuple[str, ...]], list[int]] = {}  # by the identity of a shape
    for number, plan in enumerate(plans):
        if plan.shape is not None and plan.is_member:
            key = id(plan.shape), plan.disabled
            if key not in known:
                known[key] = alike.setdefault((plan.shape, plan.disabled), [])
            known[key].append(number)
    planned = FamilyPlans(begun)
    families = (
        _family(plans, numbers, planned)
        for numbers in alike.values()
        if len(numbers) >= thresholds.current.family_queries
    )
    return tuple(family for family in families if family is not None)


def may_begin(options: StageOptions) -> Collection[EvaluatorName]:
    """The evaluators that may run families which begin with the member, and each member alone.

    The limit counts a set of partial matches that share their events once, so a family has no more
    sets than its members. Answers are limited for each partition.
    """
    registers: EvaluatorName = "compiled-registers"
    if options.is_unlimited:
        return (registers, *SET_EVALUATORS)
    return () if options.limit_per_event is not None else (registers,)


def family_key(plan: QueryPlan) -> object | None:
    """A key that is equal for queries that may be in one family; None for other queries."""
    return None if plan.shape is None or not plan.is_member else (plan.shape, plan.disabled)


def are_alike(plan: QueryPlan, other: QueryPlan) -> bool:
    """Whether two queries may be in one family."""
    key = family_key(plan)
    return key is not None and key == family_key(other)


def family_begun_by(plan: QueryPlan, begun: Collection[EvaluatorName] = ()) -> Family | None:
    """A family with one member, number 0, which others with any constants may join.

    `begun` is as for `families_of`.
    """
    if plan.shaped is None or not plan.is_member or plan.inputs.windows:
        return None  # a window holds events of its first members
    places = tuple(range(len(plan.shaped.constants)))
    planned = FamilyPlans(begun).plan(plan, places)
    if planned is None or not places:
        return None
    planned = titled(planned, f"the family of {plan.identity.title}")
    row = plan.constant_texts
    return Family(with_rows(planned, places, {0: row}), places, (row,), ((0,),), plan)


def family_again(
    places: Sequence[int],
    row_count: int,
    members: Sequence[tuple[int, int, QueryPlan]],
    begins: bool,
) -> Family | None:
    """A family in the state after `Family.changed`, of (number, row, plan) for each member.

    None if there is no such family. `begins`: it begins with the member.
    """
    first = members[0][2]
    if first.shaped is None or not all(are_alike(first, plan) for _, _, plan in members):
        return None
    shape, table = first.shaped.shape, FamilyTable(frozenset(places))
    if begins:
        table = replace(table, carrier=carrier_of(first, shape, table.places))
    made = family_plan(first, shape, first.shaped.constants, table)
    if made is None or (begins and table.carrier is None):
        return None
    family = Family(made, tuple(places), ((),) * row_count, ((),) * row_count, first)
    rows, owners = [*family.rows], [*family.owners]
    for number, row, plan in members:
        if not family.takes(plan):
            return None
        rows[row] = family.row(plan)
        owners[row] = (*owners[row], number)
    used = {row: rows[row] for row, some in enumerate(owners) if some}
    made = with_rows(titled(made, f"the family of {first.identity.title}"), places, used)
    return replace(family, plan=made, rows=tuple(rows), owners=tuple(owners))


def _family(
    plans: Sequence[QueryPlan], numbers: Sequence[int], planned: FamilyPlans
) -> Family | None:
    """The family of some queries of one shape; None if no plan can run it."""
    owners: dict[tuple[str, ...], list[int]] = {}  # by the texts of their constants
    for number in numbers:
        owners.setdefault(plans[number].constant_texts, []).append(number)
    columns = [*zip(*owners, strict=True)]
    places = tuple(i for i, column in enumerate(columns) if len({*column}) > 1)
    rows = tuple(zip(*(columns[i] for i in places), strict=True)) if places else ((),)
    first = plans[numbers[0]]
    plan = planned.plan(first, places)
    if plan is None:
        return None
    plan = with_rows(plan, places, dict(enumerate(rows)))
    plan = titled(plan, f"{first.identity.title} and {len(numbers) - 1} more of its family")
    return Family(plan, places, rows, tuple(map(tuple, owners.values())), first)


def with_rows(
    plan: QueryPlan, places: Sequence[int], rows: Mapping[int, Sequence[str]]
) -> QueryPlan:
    """A family's plan with other rows in its table, by number."""
    columns = {
        variable.name: [row[i] for row in rows.values()]
        for i, place in enumerate(places)
        for variable in (parameter(place), total(place))
    }
    columns[QUERY] = [*map(row_term, rows)]
    return _with_patterns(plan, lambda pattern: _with_columns(pattern, columns))


def _with_columns(pattern: n.Pattern, columns: Mapping[str, Sequence[str]]) -> n.Pattern:
    """A family's pattern with other columns, by variable, in its table."""
    if isinstance(pattern, n.Table) and QUERY in pattern.variables:
        rows = zip(*(columns[v] for v in pattern.variables), strict=True)
        return n.Table(pattern.variables, tuple(rows))
    return mapped(pattern, lambda operand: _with_columns(operand, columns))


def _with_patterns(plan: QueryPlan, change: Callable[[n.Pattern], n.Pattern]) -> QueryPlan:
    """The plan with other graph patterns."""
    patterns = plan.patterns
    gpms = tuple(replace(gpm, pattern=change(gpm.pattern)) for gpm in patterns.gpms)
    memberships = tuple(replace(m, pattern=change(m.pattern)) for m in patterns.memberships)
    return replace(plan, patterns=replace(patterns, gpms=gpms, memberships=memberships))


@record
class UnitPlan:
    """The plans of a unit's queries, by number; without a `family` there is one.

    A family's `plans` may get further members.
    """

    plans: Mapping[int, QueryPlan]
    family: Family | None = None

    @property
    def plan(self) -> QueryPlan:
        """The plan of the query or the family."""
        return self.only[1] if self.family is None else self.family.plan

    @property
    def only(self) -> tuple[int, QueryPlan]:
        """The number and the plan of a single query."""
        ((number, plan),) = self.plans.items()
        return number, plan


class EventReader(Protocol):
    """A reader of the events of a registered stream, or of the changes of a graph."""

    def match_batch(self, events: EventBatch) -> SolutionBatch:
        """The solutions of many events."""

    def push(self, rows: SolutionBatch) -> None:
        """Take solutions."""


@record
class QueryUnits:
    """The units of a run's queries.

    `families` has the families, by number. `plans` has the plan of each unit. If answers are
    `limited`, answers that a limit counts together come from one stage 2.
    """

    queries: tuple[QueryPlan, ...]
    families: Mapping[int, Family]
    plans: Mapping[int, QueryPlan]
    limited: bool = False

    @classmethod
    def of(
        cls,
        queries: Sequence[QueryPlan],
        families: Sequence[Family] | None = None,
        limited: bool = False,
    ) -> QueryUnits:
        """The units of some queries, with all possible families unless some are given."""
        all_families = families_of(queries) if families is None else families
        known = {family.members[0]: family for family in all_families}
        members = {n for family in all_families for n in family.members}
        plans = {
            n: known[n].plan if n in known else plan
            for n, plan in enumerate(queries)
            if n in known or n not in members
        }
        return cls(tuple(queries), known, plans, limited)

    def shipped(self) -> QueryUnits:
        """The units without the parts that only the planner reads; workers get these."""
        families = {
            n: replace(family, first=family.first.without_shape())
            for n, family in self.families.items()
        }
        queries = [query.without_shape() for query in self.queries]
        return QueryUnits.of(queries, [*families.values()], self.limited)

    def members(self, unit: int) -> tuple[int, ...]:
        """The queries of a unit."""
        return self.families[unit].members if unit in self.families else (unit,)

    def key(self, unit: int) -> tuple[str, ...] | None:
        """The variables by which stage 2 of a unit can be split; a family by its members."""
        return split_key(self.plans[unit], self.limited)

    def unit_plan(self, unit: int) -> UnitPlan:
        """The plans of a unit's queries."""
        plans = {number: self.queries[number] for number in self.members(unit)}
        return UnitPlan(plans, self.families.get(unit))


def split_key(plan: QueryPlan, limited: bool) -> tuple[str, ...] | None:
    """The variables by which stage 2 of a query or family can be split; None if by none.

    If answers are `limited`, a partition is not split. A family is split at least by its members.
    """
    partition, key = plan.sequence.partition, plan.sequence.key.variables
    if limited and key is not None:
        key = partition or None
    knows_members = QUERY in partition and not plan.inputs.windows  # stage 1 of it does
    return key or ((QUERY,) if knows_members else None)
