"""Expands an automaton to waits for single solutions, with brackets of alternatives opened.

A *wait* is an edge at which a partial match waits for a solution of a GPM. Without conditions
between events the future of the match depends on the wait alone. A solution of the GPM leads to the
waits of the next state. Some instants end the wait: because of the operator before the edge, or
because of a negated step that the edge passes.

Opening `(X | Y)` puts the operator before the bracket in front of each alternative's first step.
After `;` that is right only for alternatives of one event. They share their candidates, so the
first instant with a solution of any of them ends the wait for all.

Where repetitions are counted, an edge with the counts of the repetitions around it is a wait. The
waits of a program with greedy loops or UNTIL also have a memory that may forbid them. After `B+
UNTIL U`, it says whether U has been seen since the repetition began. The memory of a wait that
leaves a greedy loop is the progress of one more repetition: the waits of its automaton. Such waits
are made when a partial match first reaches them.

A bracket with `&` or AND is not opened. It is one wait, with the waits of its two operands; its
name has the progress of both (`conjunctions`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias, cast

from spaseq.automaton.program.counters import Action, Counts, LoopMemory, RepeatBounds, Stops
from spaseq.automaton.program.nfa import (
    Automaton,
    BracketLabel,
    Edge,
    GreedyExit,
    Program,
    State,
    TakeLabel,
)
from spaseq.lang.ast.pattern_nodes import OpKind
from spaseq.records import record

MOST_WAITS = 20_000
"""Maximum number of waits of a program, without counts."""

MOST_STAGES = 1024
"""Maximum number of stages of a bracket with `&` or AND."""

MOST_STAGES_AFTER_NEXT = 32
"""The same behind `;`, where a stage also has the earlier candidates."""

BracketName: TypeAlias = tuple[int, tuple[Any, Any] | None, frozenset[tuple[Any, Any]]]
"""The number of a bracket's wait, its stage, and the stages of candidates that began earlier."""

WaitName: TypeAlias = (
    int | tuple[int, Counts] | tuple[int, Counts, Stops, tuple[Any, ...]] | BracketName
)
"""The number of a wait; in a program that counts repetitions, with their counts.

In a program with greedy loops or UNTIL: with counts, stops, and the names of the waits `ahead`.
"""


class TooManyWaits(Exception):
    """A program has too many waits, because its brackets and repetitions nest.

    The message names them.
    """


@record
class Wait:
    """An edge at which partial matches wait."""

    gpm: int
    ends: int  # GPMs, as bits: an instant with one of them ends the wait
    strict: bool  # the next instant ends the wait, whatever its events
    then: tuple[WaitName, ...]  # waits after a solution
    accepts: bool  # the match is complete after a solution
    forbids: int = 0  # GPMs, as bits: an instant with one of them gives it no solution
    stoppers: tuple[tuple[int, int], ...] = ()  # open loops, each with a GPM that it remembers
    ahead: tuple[WaitName, ...] = ()
    """Waits of one more repetition of a greedy loop; if it matches, the wait ends before."""
    bracket: OperandPair | None = None
    """The bracket with `&` or AND that it waits for, instead of a GPM."""


@record
class OperandPair:
    """A bracket with `&` or AND, with the waits of its operands.

    `first_only`: it stands behind `;`, so candidates can forestall each other.
    """

    kind: Literal["&", "AND"]
    left: Waits
    right: Waits
    first_only: bool

    @property
    def stages(self) -> int:
        """An upper bound on the number of stages of its partial matches."""
        return (self.left.stages + 1) * (self.right.stages + 1)


