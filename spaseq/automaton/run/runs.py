"""Run-time state of the register evaluator: runs, waiting runs, and brackets in progress.

A run is a partial match: its state, its bindings and its trace. A bracket that is not transparent
is matched by runs of its operands' automata. A `BracketFrame` ties each of them to the run that
waits for the whole bracket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.counters import Counts
from spaseq.automaton.program.nfa import Automaton, Edge, GreedyExit, State
from spaseq.automaton.run.arena import NIL
from spaseq.records import record

Values: TypeAlias = tuple[str | None, ...]
"""The terms of a solution, in the order of its GPM's variables; None is unbound."""

Row: TypeAlias = tuple[int, int, int, str | None, Values]
"""A solution with its event: (stream index, time (ms), k, event IRI, values)."""

TakenPath: TypeAlias = tuple[tuple[Edge, Row | None], ...]
"""The edges and rows that a run has taken; a bracket's edge, before those inside, has no row."""


@record
class MeasuredInstant:
    """An instant of a partition, with its measures for the window."""

    instant: Instant
    start: int  # measure of a first event here
    reach: int  # measure of a last event here


@dataclass(slots=True)
class Groups:
    """The repetitions of a run: its group variables, and the number of repetitions of steps.

    The values of group variables are linked lists in the evaluator's arena.
    """

    current: dict[str, str]  # this repetition's value
    previous: dict[str, str]  # PREV
    lists: dict[str, int]  # all values: id of the last node
    marks: dict[int, dict[str, int]]  # repeated step -> lengths when its repetition began
    counts: Counts = ()  # of counted repetitions
    entries: dict[int, dict[str, int]] = field(default_factory=dict)
    """Repeated step -> lengths when its first repetition began."""

    def to_bind(self) -> Groups:
        """A copy whose values may change; it shares the rest."""
        current, lists = dict(self.current), dict(self.lists)
        return Groups(current, self.previous, lists, self.marks, self.counts, self.entries)

    def to_repeat(self) -> Groups:
        """A copy whose repetitions may change; it shares the lists of values."""
        current, previous = dict(self.current), dict(self.previous)
        marks, entries = dict(self.marks), dict(self.entries)
        return Groups(current, previous, self.lists, marks, self.counts, entries)


