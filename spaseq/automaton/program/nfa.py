"""The G-NFA: the static automaton a sequence compiles to (SPAseq, section 6).

States and edges are shared by all runs and never change; run-time state lives in `runs`. An edge
TAKEs a solution of a GPM, or a whole match of a bracket whose operands are automata themselves.
What the paper draws as loops that IGNORE events is the edge's `join`: strict contiguity ignores
none, skip-till-next those that do not match, skip-till-any all. PROCEED (epsilon) edges have been
eliminated; what they did is an edge's `actions` (repetitions that start, go on and end) and
`negations` (negated steps that it passes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from spaseq.lang.scope import View
from spaseq.lang.sequence import SequenceOperator

OUTER = View("outer")
"""View of a group variable of the whole match from inside a negated step."""


@dataclass(frozen=True, slots=True)
class Action:
    """What following an edge does to a repeated step."""

    kind: Literal["start", "again", "exit"]
    repeat: int


@dataclass(frozen=True, slots=True)
class TakeLabel:
    """Take one solution of a GPM. `key` are the variables that are certainly bound on both sides:
    runs that wait here are indexed by their values."""

    gpm: int  # index in the plan's GPMs
    name: str
    occurrence: int
    key: tuple[str, ...]
    views: Mapping[str, View]  # group variables as seen from here


@dataclass(frozen=True, slots=True)
class BracketLabel:
    """Take a match of a bracket: one operand's (`|`), or both operands' (`&`, `AND`)."""

    kind: Literal["|", "&", "AND"]
    operands: tuple[Automaton, ...]


Label: TypeAlias = TakeLabel | BracketLabel


@dataclass(frozen=True, slots=True, eq=False)
class Edge:
    """A transition: an event or a bracket with this label leads to the target state."""

    id: int  # unique in the program
    label: Label
    target: int  # state of the same automaton
    join: SequenceOperator | None  # None: from the initial state, where there is nothing to join to
    actions: tuple[Action, ...]
    negations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One way to accept in a state."""

    actions: tuple[Action, ...]
    negations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class State:
    """A state, with its outgoing edges and its ways to accept."""

    name: str
    edges: tuple[Edge, ...]
    acceptances: tuple[Acceptance, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Automaton:
    """State 0 is initial: no event has been taken there."""

    id: int  # unique in the program
    depth: int  # brackets around it
    states: tuple[State, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Negated:
    """A negated step: what must not match, and how it sees group variables."""

    id: int
    automaton: Automaton
    repeats: tuple[int, ...]
    views: Mapping[str, View]


@dataclass(frozen=True, slots=True)
class Program:
    """Everything static that evaluators need of one query's sequence."""

    automaton: Automaton
    negated: tuple[Negated, ...]
    owner: Mapping[str, int]  # group variable -> repeated step, negations' own included
    owned: Mapping[int, tuple[str, ...]]  # repeated step -> its own group variables
    owned_within: Mapping[int, tuple[str, ...]]  # ... and those of the steps inside it
    edges: tuple[Edge, ...]  # by id
    replayed: frozenset[int]  # GPMs whose past solutions may be asked for again
    strict: bool  # some join is strict contiguity
    negation_in_repeat: bool