@record
class Waits:
    """All waits of a program by name; the `initial` ones, before any event, never end."""

    waits: Mapping[WaitName, Wait]
    initial: tuple[WaitName, ...]
    strict: bool  # some wait is strict
    gpms: tuple[int, ...]  # that some wait takes, sorted
    edges: Sequence[Edge] = ()  # of the waits, by number

    @property
    def brackets(self) -> Iterator[OperandPair]:
        """The brackets with `&` or AND that are not inside another one."""
        return (wait.bracket for wait in self.waits.values() if wait.bracket is not None)

    @property
    def stages(self) -> int:
        """Number of waits, with the stages of brackets."""
        return sum(1 if w.bracket is None else w.bracket.stages for w in self.waits.values())

    @property
    def has_simultaneity(self) -> bool:
        """Whether there is a bracket with `&`."""
        return any(
            b.kind == "&" or b.left.has_simultaneity or b.right.has_simultaneity
            for b in self.brackets
        )

    def relevant(self, name: WaitName) -> int:
        """The GPMs, as bits, that change a wait."""
        wait = self.waits[name]
        gpms = 1 << wait.gpm | wait.ends | wait.forbids
        for _, stopper in wait.stoppers:
            gpms |= 1 << stopper
        for other in wait.ahead:
            gpms |= self.relevant(other)
        return gpms

    def seen(self, name: WaitName, gpms: int) -> WaitName | None:
        """A wait once it has seen an instant with solutions of some GPMs (as bits).

        It may still take one of them; None if a greedy loop repeats instead.
        """
        wait = self.waits[name]
        if not wait.stoppers and not wait.ahead:
            return name
        assert isinstance(name, tuple) and len(name) == 4
        number, counts, stops, _ = name
        ahead = set[WaitName]()
        for other in wait.ahead:
            then, complete = self.take(other, gpms)
            if complete:
                return None
            ahead.update(then)
            ahead.update(self.stay(other, gpms))
        stopped = {loop for loop, stopper in wait.stoppers if gpms >> stopper & 1}
        stops = tuple([(loop, was or loop in stopped) for loop, was in stops])
        return number, counts, stops, sort(ahead)

    def take(self, name: WaitName, gpms: int) -> tuple[tuple[WaitName, ...], bool]:
        """The waits after a solution at an instant, and whether the match is complete."""
        after = self.seen(name, gpms)
        if after is None:
            return (), False
        wait = self.waits[after]
        if gpms & wait.forbids or not gpms >> wait.gpm & 1:
            return (), False
        return wait.then, wait.accepts

    def stay(self, name: WaitName, gpms: int) -> tuple[WaitName, ...]:
        """The wait after an instant without a solution for it; none if it ends."""
        wait, after = self.waits[name], self.seen(name, gpms)
        return () if after is None or wait.strict or wait.ends & gpms else (after,)


def expand(program: Program) -> Waits:
    """The waits of a program; `plan.evaluators` checks that it has some.

    Raises:
        TooManyWaits: there are more than `MOST_WAITS`.
    """
    return _Expansion(program, program.automaton).waits()


@record
class _Operator:
    """The operator before an edge; the first steps of a bracket inherit it from the bracket."""

    kind: OpKind | None  # None: the match has no events yet
    ends: int  # GPMs whose solutions end the wait, as bits
    forbids: int = 0  # GPMs, as bits, that must have no solution at the instant itself
    begun: frozenset[int] = frozenset()  # loops with UNTIL whose repetition begins here


@record
class _Spot:
    """An edge that takes solutions, and the brackets around it as (automaton, edge)."""

    automaton: Automaton
    around: tuple[tuple[Automaton, Edge], ...]  # outermost first
    edge: Edge
    before: _Operator


@record
class _Past:
    """The origin of a wait: the operator, the memory, and the waits of one more repetition."""

    operator: _Operator
    memory: LoopMemory
    ahead: tuple[WaitName, ...] = ()


class _PlainWaits(dict[WaitName, Wait]):
    """Waits without memory.

    Waits get numbers in the order in which they are found, from the initial ones on. So all earlier
    waits are made first. An unrolled repetition has thousands, of which matches reach a few.
    """

    def __init__(self, expansion: _Expansion) -> None:
        super().__init__()
        self._expansion = expansion

    def __missing__(self, name: WaitName) -> Wait:
        assert isinstance(name, int)
        for number in range(len(self), name + 1):
            self[number] = self._expansion.wait(number, LoopMemory(), ())
        return self[name]


class _RememberedWaits(dict[WaitName, Wait]):
    """Waits with memory, each made at its first use."""

    def __init__(self, expansion: _Expansion) -> None:
        super().__init__()
        self._expansion = expansion

    def __missing__(self, name: WaitName) -> Wait:
        number, counts, stops, ahead = (*cast(tuple[Any, ...], name), (), ())[:4]
        self._expansion.find_after(number)
        wait = self[name] = self._expansion.wait(number, LoopMemory(counts, stops), ahead)
        return wait


