"""From matches to answers: HAVING, projection, order (docs/meaning.md#order-of-answers).

Many matches at a time become columns, made from the numbers of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from operator import itemgetter, lt
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from spaseq import thresholds
from spaseq.algebra.answer_batch import AnswerBatch, AnswerNames, Runs
from spaseq.algebra.answers import AFTER_ALL, Answer, PartialAnswer
from spaseq.algebra.construct import Template
from spaseq.automaton.batch.match_builder import NumberedMatches, joined
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import Binding, SequenceMatch, picker
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.errors import RunError
from spaseq.expr.compile import compile_filter, compile_term
from spaseq.lang.shapes import QUERY
from spaseq.lang.variables import is_made
from spaseq.plan.evaluators import limits, selects, skips_nothing
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch, row_order
from spaseq.rdf.columns.term_columns import TermColumn, distinct_codes
from spaseq.records import record
from spaseq.stages.match_env import MatchEnv, computed_values, values_of

_place = itemgetter(*map(Answer._fields.index, ("end", "first", "trace")))
"""The part of an answer that usually decides its order."""

_LAST_CLOSE = (2**63 - 1, AFTER_ALL)
"""The close of a window that the end of the streams closes."""

MOST_BYTES = 2**32
"""Limit on the estimated memory of the answers of one watermark step."""

_ANSWER_BYTES, _EVENT_BYTES = 1024, 16

_LAYOUTS = 4096
"""Maximum number of match layouts in the cache."""

_new = partial(tuple.__new__, Answer)

_Pick: TypeAlias = Callable[[Sequence[Binding]], tuple[Binding, ...]]


@record
class _Layout:
    """Picks the single variables, by name, and the projected ones from a match's bindings."""

    singles: _Pick
    bindings: _Pick


class Projection:
    """Turns the matches of one query into answers."""

    def __init__(self, plan: QueryPlan) -> None:
        self._name = plan.identity.name
        having, projection = plan.answers.having, plan.answers.projection
        self._computed = computed_values(plan)
        computed = {variable.name for variable in plan.answers.computed}
        self._variables = sorted(computed.union(*(g.variables for g in plan.patterns.gpms)))
        self._having = None if having is None else compile_filter(having, plan.expressions)
        self._projected = [p.name for p in projection]
        self._only_variables = having is None and all(p.expr is None for p in projection)
        self._terms = [
            (p.name, None if p.expr is None else compile_term(p.expr, plan.expressions))
            for p in projection
        ]
        self._layouts: dict[tuple[int | str, ...], _Layout] = {}

    def answers(self, matches: Iterable[SequenceMatch]) -> Iterator[tuple[SequenceMatch, Answer]]:
        """The matches for which HAVING is true, with their answers.

        Raises:
            RunError: the answers need more memory than `MOST_BYTES`.
        """
        room = MOST_BYTES
        for match in matches:
            answer = self._answer(match)
            if answer is not None:
                room -= _ANSWER_BYTES + _EVENT_BYTES * len(match.solutions)
                if room < 0:
                    raise self.too_many(len(answer.trace))
                yield match, answer

    def too_many(self, events: int) -> RunError:
        """The error for too many answers, given the number of events of the last answer."""
        return RunError(
            f"query {self._name} has more answers at once than {MOST_BYTES:,} bytes hold, the last "
            f"of them with {events:,} events: shorten WITHIN, add a condition that ties "
            "the steps together, SELECT fewer of them, or limit the answers of each event "
            "(--limit-per-event)"
        )

    def _answer(self, match: SequenceMatch) -> Answer | None:
        """The answer of a match; None if HAVING is not true."""
        solutions = match.solutions
        trace = tuple([solution.item for solution in solutions])
        if not all(map(lt, trace, trace[1:])):
            trace = tuple(sorted({*trace}))
        # Solutions of one shape bind the same variables, and these are single, so their values
        # agree.
        by_shape = {solution.shape: solution.singles for solution in solutions}
        pairs = [*chain.from_iterable(by_shape.values())]
        key: tuple[int | str, ...] = tuple(by_shape)
        end = trace[-1][:2] if match.close is None else (match.close, AFTER_ALL)
        groups = match.lists
        if self._computed:
            env = MatchEnv(pairs, groups, trace, end[0])
            computed, groups = values_of(self._computed, env)
            key += tuple([f"computed {v}" for v, _ in computed])
            pairs += computed
        lists = groups and tuple(sorted((v, xs) for v, xs in groups.items() if xs))
        if lists:
            key += tuple([v for v, _ in lists])
            pairs += [(v, xs[-1]) for v, xs in lists]
        layout = self._layouts.get(key) or self._layout(key, pairs)
        singles = layout.singles(pairs)
        if self._only_variables:
            bindings = layout.bindings(pairs)
        else:
            env = MatchEnv(pairs, groups, trace, end[0])
            if self._having is not None and not self._having(env):
                return None
            bindings = tuple(self._bindings(env))
        return _new((trace[0][:2], end, trace, bindings, singles, lists or (), None, None))

    def _layout(self, key: tuple[int | str, ...], pairs: Sequence[Binding]) -> _Layout:
        """The positions of a match's variables in its pairs.

        `key`, the key of the cache, is the shapes of its solutions, its lists, and the names of its
        computed variables.
        """
        places = {pair[0]: i for i, pair in enumerate(pairs)}
        singles = [places[v] for v in self._variables if v in places and v not in key]
        bindings = [places[v] for v in self._projected if v in places]
        layout = _Layout(picker(tuple(singles)), picker(tuple(bindings)))
        if len(self._layouts) >= _LAYOUTS:
            self._layouts.clear()
        self._layouts[key] = layout
        return layout

    def _bindings(self, env: MatchEnv) -> Iterator[tuple[str, str]]:
        """The values of the items of SELECT."""
        for name, term in self._terms:
            value = env.value(name) if term is None else term(env)
            if value is not None:
                yield name, value
                if term is not None:
                    env.extra[name] = value


