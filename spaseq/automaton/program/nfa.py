"""The G-NFA: the static automaton that a sequence compiles to (SPAseq, section 6).

All runs share its states and edges, which never change. The state of runs is in `run.runs`. An edge
TAKEs a solution of a GPM, or a whole match of a bracket whose operands are automata themselves. The
paper's loops that IGNORE events are the `join` of an edge: strict contiguity ignores no event,
skip-till-next the events that do not match, skip-till-any all events. The compiler eliminates
PROCEED (epsilon) edges. Their effects are the `actions` of an edge (a repetition starts, repeats or
ends) and its `negations` (the negated steps that it passes).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field, fields
from typing import Any, Literal, TypeAlias, TypeVar

from spaseq.automaton.program.counters import Action, CountTest, RepeatBounds
from spaseq.lang import ast
from spaseq.lang.scope import View
from spaseq.lang.sequence import SequenceOperator
from spaseq.records import record


class NoKernel(Exception):
    """Integer tables cannot express a sequence. The message is the reason in words."""


T = TypeVar("T")

OUTER = View("outer")
"""The value of a group variable of the match, as a negated step sees it."""


@record
class GreedyExit:
    """An edge leaves a greedy loop that could have continued, perhaps before its first repetition.

    The number is negative if an operand of `&` or AND waits for a step behind `;` instead. `first`
    then says that this step is taken at the instant at which the edge is followed.
    """

    repeat: int
    first: bool

    @property
    def forestalls(self) -> bool:
        """Whether a step behind `;` is passed over, and no loop is left."""
        return self.repeat < 0

    @property
    def only_before(self) -> bool:
        """Whether that step may match at the instant at which the edge is followed."""
        return self.forestalls and self.first


@record
class LateFilter:
    """A FILTER of a step of `&` or AND, by its occurrence, that sees the operands in order.

    It sees nothing of a later operand, and all of an earlier one, whichever comes first.
    """

    occurrence: int
    condition: ast.Expr


@record
class TakeLabel:
    """Take one solution of a GPM.

    The `key` variables are certainly bound on both sides; their values index the runs that wait.
    `conditions` say which solutions are taken; None: the GPM's own. A run that has taken one
    continues if the `moved` and `late` FILTERs hold. These are FILTERs of other steps of `&` and
    AND; the moved ones give the same result wherever they are tested.
    """

    gpm: int  # index in the plan's GPMs
    name: str
    occurrence: int
    key: tuple[str, ...]
    views: Mapping[str, View]  # how this step sees group variables
    conditions: tuple[ast.Expr, ...] | None = None
    moved: tuple[ast.Expr, ...] = ()
    late: tuple[LateFilter, ...] = ()


@record
class BracketLabel:
    """Take a match of a bracket: of one operand (`|`), or of both (`&`, `AND`).

    The variables `before` are certainly bound before it. `obstacle` is the reason why a bracket
    with `&` or AND does not become alternatives of all orders (`any_order`).
    """

    kind: Literal["|", "&", "AND"]
    operands: tuple[Automaton, ...]
    before: frozenset[str] = frozenset()
    obstacle: str = ""


Label: TypeAlias = TakeLabel | BracketLabel


@record
class Edge:
    """A TAKE edge: a solution or a bracket with this label leads to the target state.

    `together`: it takes a solution of the instant at which the state before it was reached.
    `operands` are the operands of `&` and AND, by number, that have it as a step. The negated steps
    and loops that it passes begin at the last step of the operand `after`; None: at the last step
    of the run. `gap_ms`: maximum time after the step of `after`; `join` bounds the time since the
    run's. `apart`: positions, counted back, of the steps whose events it must not share. `begins`
    are the brackets with `&` and AND of which it is the first step; one by number n has the
    operands 2n and 2n + 1. It is the first step of a candidate of the inlined bracket `opens`, by
    number, or `within` one (`alternatives.inlined`).
    """

    id: int  # unique in the program
    label: Label
    target: int  # state of the same automaton
    join: SequenceOperator | None  # None: from the initial state, before any event
    actions: tuple[Action, ...]
    negations: tuple[int, ...]
    exits: tuple[GreedyExit, ...] = ()
    counts: tuple[CountTest, ...] = ()  # condition of a run to follow it
    together: bool = False
    operands: tuple[int, ...] = ()
    after: int | None = None
    gap_ms: int | None = None
    apart: tuple[int, ...] = ()
    begins: tuple[int, ...] = ()
    opens: int | None = None
    within: bool = False

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def only_judged(self) -> bool:
        """Whether its negated steps and loops are checked on whole matches only.

        It belongs to an operand of `&` or AND, or to a candidate, which counts without that.
        """
        return self.after is not None or self.within

    def checked_within(self, untils: Collection[int]) -> bool:
        """Whether a bracket has checks on whole matches only.

        `untils` are the repetitions with an UNTIL.
        """
        if self.apart:
            return True
        if self.only_judged and (self.negations or any(not e.forestalls for e in self.exits)):
            return True
        inside = bool(self.operands) or self.opens is not None or self.within
        return inside and any(action.repeat in untils for action in self.actions)


@record
class Acceptance:
    """One way to accept in a state."""

    actions: tuple[Action, ...]
    negations: tuple[int, ...]
    exits: tuple[GreedyExit, ...] = ()


@record
class State:
    """A state, with its outgoing edges and its ways to accept.

    `completes`: a run that comes here is a whole candidate of an inlined bracket behind `;`.
    """

    name: str
    edges: tuple[Edge, ...]
    acceptances: tuple[Acceptance, ...]
    completes: bool = False


@record
class Automaton:
    """An automaton; state 0 is initial, where no event has been taken."""

    id: int  # unique in the program
    depth: int  # brackets around it
    states: tuple[State, ...]

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def gpms(self) -> frozenset[int]:
        """The GPMs that it takes, in brackets too."""
        found = set[int]()
        for edge in (edge for state in self.states for edge in state.edges):
            if isinstance(edge.label, BracketLabel):
                found = found.union(*(operand.gpms for operand in edge.label.operands))
            else:
                found.add(edge.label.gpm)
        return frozenset(found)


@record
class Negated:
    """A negated step, or the GPM of UNTIL: an automaton that must not match.

    `views` are its views of group variables.
    """

    id: int
    automaton: Automaton
    repeats: tuple[int, ...]
    views: Mapping[str, View]

    __eq__ = object.__eq__
    __hash__ = object.__hash__


@record
class Program:
    """The static part of one query's sequence, as all evaluators use it."""

    automaton: Automaton
    negated: tuple[Negated, ...]
    owner: Mapping[str, int]  # group variable -> repeated step, in negations too
    owned: Mapping[int, tuple[str, ...]]  # repeated step -> its own group variables
    owned_within: Mapping[int, tuple[str, ...]]  # ... and of the steps inside it
    edges: tuple[Edge, ...]  # by id
    replayed: frozenset[int]  # GPMs whose past solutions may be read again
    strict: bool  # some join is strict contiguity
    negation_in_repeat: bool
    bounds: Mapping[int, RepeatBounds] = field(default_factory=dict)  # of counted repetitions
    untils: Mapping[int, int] = field(default_factory=dict)  # repeated step -> negated step
    further: Mapping[GreedyExit, Automaton] = field(default_factory=dict)
    """For each exit of a greedy loop, the automaton of one more repetition."""
    _made: dict[str, tuple[object, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def made(self, what: str, of: object, make: Callable[[], T]) -> T:
        """The result of `make`, cached for equal arguments.

        The planner and stage 2 of a query need the same result.
        """
        known = self._made.get(what)
        if known is not None and known[0] == of:
            found: T = known[1]
            return found
        made = make()
        if made is not self:  # which would not be freed at once
            self._made[what] = of, made
        return made

    def __reduce__(self) -> tuple[object, ...]:
        """The pickle, without cached results."""
        return type(self), tuple(getattr(self, f.name) for f in fields(self) if f.init)

    @property
    def checked(self) -> frozenset[int]:
        """The GPMs of negated steps, of UNTIL, and of loops that are greedy."""
        automata = (*(negated.automaton for negated in self.negated), *self.further.values())
        return frozenset[int]().union(*(automaton.gpms for automaton in automata))

    def once_more(self, left: GreedyExit) -> tuple[Action, ...]:
        """The action of a run that repeats a loop once more instead of leaving it."""
        marked = left.repeat in self.owned or left.repeat in self.untils
        return (Action("start" if left.first else "again", left.repeat),) if marked else ()


@record
class CorrelatedColumns:
    """The columns of a correlated GPM, which is evaluated when its event is taken.

    `event` is the column that holds the event. The values of the variables `reads` are substituted,
    and the values of the expressions in `parameters`, given by variable.
    """

    event: int
    reads: tuple[str, ...]
    parameters: tuple[tuple[str, ast.Expr], ...]


@record
class GpmColumns:
    """The columns of a GPM.

    `variables` are in the order of a row's values. `conditions` are the FILTERs that look back at
    earlier steps. Every solution binds the `certain` variables.
    """

    variables: tuple[str, ...]
    conditions: tuple[ast.Expr, ...] = ()
    certain: frozenset[str] = frozenset()
    correlation: CorrelatedColumns | None = None