class _Expansion:
    def __init__(self, program: Program, automaton: Automaton) -> None:
        self._program, self._automaton = program, automaton
        self._stoppers = {r: self._negated(n) for r, n in program.untils.items()}
        self._further: dict[GreedyExit, Automaton] = {}
        self._numbers: dict[_Spot, int] = {}
        self._spots: list[_Spot] = []
        self._edges: list[Edge] = []  # of the spots
        self._plain = _PlainWaits(self)
        self._remember(False)

    def _remember(self, remembers: bool) -> None:
        """Name waits with memory from now on; without memory every edge can be followed."""
        program = self._program
        self._bounds: Mapping[int, RepeatBounds] = program.bounds if remembers else {}
        self._untils: Collection[int] = self._stoppers if remembers else ()
        self._with_stops = remembers and bool(self._stoppers or program.further)

    def waits(self, is_operand: bool = False) -> Waits:
        """The waits. The waits of operands are all made at once, as their stages are counted."""
        initial, waits, program = self._initial(), self._plain, self._program
        automata = [self._automaton, *program.further.values()]
        edges = [e for automaton in automata for state in automaton.states for e in state.edges]
        takes = [edge.label for edge in edges if isinstance(edge.label, TakeLabel)]
        if len(takes) == len(edges) and not is_operand:
            strict = any(edge.join is not None and edge.join.kind == "," for edge in edges)
            gpms = {label.gpm for label in takes}
        else:
            self._make_all()
            strict = any(map(_is_strict, waits.values()))
            gpms = {w.gpm for w in waits.values() if w.bracket is None}
        made = Waits(waits, initial, strict, tuple(sorted(gpms)), self._edges)
        if not program.bounds and not self._stoppers and not program.further:
            return made
        self._remember(True)
        return replace(made, waits=_RememberedWaits(self), initial=self._initial())

    def _make_all(self) -> None:
        """Make the waits of all spots."""
        for number, _ in enumerate(self._spots):  # grows during the loop
            self._plain[number]

    def find_after(self, number: int) -> None:
        """Give numbers to the spots that follow a spot."""
        if number not in self._plain:
            self._remember(False)
            self._plain[number]
            self._remember(True)

    def _initial(self) -> tuple[WaitName, ...]:
        return self._state(self._automaton, (), 0, LoopMemory())

    def wait(self, number: int, memory: LoopMemory, ahead: tuple[WaitName, ...]) -> Wait:
        """The wait at a spot; `memory` includes the actions of its edge."""
        spot = self._spots[number]
        label, before = spot.edge.label, spot.before
        then, accepts = self._after(spot.automaton, spot.around, spot.edge, memory)
        if isinstance(label, BracketLabel):
            bracket = self._conjunction(label, before.kind == ";")
            return Wait(-1, before.ends, before.kind == ",", then, accepts, bracket=bracket)
        stoppers = tuple(
            (loop, self._stoppers[loop])
            for loop, seen in memory.stops
            if not seen and loop not in before.begun
        )
        strict = before.kind == ","
        return Wait(label.gpm, before.ends, strict, then, accepts, before.forbids, stoppers, ahead)

    def _conjunction(self, label: BracketLabel, first_only: bool) -> OperandPair:
        """The bracket of a label with `&` or AND."""
        assert label.kind != "|"
        left, right = (_Expansion(self._program, operand).waits(True) for operand in label.operands)
        bracket = OperandPair(label.kind, left, right, first_only)
        most = MOST_STAGES_AFTER_NEXT if first_only else MOST_STAGES
        if bracket.stages > most:
            raise TooManyWaits(f"the operands of {label.kind} can be in more than {most:,} stages")
        return bracket

    def _state(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        state: int,
        memory: LoopMemory,
    ) -> tuple[WaitName, ...]:
        """The names of the waits at a state."""
        before = _Past(_Operator(None, 0), memory)
        opened = self._opened(automaton, around, automaton.states[state], before)
        return sort(self._name(self._number(spot), past) for spot, past in opened)

    def _name(self, number: int, past: _Past) -> WaitName:
        if isinstance(self._spots[number].edge.label, BracketLabel):
            return number, None, frozenset()
        if self._with_stops:
            return number, past.memory.counts, past.memory.stops, past.ahead
        return (number, past.memory.counts) if self._bounds else number

    def _number(self, spot: _Spot) -> int:
        if spot not in self._numbers:
            if len(self._spots) == MOST_WAITS:
                raise TooManyWaits(
                    f"its nested brackets make more than {MOST_WAITS:,} places to wait at"
                )
            self._numbers[spot] = len(self._spots)
            self._spots.append(spot)
            self._edges.append(spot.edge)
        return self._numbers[spot]

    def _opened(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        state: State,
        past: _Past,
    ) -> Iterator[tuple[_Spot, _Past]]:
        """The edges of a state that take single solutions, also inside alternatives.

        So do the edges that take a match of a bracket with `&` or AND.
        """
        for edge in state.edges:
            after = past.memory.after(edge.actions, self._bounds, self._untils)
            if after is None:
                continue
            ahead = past.ahead
            if edge.exits:
                ahead = sort([*ahead, *self._ahead(edge, past.memory)])
            here = _Past(self._operator(edge, past.operator), after, ahead)
            if isinstance(edge.label, TakeLabel) or edge.label.kind != "|":
                yield _Spot(automaton, around, edge, here.operator), here
                continue
            for operand in edge.label.operands:
                inside = (*around, (automaton, edge))
                yield from self._opened(operand, inside, operand.states[0], here)

    def _operator(self, edge: Edge, before: _Operator) -> _Operator:
        begun = {a.repeat for a in edge.actions if a.kind != "exit" and a.repeat in self._stoppers}
        forbids = {self._stoppers[loop] for loop in begun}
        if edge.join is None:
            forbidden = before.forbids | _bits(forbids)
            return replace(before, forbids=forbidden, begun=before.begun | begun)
        ends = {self._negated(number) for number in edge.negations}
        if edge.join.kind == ";":
            ends.update(_first_gpms(edge))
        return _Operator(edge.join.kind, _bits(ends | forbids), _bits(forbids), frozenset(begun))

    def _ahead(self, edge: Edge, memory: LoopMemory) -> Iterator[WaitName]:
        """The first waits of one more repetition of the greedy loops that an edge leaves."""
        for left in edge.exits:
            if left not in self._further:
                self._further[left] = _begun(
                    self._program.further[left], self._program.once_more(left)
                )
            yield from self._state(self._further[left], (), 0, memory.only(left.repeat))

    def _after(
        self,
        automaton: Automaton,
        around: tuple[tuple[Automaton, Edge], ...],
        edge: Edge,
        memory: LoopMemory,
    ) -> tuple[tuple[WaitName, ...], bool]:
        """The waits after an edge, and whether the whole sequence may end there."""
        names = {*self._state(automaton, around, edge.target, memory)}
        accepts = False
        ends = {
            after
            for end in automaton.states[edge.target].acceptances
            if (after := memory.after(end.actions, self._bounds, self._untils)) is not None
        }
        for end in ends:
            if not around:
                accepts = True
                continue
            outer, complete = self._after(around[-1][0], around[:-1], around[-1][1], end)
            names.update(outer)
            accepts |= complete
        return sort(names), accepts

    def _negated(self, number: int) -> int:
        """The GPM of a negated step of one event."""
        (edge,) = self._program.negated[number].automaton.states[0].edges
        assert isinstance(edge.label, TakeLabel)
        return edge.label.gpm


