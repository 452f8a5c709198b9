"""Turns a sequence into steps with a partial order, which can be matched in any order.

Under `:` and AND a match is a choice of one solution per step. The operators only say which steps
precede which, how far apart they may be, and which must not share an event. So an automaton whose
joins are all skip-till-any becomes one `Pattern` per way through it; `?` and `|` make several ways.
Compare the partial sequences of "Lazy Chain Automata", section 4.3, and its multi-chains, 5. The
lazy evaluator uses the patterns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Literal, TypeAlias

from spaseq.automaton.program.nfa import Automaton, BracketLabel, Edge, Program, State, TakeLabel
from spaseq.records import record

MOST_PATTERNS = 16
"""Another evaluator runs automata with more ways than this."""

MOST_STEPS = 100
"""Another evaluator runs sequences with more steps than this."""


@record
class PatternStep:
    """One step of a pattern: a solution of GPM `gpm`, taken along edge `edge`."""

    gpm: int
    name: str
    edge: int


@record
class Gap:
    """At most `ms` milliseconds between the last of some steps and the first of others."""

    lasts: tuple[int, ...]
    firsts: tuple[int, ...]
    ms: int


@record
class Absence:
    """A negated step: none of its patterns matches between the steps `after` and `before`.

    Without `after` it is in first place, without `before` in last place.
    """

    negation: int
    after: tuple[int, ...]
    before: tuple[int, ...]
    patterns: tuple[Pattern, ...]


@record
class Pattern:
    """Steps, numbered in the order of the text, and the constraints between them.

    The pattern of a negated step begins with the `outer` steps of the match around it. A step sees
    the bindings of the steps with smaller numbers.
    """

    steps: tuple[PatternStep, ...]
    outer: int
    before: tuple[frozenset[int], ...]  # by step: the steps before it
    apart: tuple[frozenset[int], ...]  # by step: the steps with other events
    together: tuple[frozenset[int], ...]  # by step: the steps with its timestamp
    gaps: tuple[Gap, ...]
    absences: tuple[Absence, ...]

    @property
    def own(self) -> range:
        """The steps that do not belong to the match around."""
        return range(self.outer, len(self.steps))

    @property
    def last(self) -> tuple[int, ...]:
        """The steps that no step follows; one of them has the last event."""
        return tuple(i for i in self.own if not any(i in b for b in self.before))


class NotReorderable(Exception):
    """A sequence depends on the order of arrival, or is too large. The message gives the reason."""


def _too_long() -> NotReorderable:
    return NotReorderable(f"it has more than {MOST_STEPS} steps")


def patterns_of(program: Program) -> tuple[Pattern, ...]:
    """The patterns whose matches together are the matches of a program.

    Raises:
        NotReorderable: it has an operator other than `:`, a repetition, or too many ways through.
    """
    return tuple(_flat(way, program, None, (), ()) for way in _ways(program.automaton))


# --- ways through an automaton ------------------------------------------------------------------


@record
class _Pair:
    kind: Literal["&", "AND"]
    left: _Series
    right: _Series


_Part: TypeAlias = "Edge | _Pair | _Series"


@record
class _Item:
    part: _Part
    gap_ms: int | None
    negations: tuple[int, ...]  # passed before it


@record
class _Series:
    items: tuple[_Item, ...]
    negations: tuple[int, ...]  # passed at the end


def _ways(automaton: Automaton) -> list[_Series]:
    ways = list(islice(_paths(automaton, automaton.states[0], ()), MOST_PATTERNS + 1))
    if len(ways) > MOST_PATTERNS:
        raise NotReorderable(f"`?` and `|` make more than {MOST_PATTERNS} sequences of it")
    return ways


def _paths(automaton: Automaton, state: State, items: tuple[_Item, ...]) -> Iterator[_Series]:
    if len(items) > MOST_STEPS:
        raise _too_long()
    if any(e.exits for e in state.edges) or any(e.exits for e in state.acceptances):
        raise NotReorderable("a greedy loop looks for one more repetition")
    for end in state.acceptances:
        if end.actions:
            raise NotReorderable("a step is repeated")
        yield _Series(items, end.negations)
    for edge in state.edges:
        join = edge.join
        if edge.actions:
            raise NotReorderable("a step is repeated")
        if join is not None and join.kind != ":":
            raise NotReorderable(f"`{join.kind}` depends on what arrives in between")
        for part in _parts(edge):
            item = _Item(part, join.gap_ms if join else None, edge.negations)
            yield from _paths(automaton, automaton.states[edge.target], (*items, item))


def _parts(edge: Edge) -> Iterator[_Part]:
    match edge.label:
        case TakeLabel():
            yield edge
        case BracketLabel("|", operands):
            for operand in operands:
                yield from _ways(operand)
        case BracketLabel(kind, (left, right)):
            assert kind != "|"
            for first in _ways(left):
                for second in _ways(right):
                    yield _Pair(kind, first, second)


# --- flattening ---------------------------------------------------------------------------------

_Ends: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""The steps that may have the first event, and the steps that may have the last."""

