"""Families: queries that are equal but for constants run as one query.

The query of a family has a variable in the place of each constant in which its members differ. Each
of its GPMs begins with VALUES, which has a row for each member: the member's number and its
constants. PARTITION BY gets the number as one more variable. So each member has its own partitions,
and all that the language says of partitions holds for members: windows, selection strategies and
negated steps look at the events of one member.

A family evaluates a pattern for all members, and then joins the solutions with the table. So it
needs more solutions on the way than a member, whose pattern has its constants from the beginning.

Where the first step of every match is one GPM, a family may *begin with the member*: this GPM alone
has the table, and the number is no variable of PARTITION BY. Its solutions carry the constants that
later steps are compared with, so solutions of later steps belong to all members, and are made once.
Partial matches of members then wait side by side in a partition. This needs conditions that ask
each partial match for itself: no `,`, no selection strategy, no AFTER MATCH.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial

from spaseq import thresholds
from spaseq.algebra import nodes as n
from spaseq.algebra.constants import constant_text
from spaseq.algebra.nodes import mapped, with_expressions
from spaseq.errors import QueryText
from spaseq.lang import ast
from spaseq.lang.format import format_query, with_window
from spaseq.lang.resolve import resolve
from spaseq.lang.sequence import Chain, GpmStep, Repeat, chains, occurrences, steps
from spaseq.lang.shapes import QUERY, Constant, Shape, is_made, parameter, total
from spaseq.lang.variables import rewritten, walk
from spaseq.plan.planner import plan_as_written, signature, with_fingerprint
from spaseq.plan.planning_options import CompileOptions
from spaseq.plan.query_plan import GpmPlan, QueryPlan, StageKey
from spaseq.plan.rules import apply_rules
from spaseq.plan.sequencing import sequence_window, with_gpms
from spaseq.rdf.terms.term import XSD_STRING, split_literal
from spaseq.records import record


def with_constants(
    pattern: n.Pattern, known: Mapping[str, Constant], carried: Mapping[str, str]
) -> n.Pattern:
    """A pattern of a family for one row of its table.

    The constants in `known`, by name of the parameter, stand where the parameters stood. `carried`
    has the row's texts of the variables that stay in the table.
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


_NO_SUM = ast.Iri("no:sum")
"""The value of a sum that is an error: nothing is less or greater than an IRI."""

_ANY = ast.Iri("any:thing")
"""It stands for the constants of members in what a fingerprint is made of."""

_ANY_LENGTH = ast.TimeSpan(1, "SECONDS")
"""It stands for the length of a window where families that differ in it only are planned once."""


@record
class Family:
    """Queries of one shape, and the plan that runs all of them.

    `members` are the numbers of the queries in their run. Queries that do not differ in any
    constant have a row together: `rows` has for each row of the table its constants, and `owners`
    the queries. Only the constants at `places` differ. `first` is a member's plan.
    """

    plan: QueryPlan
    places: tuple[int, ...]
    rows: tuple[tuple[str, ...], ...]
    owners: tuple[tuple[int, ...], ...]
    first: QueryPlan

    @property
    def begins_with_member(self) -> bool:
        """Whether solutions of the first step alone have a member's number."""
        return QUERY not in self.plan.sequence.partition

    @property
    def members(self) -> tuple[int, ...]:
        """The numbers of the queries, ascending."""
        return tuple(sorted(number for owners in self.owners for number in owners))

    def only(self, row: int) -> QueryPlan:
        """The family's plan for the queries of one row, with their constants in its patterns.

        To evaluate it needs what one of these queries needs by itself.
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
        """The family with other members, each in a row of its own, and without some.

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
    """The N-Triples text that stands for a row of a family's table."""
    return f'"{row}"'


def row_of(term: str) -> int:
    """The row that a term stands for."""
    return int(term[1:-1])


def families_of(plans: Sequence[QueryPlan], begun: bool = False) -> tuple[Family, ...]:
    """The families of enough queries each, in order of their first members.

    Families may begin with the member only if `begun`: no limit counts what a member has, and
    nobody asks for its partial matches.
    """
    alike: dict[object, list[int]] = {}
    known: dict[tuple[int, tuple[str, ...]], list[int]] = {}  # by the identity of a shape
    for number, plan in enumerate(plans):
        if plan.shape is not None and plan.is_member:
            key = id(plan.shape), plan.disabled
            if key not in known:
                known[key] = alike.setdefault((plan.shape, plan.disabled), [])
            known[key].append(number)
    planned = _FamilyPlans(begun)
    families = (
        _family(plans, numbers, planned)
        for numbers in alike.values()
        if len(numbers) >= thresholds.current.family_queries
    )
    return tuple(family for family in families if family is not None)


def family_key(plan: QueryPlan) -> object | None:
    """What is equal for queries that may be of one family; None if a query may be of none."""
    return None if plan.shape is None or not plan.is_member else (plan.shape, plan.disabled)


def are_alike(plan: QueryPlan, other: QueryPlan) -> bool:
    """Whether two queries may be of one family."""
    key = family_key(plan)
    return key is not None and key == family_key(other)


def family_begun_by(plan: QueryPlan, begun: bool = False) -> Family | None:
    """A family with one member, number 0, which others may join whatever their constants are.

    `begun` is as for `families_of`.
    """
    if plan.shaped is None or not plan.is_member or plan.inputs.windows:
        return None  # what a window holds is that of its first members
    places = tuple(range(len(plan.shaped.constants)))
    family_plan = _FamilyPlans(begun).plan(plan, places)
    if family_plan is None or not places:
        return None
    family_plan = _titled(family_plan, f"the family of {plan.identity.title}")
    row = plan.constant_texts
    return Family(with_rows(family_plan, places, {0: row}), places, (row,), ((0,),), plan)


