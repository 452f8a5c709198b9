"""A unit over pushed events: a single query, or a family of queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from spaseq import thresholds
from spaseq.algebra.answers import Answer
from spaseq.algebra.needs import Need, needs
from spaseq.algebra.nodes import Pattern
from spaseq.automaton.run.live_states import LiveStates
from spaseq.automaton.run.waiting_limit import Excess
from spaseq.errors import OtherStateError, RunError
from spaseq.expr.casts import CASTS
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.gpm.single_event.event_stage import SingleEventStage
from spaseq.lang import ast
from spaseq.lang.shapes import parameter
from spaseq.lang.variables import walk
from spaseq.plan.families import Family, UnitPlan, family_again
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.runtime.job.unit_graph import RegisteredStream
from spaseq.stages.unit_stages import FamilyPatterns, MatchingStage, Rows, StageFactory
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain


@dataclass(slots=True, eq=False)
class PushedQuery:
    """A query, and the stream that it registers.

    `held` are answers that are not certain yet. `failure` is the reason of its end.
    """

    plan: QueryPlan
    stream: RegisteredStream | None = None
    held: Sequence[Answer] = field(default_factory=list)
    failure: str | None = None

    def certain(self, answers: Sequence[Answer], watermark: int) -> Sequence[Answer]:
        """The answers that are certain at a watermark; its readers get them, too."""
        if not answers and not self.held:  # the usual case
            return answers
        if not self.held and answers[-1].end[0] <= watermark:  # no copy of columns
            return self._told(answers)
        answers = [*self.held, *answers]
        certain = len(answers)
        while certain and answers[certain - 1].end[0] > watermark:  # they are in order
            certain -= 1
        self.held = answers[certain:]
        return self._told(answers[:certain])

    def rest(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """The remaining answers, at the end of the streams."""
        answers, self.held = [*self.held, *answers], []
        return self._told(answers)

    def _told(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        if self.stream is not None:
            self.stream.give(answers)
        return answers if self.plan.maintained is None else []


_RECENT = 64
"""Maximum rows of the table of recently added members, in a small family."""


class PushedUnit:
    """A single query, or a family of queries. All read the same streams.

    The members of a family may come and go; a row of its table is never used twice. `holding` are
    the numbers of queries that hold answers.
    """

    def __init__(
        self, members: Mapping[int, PushedQuery], how: StageFactory, family: Family | None = None
    ) -> None:
        """`members` are the queries, by number; the table of a `family` has their rows."""
        self._how, self._family, self._members = how, family, {**members}
        self._plans = {number: query.plan for number, query in self._members.items()}
        unit = UnitPlan(self._plans, family)
        self.queries, self.title = (*self._members.values(),), unit.plan.identity.title
        self._next = max(self._members) + 1  # the number of the next member
        self.sequence = how.sequence(unit)
        self.holding: set[int] = set()
        self._come: dict[int, QueryPlan] = {}  # members that have no row yet
        self._gone: list[int] = []  # numbers whose rows are not needed any more
        self._tabled = 0 if family is None else len(family.rows)  # in the first table, or in none
        self._tabled_units = [unit]  # what each of the tables is of
        self._tables = [how.patterns(unit)]
        self._events: Sequence[SingleEventStage] | None = None  # made for the first single event
        self._needs: dict[str, Sequence[frozenset[Need]] | None] = {}  # by stream, once asked for

    def graphs_changed(self, graphs: Collection[str]) -> None:
        """Record that graphs have new values, for events of some times."""
        if not set(graphs).isdisjoint(self.plan.inputs.kbs):
            self.use(self._how)

    def use(self, how: StageFactory) -> None:
        """Evaluate with the graph values of a factory."""
        pairs = zip(self._tabled_units, self._tables, strict=True)
        self._how, self._events = how, None
        self._tables = [how.patterns(unit, before) for unit, before in pairs]
        self.sequence.use_values(how.versions.of(self.plan.inputs.kbs))

    @property
    def is_family(self) -> bool:
        """Whether further queries can become members."""
        return self._family is not None

    @property
    def plan(self) -> QueryPlan:
        """The plan of the query or the family."""
        return self._tabled_units[0].plan

    @property
    def feed(self) -> RegisteredStream | None:
        """The stream that the query registers; a family registers none."""
        return None if self.is_family else self.queries[0].stream

    def _set_rows(self) -> None:
        """Set the rows of the table to the present members."""
        assert self._family is not None
        self._events = None
        has_gone = bool(self._gone)
        self._family = self._family.changed(self._come, self._gone)
        for number in self._gone:
            del self._plans[number]
        self._come.clear()
        self._gone.clear()
        self.sequence.use(self._family)
        count = len(self._family.rows)
        # Recently added members have a separate table, which is small.
        if has_gone or count - self._tabled > max(_RECENT, self._tabled // 16):
            self._tabled = count
            self._tabled_units = [UnitPlan(self._plans, self._family.tabled())]
            self._tables = [self._how.patterns(self._tabled_units[0])]
        else:
            recent = UnitPlan(self._plans, self._family.tabled(self._tabled))
            self._tabled_units[1:] = [recent]
            self._tables[1:] = [self._how.patterns(recent)]

    def takes(self, plan: QueryPlan) -> bool:
        """Whether a query can become a member: it has no windows, which hold events already."""
        if self._family is None or plan.inputs.windows:
            return False
        return self._family.takes(plan) and not may_fail(plan)

    def add(self, query: PushedQuery) -> None:
        """Add a member, for the events from now on."""
        number, self._next = self._next, self._next + 1
        self._needs.clear()
        self._members[number] = query
        self._come[number] = self._plans[number] = query.plan
        self.queries = (*self._members.values(),)

    def remove(self, query: PushedQuery) -> None:
        """Remove a member of a family; its partial matches leave with their windows."""
        if self._family is None:
            return
        number = self._number(query)
        del self._members[number]
        self.queries = (*self._members.values(),)
        self.sequence.forget(number)
        if self._come.pop(number, None) is None:
            self._gone.append(number)
        else:
            del self._plans[number]

    def _number(self, query: PushedQuery) -> int:
        return next(n for n, member in self._members.items() if member is query)

    def needs(self, iri: str) -> Sequence[frozenset[Need]] | None:
        """The triples that each GPM needs of an event of a stream, to have solutions.

        None if stage 2 may need other events, too.
        """
        if iri not in self._needs:
            plan = self.plan
            is_asked = plan.inputs.windows or not plan.is_stateless or not self.single_events()
            self._needs[iri] = None if is_asked else _needs(plan, iri, self._family)
        return self._needs[iri]

    def single_events(self) -> Sequence[SingleEventStage]:
        """The matchers of single events, one for each table; none if the unit needs columns."""
        tables = self.tables()
        if self._events is None:
            made = [*map(_single_events, tables)]
            self._events = [each for each in made if each is not None] if all(made) else []
        return self._events

    def match_batch(
        self, events: EventBatch, index: VerticalPartition | None = None
    ) -> SolutionBatch:
        """The solutions of many events; units share `index`.

        A common solution of two members may come twice; stage 2 takes it once.
        """
        first, *others = [table.match(events, index) for table in self.tables()]
        if self._family is None or not others:
            return first
        return SolutionBatch.concat([first, *others], self._family.plan.patterns.columns)

    def tables(self) -> Sequence[MatchingStage]:
        """The stages 1 of the present queries, which together give all solutions."""
        if self._come or self._gone:
            self._set_rows()
        return self._tables

    def push(self, rows: Rows) -> None:
        """Take solutions."""
        self.sequence.push(rows)

    def advance(
        self, watermark: int, ahead: bool
    ) -> Iterator[tuple[PushedQuery, Sequence[Answer]]]:
        """The answers that are certain at a watermark."""
        by_member = self.sequence.advance(watermark, ahead)
        if not by_member and not self.holding:  # the usual case
            return
        due, self.holding = sorted({*by_member, *self.holding} & self._members.keys()), set()
        for number in due:
            query = self._members[number]
            answers = [answer for piece in by_member.get(number, ()) for answer in piece]
            certain = query.certain(answers, watermark)
            if query.held:
                self.holding.add(number)
            if certain:
                yield query, certain

    def close(self, open_end: int | None = None) -> Iterator[tuple[PushedQuery, Sequence[Answer]]]:
        """The remaining answers; `open_end` is as for `SequenceStage`."""
        by_member = self.sequence.close(open_end)
        for number, query in self._members.items():
            answers = [answer for piece in by_member.get(number, ()) for answer in piece]
            yield query, query.rest(answers)

    def exceeded(self) -> Mapping[PushedQuery, Excess]:
        """The instants at which queries exceeded the limit on partial matches, by query."""
        exceeded = self.sequence.exceeded().items()
        return {self._members[n]: excess for n, excess in exceeded if n in self._members}

    def live_states(self, query: PushedQuery) -> LiveStates:
        """The states of the partial matches of a query."""
        return self.sequence.live_states(self._number(query))

    def foreseen(self, query: PushedQuery, until: int) -> Sequence[Answer]:
        """The answers of a query by a watermark (ms), if nothing further comes."""
        return self.sequence.foreseen(self._number(query), until)

    def snapshot(self) -> bytes:
        """The state, for `restored_unit`; no query holds answers."""
        assert not self.holding
        if self._come or self._gone:
            self._set_rows()
        if self._family is None:
            return dump_plain([self.sequence.snapshot()])
        owners = self._family.owners
        row = {number: row for row, some in enumerate(owners) for number in some}
        members = [(n, row[n], plan.signature.canonical) for n, plan in self._plans.items()]
        head = self._family.places, len(owners), members, self._family.begins_with_member
        return dump_plain([self.sequence.snapshot(), *head])


def _single_events(table: MatchingStage) -> SingleEventStage | None:
    """The matcher of single events for a stage 1; None if it needs columns."""
    if isinstance(table, FamilyPatterns):
        plan, stage = table.stage.plan, table.stage
        names = _parameters(table.family)
        told = (needs(gpm.pattern, names) for gpm in plan.patterns.evaluated)
        if len(table.family.rows) > thresholds.current.known_pairs and not all(
            any(target in names for _, target in of_gpm) for of_gpm in told
        ):
            return None
    elif isinstance(table, PatternStage):
        stage = table
    else:
        return None
    if stage.may_ask or stage.plan.changing is not None:
        return None
    return SingleEventStage(stage.plan, stage, table)


def _parameters(family: Family) -> Mapping[str, int]:
    """The variables of a family's table, each with its place in a row."""
    return {parameter(place).name: i for i, place in enumerate(family.places)}


