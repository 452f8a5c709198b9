"""From matches to answers: HAVING, projection, order (docs/meaning.md#order-of-answers)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise
from operator import itemgetter, lt
from typing import TypeAlias

from spaseq.algebra.answers import AFTER_ALL, Answer, PartialAnswer, TraceItem
from spaseq.automaton.run.matches import Binding, SequenceMatch, picker
from spaseq.errors import RunError
from spaseq.expr.compile import compile_filter, compile_term
from spaseq.plan.query_plan import QueryPlan
from spaseq.records import record

_place = itemgetter(*map(Answer._fields.index, ("end", "first", "trace")))
"""The part of an answer that decides its order, unless two answers are equal in it."""

_LAST_CLOSE = (2**63 - 1, AFTER_ALL)
"""Stands for the close of a window that the end of the streams closes."""

MOST_BYTES = 2**32
"""Bound on the memory of the answers of one step of the watermark, estimated."""

_ANSWER_BYTES, _EVENT_BYTES = 1024, 16

_LAYOUTS = 4096
"""The most layouts of matches that are kept."""

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
        self._variables = sorted({v for g in plan.patterns.gpms for v in g.variables})
        having, projection = plan.answers.having, plan.answers.projection
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
            RunError: they need more memory than `MOST_BYTES`.
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
        """The error that there are too many answers, the last one with this number of events."""
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
        # Solutions of one shape bind the same variables; these are single, so their values agree.
        by_shape = {solution.shape: solution.singles for solution in solutions}
        pairs = [*chain.from_iterable(by_shape.values())]
        key: tuple[int | str, ...] = tuple(by_shape)
        lists = match.lists and tuple(sorted((v, xs) for v, xs in match.lists.items() if xs))
        if lists:
            key += tuple([v for v, _ in lists])
            pairs += [(v, xs[-1]) for v, xs in lists]
        layout = self._layouts.get(key) or self._layout(key, pairs)
        singles = layout.singles(pairs)
        end = trace[-1][:2] if match.close is None else (match.close, AFTER_ALL)
        if self._only_variables:
            bindings = layout.bindings(pairs)
        else:
            env = MatchEnv({pair[0]: pair for pair in pairs}, match.lists, trace, end[0])
            if self._having is not None and not self._having(env):
                return None
            bindings = tuple(self._bindings(env))
        return _new((trace[0][:2], end, trace, bindings, singles, lists or (), None, None))

    def _layout(self, key: tuple[int | str, ...], pairs: Sequence[Binding]) -> _Layout:
        """The places of a match's variables in its pairs.

        `key`, under which the layout is kept, are the shapes of its solutions and its lists.
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


def order_of(answers: Sequence[Answer]) -> list[int]:
    """The places of answers in the order of `Answer.order_key`; of equal answers, one place.

    The key's text is made only for answers whose traces are equal.
    """
    places = [*map(_place, answers)]
    if any(item[4] and " " in item[4] for _, _, trace in places for item in trace):
        # Window events of one place may be of several partitions, with other extents.
        places = [(end, first, tuple([item[:4] for item in t])) for end, first, t in places]
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

    The keys' texts are made only if two are equal in what comes first in them.
    """
    places = [(p.closed or _LAST_CLOSE, _place(p.answer)) for p in partials]
    order = sorted(range(len(partials)), key=places.__getitem__)
    if any(places[a] == places[b] for a, b in pairwise(order)):
        return sorted(partials, key=PartialAnswer.order_key)
    return [partials[i] for i in order]


class MatchEnv:
    """The variables of a complete match, for SELECT and HAVING; `end` is its end (ms)."""

    __slots__ = ("_end", "_lists", "_singles", "_trace", "extra")

    def __init__(
        self,
        singles: Mapping[str, Binding],
        lists: Mapping[str, tuple[str, ...]],
        trace: Sequence[TraceItem],
        end: int,
    ) -> None:
        self._singles, self._lists, self._trace, self._end = singles, lists, trace, end
        self.extra: dict[str, str] = {}  # projected expressions so far

    def value(self, name: str) -> str | None:
        values = self._lists.get(name)
        if values:
            return values[-1]
        known = self._singles.get(name)
        return known[1] if known is not None else self.extra.get(name)

    def previous(self, name: str) -> str | None:
        return None

    def group(self, name: str) -> Sequence[str]:
        values = self._lists.get(name)
        if values is not None:
            return values
        known = self._singles.get(name)
        return () if known is None else (known[1],)

    def time(self, gpm: str) -> int | None:
        return max((t.time for t in self._trace if t.gpm == gpm), default=None)

    def now(self) -> int | None:
        return self._end