_Passed: TypeAlias = tuple[int, tuple[int, ...], tuple[int, ...]]
"""A negation, with the steps right before and right after it."""


def _flat(
    way: _Series,
    program: Program,
    around: Pattern | None,
    after: tuple[int, ...],
    before: tuple[int, ...],
) -> Pattern:
    """The pattern of a match, or of a negated step between steps of the pattern around it."""
    flattener = _Flattener(around)
    flattener.series(way)
    pattern = flattener.pattern(after, before)
    absences = tuple(_absence(program, pattern, *passed) for passed in flattener.passed)
    return Pattern(
        pattern.steps,
        pattern.outer,
        pattern.before,
        pattern.apart,
        pattern.together,
        pattern.gaps,
        absences,
    )


def _absence(
    program: Program,
    around: Pattern,
    negation: int,
    after: tuple[int, ...],
    before: tuple[int, ...],
) -> Absence:
    ways = _ways(program.negated[negation].automaton)
    inner = tuple(_flat(way, program, around, after, before) for way in ways)
    return Absence(negation, after, before, inner)


class _Flattener:
    """Numbers the steps of one way through an automaton, and collects their constraints."""

    def __init__(self, around: Pattern | None) -> None:
        self._steps = list(around.steps) if around else []
        self._outer = len(self._steps)
        self._before = [set(s) for s in around.before] if around else []
        self._apart: list[set[int]] = [set() for _ in self._steps]
        self._together: list[set[int]] = [set() for _ in self._steps]
        self._gaps: list[Gap] = []
        self.passed: list[_Passed] = []

    def pattern(self, after: tuple[int, ...], before: tuple[int, ...]) -> Pattern:
        """The pattern without its absences; its own steps lie between the given steps."""
        own = range(self._outer, len(self._steps))
        earlier = set(after).union(*(self._before[i] for i in after))
        for i in own:
            self._before[i] |= earlier
        for i in before:
            self._before[i].update(own)
        return Pattern(
            tuple(self._steps),
            self._outer,
            tuple(map(frozenset, self._before)),
            tuple(map(frozenset, self._apart)),
            tuple(map(frozenset, self._together)),
            tuple(self._gaps),
            (),
        )

    def series(self, series: _Series) -> _Ends:
        """Number the steps of steps that follow each other."""
        start = len(self._steps)
        firsts: tuple[int, ...] = ()
        lasts: tuple[int, ...] = ()
        for item in series.items:
            done = range(start, len(self._steps))
            begin, end = self._part(item.part)
            for i in range(done.stop, len(self._steps)):
                self._before[i].update(done)
            if item.gap_ms is not None:
                self._gaps.append(Gap(lasts, begin, item.gap_ms))
            self.passed += [(n, lasts, begin) for n in item.negations]
            firsts, lasts = firsts or begin, end
        self.passed += [(n, lasts, ()) for n in series.negations]
        return firsts, lasts

    def _part(self, part: _Part) -> _Ends:
        match part:
            case Edge():
                return self._step(part)
            case _Series():
                return self.series(part)
            case _Pair(kind, left, right):
                return self._pair(kind, left, right)

    def _step(self, edge: Edge) -> _Ends:
        assert isinstance(edge.label, TakeLabel)
        number = len(self._steps)
        if number == MOST_STEPS:
            raise _too_long()
        self._steps.append(PatternStep(edge.label.gpm, edge.label.name, edge.id))
        for table in (self._before, self._apart, self._together):
            table.append(set())
        return (number,), (number,)

    def _pair(self, kind: str, left: _Series, right: _Series) -> _Ends:
        start = len(self._steps)
        firsts, lasts = self.series(left)
        middle = len(self._steps)
        more_firsts, more_lasts = self.series(right)
        everything = range(start, len(self._steps))
        if kind == "&":
            for i in everything:
                self._together[i].update(set(everything) - {i})
        else:
            for i in range(start, middle):
                self._apart[i].update(range(middle, len(self._steps)))
            for i in range(middle, len(self._steps)):
                self._apart[i].update(range(start, middle))
        return firsts + more_firsts, lasts + more_lasts