def _places(answers: Iterable[Answer]) -> list[tuple[Any, ...]]:
    """The first part of the order of answers: end, first instant, trace."""
    places = [*map(_place, answers)]
    if any(item[4] and " " in item[4] for _, _, trace in places for item in trace):
        # Window events at one position may belong to several partitions, with other extents.
        places = [(end, first, tuple([item[:4] for item in t])) for end, first, t in places]
    return places


def order_of(answers: Sequence[Answer]) -> list[int]:
    """The positions of answers in the order of `Answer.order_key`; equal answers share one.

    The key's text is made only for answers whose traces are equal.
    """
    places = _places(answers)
    order = sorted(range(len(answers)), key=places.__getitem__)
    ranked = [places[i] for i in order]
    if all(a != b for a, b in pairwise(ranked)):
        return order
    in_order: list[int] = []
    first = 0
    for end in range(1, len(order) + 1):
        if end < len(order) and ranked[end] == ranked[first]:
            continue
        group = order[first:end]
        if len(group) > 1:
            each: dict[str, int] = {}
            for i in group:
                each.setdefault(answers[i].order_key(), i)
            group = [each[key] for key in sorted(each)]
        in_order += group
        first = end
    return in_order


def partials_in_order(partials: Sequence[PartialAnswer]) -> list[PartialAnswer]:
    """Partial matches in the order of `PartialAnswer.order_key`.

    The keys' texts are made only if the first parts of two keys are equal.
    """
    closes = [p.closed or _LAST_CLOSE for p in partials]
    places = [*zip(closes, _places(p.answer for p in partials), strict=True)]
    order = sorted(range(len(partials)), key=places.__getitem__)
    if any(places[a] == places[b] for a, b in pairwise(order)):
        return sorted(partials, key=PartialAnswer.order_key)
    return [partials[i] for i in order]