def _first_gpms(edge: Edge) -> Iterator[int]:
    match edge.label:
        case TakeLabel(gpm):
            yield gpm
        case BracketLabel("|", operands):
            for operand in operands:
                for inner in operand.states[0].edges:
                    yield from _first_gpms(inner)


def _is_strict(wait: Wait) -> bool:
    """Whether the next instant may end a wait, or a wait of its bracket."""
    bracket = wait.bracket
    return wait.strict or (bracket is not None and (bracket.left.strict or bracket.right.strict))


def _begun(automaton: Automaton, actions: tuple[Action, ...]) -> Automaton:
    """The automaton of a repetition, with the actions that begin it."""
    start, *states = automaton.states
    edges = tuple(replace(edge, actions=(*actions, *edge.actions)) for edge in start.edges)
    return replace(automaton, states=(replace(start, edges=edges), *states))


def _bits(gpms: Iterable[int]) -> int:
    return sum(1 << gpm for gpm in set(gpms))


def sort(names: Iterable[WaitName]) -> tuple[WaitName, ...]:
    """Distinct names of waits in order."""
    distinct = {*names}
    if len(distinct) < 2:
        return (*distinct,)
    return tuple(sorted(distinct, key=lambda n: n if isinstance(n, tuple) else (n, ())))