def family_again(
    places: Sequence[int], row_count: int, members: Sequence[tuple[int, int, QueryPlan]]
) -> Family | None:
    """A family as `Family.changed` has left it, of (number, row, plan) for each member.

    None if there is no such family.
    """
    first = members[0][2]
    if first.shaped is None or not all(are_alike(first, plan) for _, _, plan in members):
        return None
    made = _plan(first, first.shaped.shape, first.shaped.constants, _Table(frozenset(places)))
    if made is None:
        return None
    family = Family(made, tuple(places), ((),) * row_count, ((),) * row_count, first)
    rows, owners = [*family.rows], [*family.owners]
    for number, row, plan in members:
        if not family.takes(plan):
            return None
        rows[row] = family.row(plan)
        owners[row] = (*owners[row], number)
    used = {row: rows[row] for row, some in enumerate(owners) if some}
    made = with_rows(_titled(made, f"the family of {first.identity.title}"), places, used)
    return replace(family, plan=made, rows=tuple(rows), owners=tuple(owners))


def _titled(plan: QueryPlan, title: str) -> QueryPlan:
    """The plan under another name."""
    return replace(plan, identity=replace(plan.identity, name=title, title=title))


class _FamilyPlans:
    """The plans of several families.

    A plan does not depend on how long a window of time is. So of families that differ in nothing
    else one is planned, and the others get its plan with their own windows.
    """

    def __init__(self, begun: bool) -> None:
        self._known: dict[object, _Planned | None] = {}
        self._begun = begun

    def plan(self, first: QueryPlan, places: tuple[int, ...]) -> QueryPlan | None:
        """What `_plan` makes, given a member's plan and the places of its own constants."""
        assert first.shaped is not None
        shape, constants = first.shaped.shape, first.shaped.constants
        common = tuple(constant for i, constant in enumerate(constants) if i not in places)
        alike = _without_length(shape.query), shape.binders, places, common, first.disabled
        if alike not in self._known:
            table = _Table(frozenset(places))
            plan = None
            if self._begun:
                carrier = _carrier(first, shape, table.places)
                if carrier is not None:
                    table = replace(table, carrier=carrier)
                    plan = _plan(first, shape, constants, table)
            if plan is None or not plan.sequence.evaluator.name.startswith("compiled-"):
                table = replace(table, carrier=None)
                plan = _plan(first, shape, constants, table)
            open_query = partial(_open_query, shape, constants, table)
            self._known[alike] = None if plan is None else _Planned(plan, open_query)
            return plan
        known = self._known[alike]
        return None if known is None else known.within(shape.query)


class _Planned:
    """The plan of a family, which others may get with their own windows."""

    def __init__(self, plan: QueryPlan, open_query: Callable[[], ast.Query]) -> None:
        self._plan, self._open_query = plan, open_query

    @cached_property
    def _text(self) -> tuple[ast.TimeWindow, str]:
        """The window, and the canonical text."""
        query = self._open_query()
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


def _family(
    plans: Sequence[QueryPlan], numbers: Sequence[int], planned: _FamilyPlans
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
    plan = _titled(plan, f"{first.identity.title} and {len(numbers) - 1} more of its family")
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
class _Table:
    """The table of a family: the `places` of its constants, and which GPM has it.

    It is the `carrier`, if the family begins with the member; else all GPMs have it.
    """

    places: frozenset[int]
    carrier: str | None = None


def _carrier(first: QueryPlan, shape: Shape, places: frozenset[int]) -> str | None:
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
    """The kinds of operators that join the steps of a sequence."""
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


def _plan(
    first: QueryPlan, shape: Shape, constants: Sequence[Constant], table: _Table
) -> QueryPlan | None:
    """The plan of a family; its table has one row.

    None if the family's query is none that the planner takes.
    """
    query = _query(shape, constants, table)
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
    plan = _titled(apply_rules(plan, first.disabled), "family")
    plan = with_fingerprint(plan, _open_query(shape, constants, table))
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


def _open_query(shape: Shape, constants: Sequence[Constant], table: _Table) -> ast.Query:
    """The query of a family without the constants of any member."""
    some = [_ANY if i in table.places else constant for i, constant in enumerate(constants)]
    return _query(shape, some, table)


def _sums(gpm: GpmPlan) -> frozenset[str]:
    """The sums that a GPM makes; each has a value in every solution."""
    return frozenset(filter(is_made, gpm.variables))


def _query(shape: Shape, constants: Sequence[Constant], table: _Table) -> ast.Query:
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
        """The variable of a sum in the place of the sum."""
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
        """The variable of a constant that the first step has."""
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


@record
class UnitPlan:
    """The plans of a unit's queries, by number; a query that is in no `family` is the only one.

    A family's `plans` may soon have further members.
    """

    plans: Mapping[int, QueryPlan]
    family: Family | None = None

    @property
    def plan(self) -> QueryPlan:
        """What is evaluated: the plan of the query, or of the family."""
        return self.only[1] if self.family is None else self.family.plan

    @property
    def only(self) -> tuple[int, QueryPlan]:
        """The number and the plan of the query by itself."""
        ((number, plan),) = self.plans.items()
        return number, plan