@record
class RowRanks:
    """The ranks [n] of rows among items of traces, and among instants; equal rows share a rank."""

    items: Int64s
    instants: Int64s

    @classmethod
    def of(cls, rows: SolutionBatch, names: AnswerNames) -> RowRanks:
        """The ranks of the rows of some answers."""
        stream, gpm = _ranks(names.streams)[rows.stream], _ranks(names.gpms)[rows.gpm]
        keys = (stream, gpm, rows.k, rows.time)
        order = row_order(keys[::-1])
        new = [np.diff(key[order]) != 0 for key in keys]
        later = new[2] | new[3]
        return cls(_dense(order, later | new[0] | new[1]), _dense(order, later))


def can_be_ordered(solutions: Runs) -> bool:
    """Whether `in_order` has enough memory for answers of these solutions."""
    return len(solutions) * int(solutions.lengths.max(initial=0)) <= thresholds.current.order_table


def in_order(answers: AnswerBatch, rank: RowRanks) -> AnswerBatch:
    """The distinct answers, in order.

    A trace begins with the first instant, so end and trace decide. The texts of bindings are
    compared only where traces are equal. In a family the answers of each member stand together.
    """
    trace, n = answers.trace, len(answers)
    lengths = trace.lengths
    table = np.full((n, int(lengths.max(initial=0)) + 1), -1, np.int64)
    row = np.repeat(np.arange(n), lengths)
    table[row, 1 + np.arange(len(row)) - np.repeat(trace.begins, lengths)] = rank.items[
        trace.places
    ]
    table[:, 0] = rank.instants[answers.last]
    if QUERY in answers.names.singles:
        table = np.column_stack([answers.column(QUERY).codes, table])
    order = row_order([*table.T])
    equal = (table[order[1:]] == table[order[:-1]]).all(axis=1)
    if equal.any():
        order = _among_equals(answers, order, equal)
    if len(order) == n and (order[1:] > order[:-1]).all():
        return answers
    return answers.take(order)


def _ranks(names: tuple[str, ...]) -> Int32s:
    """The rank of each name in the order of names."""
    ranks = np.argsort(np.argsort(np.array(names, object), kind="stable"), kind="stable")
    return ranks.astype(np.int32)


def _dense(order: Indices, new: Bools) -> Int64s:
    """Dense ranks, given an order of rows [n] and whether each row but the first exceeds the one
    before.

    Equal rows have equal ranks.
    """
    rank = np.zeros(len(order), np.int64)
    rank[order[1:]] = np.cumsum(new)
    return rank


def _among_equals(answers: AnswerBatch, order: Indices, equal: Bools) -> Indices:
    """The order of answers, given the order of their traces and which traces equal the last."""
    tied = np.zeros(len(order), np.bool_)
    tied[1:] |= equal
    tied[:-1] |= equal
    chosen = np.flatnonzero(tied)
    trace_of = np.cumsum(np.concatenate([[True], ~equal]))  # the number of each trace
    ranked = _by_texts(answers, order[chosen], trace_of[chosen])
    if ranked is None:
        made = [*answers.take(order[chosen])]
        ranked = order[chosen][order_of(made)]
    # The traces of the tied answers keep their places; equal answers leave gaps.
    alone = np.flatnonzero(~tied)
    rank = np.empty(len(answers), np.int64)
    rank[order] = trace_of
    rest = np.concatenate([order[alone], ranked])
    return rest[np.argsort(rank[rest], kind="stable")]