@record
class Captured:
    """The values of group variables in one repetition, kept for a negation inside it.

    `trace` is the trace up to the end of the repetition, for TIMESTAMP.
    """

    values: Mapping[str, tuple[str, ...]]
    previous: Mapping[str, str]
    trace: int
    running: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The values of all repetitions up to this one."""


@record
class Obligation:
    """A negated step that a run has passed: it must not match between two instants.

    `after` None: negation in first place; `before` None: not yet passed, or in last place. An
    obligation of UNTIL (`until`) counts `before`, too, which is where the last repetition begins.
    """

    negation: int
    after: Instant | None
    before: Instant | None
    captured: Mapping[int, Captured] = field(default_factory=dict)
    until: bool = False

    def passed(self, instant: Instant) -> Obligation:
        """The obligation after the next step, or the repetition, begins at an instant."""
        after = self.after
        if self.until and after is None:  # nothing stands before the loop
            after = instant[0], instant[1] - 1
        return Obligation(self.negation, after, instant, self.captured, self.until)

    @property
    def end(self) -> Instant | None:
        """The first instant that does not count."""
        return _next(self.before) if self.until else self.before


@record
class LeftLoop:
    """A greedy loop that a run has left: one more repetition must not end before the next step.

    `run` is the run after its last repetition, without its obligations except the one of the loop's
    UNTIL, `until`; or all of UNTIL, if a step behind `;` is passed over. `before` is the begin of
    the next step, None in last place.
    """

    exit: GreedyExit
    run: Run
    before: Instant | None
    until: tuple[Obligation, ...] = ()

    def passed(self, instant: Instant) -> LeftLoop:
        """The same after the next step begins at an instant."""
        return LeftLoop(self.exit, self.run, instant, self.until)

    @property
    def end(self) -> Instant | None:
        """The first instant that does not count."""
        return self.before if self.exit.only_before else _next(self.before)


Duty: TypeAlias = Obligation | LeftLoop
"""The duties of a run: its match counts only if all are met."""


def _next(instant: Instant | None) -> Instant | None:
    """The instant after another one, as a bound."""
    return None if instant is None else (instant[0], instant[1] + 1)


@dataclass(slots=True)
class ChoicePoint:
    """The candidates of a bracket after a run (docs/meaning.md#operators)."""

    run: Run
    edge: Edge
    groups: Groups | None  # of the run, after the edge's actions
    obligations: tuple[Duty, ...]
    depth: int
    after: Instant | None  # candidates begin after this
    earliest: Instant | None = None  # the earliest begin of a candidate that has ended so far
    next: Instant | None = None  # for strict contiguity: the instant to begin at


@dataclass(slots=True)
class BracketFrame:
    """The bracket that a run of an operand's automaton belongs to."""

    point: ChoicePoint
    automaton: Automaton
    conjunction: bool  # all its events must have one timestamp
    left: Run | None = None  # the first operand's match, for a run of the second operand
    taken: frozenset[tuple[int, Instant]] = frozenset()  # the first operand's events, for AND
    awaits_left: bool = False  # a first operand of & or AND


@dataclass(slots=True)
class Rivals:
    """The candidates of an inlined bracket behind `;` after a run (`program.inlined`).

    `earliest` is the begin of the earliest complete one so far.
    """

    earliest: Instant | None = None


@record
class Candidate:
    """The candidate that a run belongs to, or may begin: then `begin` is None."""

    rivals: Rivals
    begin: Instant | None = None

    def begun(self, instant: Instant) -> Candidate:
        """The candidate once it has begun, which may be at this instant."""
        return self if self.begin is not None else Candidate(self.rivals, instant)

    @property
    def is_forestalled(self) -> bool:
        """Whether a complete candidate has begun before it."""
        earliest = self.rivals.earliest
        return earliest is not None and (self.begin is None or self.begin > earliest)

    def complete(self) -> None:
        """Complete the candidate; it may not be forestalled."""
        if not self.is_forestalled:
            self.rivals.earliest = self.begin


@record
class Outside:
    """The part of the surrounding match that a negated step sees."""

    groups: Mapping[str, tuple[str, ...]]
    previous: Mapping[str, str]
    times: Mapping[str, int]  # GPM name -> time (ms) of its last event, if TIMESTAMP uses it
    after: Instant | None  # matches of the negated step begin after this
    running: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The values of the repetitions around the negated step, up to its own."""


@dataclass(slots=True)
class Run:
    """A partial match. `first` and `last` span the events of this automaton; None before any.

    `lasts` has the last instant of each operand of `&` and AND, by number. `path` is there if late
    FILTERs read it. `candidate` is the candidate of the run, or the one it may begin at the edge
    where it waits.
    """

    state: State
    frame: BracketFrame | None
    first: Instant | None
    last: Instant | None
    origin: int | None  # window measure of the earliest event, frames below included
    tau: int | None  # inside a conjunction: the timestamp of its events
    singles: Mapping[str, str]
    groups: Groups | None
    trace: int = NIL
    obligations: tuple[Duty, ...] = ()
    outside: Outside | None = None
    lasts: Mapping[int, Instant] = field(default_factory=dict)
    path: TakenPath = ()
    candidate: Candidate | None = None

    def as_candidate(self, candidate: Candidate | None) -> Run:
        """The same run, as part of another candidate."""
        return self if candidate is self.candidate else replace(self, candidate=candidate)

    def seen_by(self, edge: Edge) -> Run:
        """The run for an edge's negated steps and loops: after its operand's last step."""
        return self if edge.after is None else replace(self, last=self.lasts[edge.after])

    def lasts_after(self, edge: Edge, instant: Instant) -> Mapping[int, Instant]:
        """The last instants of operands after the run has followed an edge."""
        if not edge.operands:
            return self.lasts
        return {**self.lasts, **dict.fromkeys(edge.operands, instant)}

    def in_operand(
        self, state: State, frame: BracketFrame, groups: Groups | None, duties: tuple[Duty, ...]
    ) -> Run:
        """The run at the start of a bracket's operand, of which it has taken nothing."""
        return self._moved(state, frame, (None, None), groups, duties)

    def after_actions(self, groups: Groups | None, duties: tuple[Duty, ...]) -> Run:
        """The run after actions that have changed its repetitions and its duties."""
        return self._moved(self.state, self.frame, (self.first, self.last), groups, duties)

    def _moved(
        self,
        state: State,
        frame: BracketFrame | None,
        ends: tuple[Instant | None, Instant | None],
        groups: Groups | None,
        duties: tuple[Duty, ...],
    ) -> Run:
        """`ends` are the first and the last instant in the operand; see the fields for the rest."""
        origin, tau, singles, trace = self.origin, self.tau, self.singles, self.trace
        moved = Run(state, frame, *ends, origin, tau, singles, groups, trace, duties, self.outside)
        moved.lasts, moved.path, moved.candidate = self.lasts, self.path, self.candidate
        return moved


@dataclass(slots=True)
class WaitingRun:
    """A run that waits at a TAKE edge for a solution of its GPM."""

    run: Run
    edge: Edge
    groups: Groups | None  # of the run, after the edge's actions
    obligations: tuple[Duty, ...]
    once: bool  # the first instant with a solution is the only one (skip-till-next)