def _needs(plan: QueryPlan, iri: str, family: Family | None) -> Sequence[frozenset[Need]] | None:
    """The triples that each GPM needs of an event of a stream; None if a GPM needs none.

    Of a family: that each GPM needs with the constants of some member.
    """
    stream = plan.inputs.streams.index(iri)
    patterns = [gpm.core for gpm in plan.patterns.evaluated if stream in gpm.streams]
    found = dict[frozenset[Need], None]()
    for pattern in patterns:
        found.update(
            dict.fromkeys([needs(pattern)] if family is None else _of_members(pattern, family))
        )
    return [*found] if all(found) else None


def _of_members(pattern: Pattern, family: Family) -> Iterable[frozenset[Need]]:
    """The triples that a pattern needs with the constants of each member."""
    names = _parameters(family)
    own = needs(pattern, names)
    if all(target not in names for _, target in own):
        return [own]
    rows = (row for row, members in zip(family.rows, family.owners, strict=True) if members)
    constants: Iterable[dict[str | None, str]] = ({v: r[i] for v, i in names.items()} for r in rows)
    return (frozenset((p, known.get(o, o)) for p, o in own) for known in constants)


def _family_unit(
    head: Sequence[Any], queries: Sequence[PushedQuery], how: StageFactory
) -> PushedUnit | None:
    """The family that wrote a snapshot; None if its queries are others."""
    places, row_count, members, begins_with_member = head
    paired = [*zip(members, queries, strict=True)]
    if any(query.plan.signature.canonical != text for (_, _, text), query in paired):
        return None
    rows = [(number, row, query.plan) for (number, row, _), query in paired]
    family = family_again(places, row_count, rows, begins_with_member)
    if family is None:
        return None
    return PushedUnit({number: query for (number, _, _), query in paired}, how, family)


def restored_unit(snapshot: bytes, queries: Sequence[PushedQuery], how: StageFactory) -> PushedUnit:
    """The unit that wrote a snapshot.

    `queries` are its queries, in the order of `PushedUnit.queries`.

    Raises:
        OtherStateError: the snapshot is of other queries, or of an incompatible version.
        RunError: it is damaged.
    """
    title = queries[0].plan.identity.title
    try:
        sequence, *head = load_plain(snapshot)
        if head:
            unit = _family_unit(head, queries, how)
        else:
            (query,) = queries
            unit = PushedUnit({0: query}, how)
    except BROKEN as error:
        raise RunError(f"the state of query {title} is damaged: {error}") from error
    if unit is None:
        raise OtherStateError(f"the state of query {title} and its family is of other queries")
    if isinstance(sequence, list) and not how.takes_parts:
        raise RunError(f"the state of query {title} is in parts, as Spark keeps it: go on there")
    unit.sequence.restore(sequence)
    return unit


def may_fail(plan: QueryPlan) -> bool:
    """Whether a query calls an extension function, so that it may fail alone."""
    return plan.shape is not None and any(
        isinstance(node, ast.FunctionCall) and node.function.value not in CASTS
        for node in walk(plan.shape.query)
    )