def _by_texts(answers: AnswerBatch, chosen: Indices, trace: Int64s) -> Indices | None:
    """Answers in the order of their traces' numbers, then of bindings, without duplicates.

    None if they have group variables, or leave a variable unbound.
    """
    names = answers.names
    columns = [answers.column(v).take(chosen) for v in names.singles if v not in names.groups]
    columns = [column for column in columns if column.codes.max() >= 0]
    if names.groups or any(column.codes.min() < 0 for column in columns):
        return None
    keys = [trace, *map(_text_ranks, columns)]
    order = np.lexsort(keys[::-1])
    new = np.ones(len(order), np.bool_)
    new[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    ordered: Indices = chosen[order[new]]
    return ordered


def _text_ranks(column: TermColumn) -> Int64s:
    """The rank [n] of each row's text by code points; all rows are bound."""
    used, which = distinct_codes(column.codes, len(column.terms))
    texts = column.terms.take(pa.array(used)).to_pylist()
    rank = np.empty(len(texts), np.int64)
    rank[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return rank[which]


_EVALUATORS = ("compiled-chain", "compiled-compact", "compiled-registers")


def _has_columns(template: Template) -> bool:
    from spaseq.algebra.change_batch import has_columns  # few queries make changes

    return has_columns(template)


def can_be_columns(plan: QueryPlan, limit: int | None) -> bool:
    """Whether each match of the evaluator is an answer, unless its graph is empty.

    `limit` is the limit on the answers of an event, if any.
    """
    answers, template = plan.answers, plan.answers.template
    return (
        plan.sequence.evaluator.name in _EVALUATORS
        and (plan.keeps_all_matches or selects(plan))
        and skips_nothing(plan)
        and not answers.distinct
        and (template is None or template.graph is None or _has_columns(template))
        and answers.having is None
        and not answers.computed
        and all(item.expr is None for item in answers.projection)
        and (limit is None or limits(plan))
    )


class ColumnarAnswers:
    """Makes the answers of a query that satisfies `can_be_columns`."""

    def __init__(self, plan: QueryPlan, machine: Machine) -> None:
        # Of the variables that a family adds, only the member's number decides the order.
        names = {v for gpm in plan.patterns.gpms for v in gpm.variables}
        variables = sorted(v for v in names if v == QUERY or not is_made(v))
        groups = machine.program.owner
        self._names = AnswerNames(
            tuple(machine.names),
            tuple(machine.streams),
            tuple(p.name for p in plan.answers.projection if p.name in variables),
            tuple(v for v in variables if v not in groups),
            tuple(v for v in variables if v in groups),
        )

    def answers(self, numbered: NumberedMatches) -> AnswerBatch | None:
        """The answers of some matches, in order; None if columns do not pay off.

        Matches of single solutions at different times, one after the other, need no ranks.
        """
        if sum(len(piece.ends) for piece in numbered.pieces) < thresholds.current.columnar_matches:
            return None
        matches = joined(numbered.pieces)
        first = int(matches.rows.min())
        used, places = distinct_codes(
            (matches.rows - first).astype(np.int32), int(matches.rows.max()) - first + 1
        )
        solutions = Runs(places.astype(np.int64), matches.ends[:, 0].copy())
        if not can_be_ordered(solutions):
            return None
        rows = numbered.builder.columns(used.astype(np.int64) + first)
        times, is_member = rows.time[solutions.places], QUERY in self._names.singles
        if solutions.width == 1 and not is_member and (times[1:] > times[:-1]).all():
            return AnswerBatch(self._names, rows, solutions, solutions)
        rank = RowRanks.of(rows, self._names)
        trace = _traces(solutions, rank.items)
        return in_order(AnswerBatch(self._names, rows, solutions, trace), rank)


def _traces(solutions: Runs, items: Int64s) -> Runs:
    """The solutions in the order of traces, and the distinct items."""
    rank = items[solutions.places]
    rises = np.ones(len(rank), np.bool_)
    rises[1:] = rank[1:] > rank[:-1]
    rises[solutions.begins] = True
    if rises.all():
        return solutions
    match = np.repeat(np.arange(len(solutions)), solutions.lengths)
    order = np.lexsort((rank, match))
    match, rank = match[order], rank[order]
    kept = np.ones(len(rank), np.bool_)
    kept[1:] = (match[1:] != match[:-1]) | (rank[1:] != rank[:-1])
    ends = np.cumsum(np.bincount(match[kept], minlength=len(solutions)))
    return Runs(solutions.places[order[kept]], ends)
