"""Calls every kernel of the automaton once, which compiles or loads it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.kernels.measures import is_rising, positions
from spaseq.automaton.batch.kernels.near_rows import (
    mark_solutions,
    marked_rows,
    move_latest,
    note_latest,
    note_near,
)
from spaseq.automaton.batch.match_builder import EnumeratedMatches
from spaseq.automaton.batch.outer_checks import OuterNegations, plain_checks
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    Edge,
    GpmColumns,
    Program,
    State,
    TakeLabel,
)
from spaseq.automaton.program.outer_steps import OuterNegation
from spaseq.automaton.program.window import Sliding
from spaseq.automaton.registers.compiled.answers import AskedAnswers
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.registers.compiled.run_tables import run_tables
from spaseq.automaton.sets.compiled.chain_state import ChainState
from spaseq.automaton.sets.compiled.compact_state import CompactState
from spaseq.automaton.sets.python.determinise import DeterministicAutomaton
from spaseq.automaton.sets.python.expand import expand
from spaseq.expr.compile import Options
from spaseq.lang.sequence import SequenceOperator


def steps() -> Iterator[str]:
    """Call the kernels, and yield the name of each when it is ready."""
    runs = _runs(_one_step(), 1)
    ones, times, none = np.zeros(1, np.int32), np.zeros(1, np.int64), np.empty(0, np.int64)
    rows = OrderedRows(ones, ones, times, ones, times, times, none)
    list(runs.advance(rows, np.empty((0, 1)), np.zeros(1, np.uint8)))
    yield "advance"
    list(_runs(_two_steps(), 2).advance(rows, np.empty((0, 1)), np.zeros(1, np.uint8)))
    yield "advance_threshold_sequence"
    runs.collect(0)
    yield "collect"
    list(runs.closed(0))
    yield "close_windows"
    runs.make_room_for_waiting(1)
    yield "pool_size, compact_pool"
    chain = ChainState(_one_step(), 1, False)
    chain.grow(1)
    roots = chain.advance(rows)
    yield "advance_chain"
    list(chain.nodes.matches(roots, times))
    yield "enumerate_matches"
    chain.nodes.count([], 0)
    yield "mark_reachable"
    chain.nodes.preferred(roots, np.ones(1, np.int64), times, times, True)
    yield "prefer"
    chain.nodes.taken_rows(0, 0, 2)
    yield "mark_taken"
    chain.live(0)
    yield "count_matches"
    compact = CompactState(DeterministicAutomaton(expand(_one_step())), 1)
    compact.grow(1)
    compact.advance(rows)
    yield "advance_compact"
    compact.idle(0)
    yield "living"
    compact.release(np.zeros(1, np.intp))
    yield "vacate"
    seen, ordinal, before, after = (np.zeros(1, np.int64) for _ in range(4))
    positions(ones, times, ones, ones, seen, np.zeros((1, 2), np.int64), ordinal, before, after)
    yield "positions"
    is_rising(times, ones, ones, ones, ones, ones)
    yield "is_rising"
    yield from _required_rows()
    yield from _checks_of_matches(rows)


def _runs(program: Program, count: int) -> RunState:
    gpms = [GpmColumns(())] * count
    tables = run_tables(program, gpms, (), Sliding(1))
    return RunState(tables, AskedAnswers(tables, Options(), {}))


def _checks_of_matches(rows: OrderedRows) -> Iterator[str]:
    last = OuterNegation(TakeLabel(0, "", 0, (), {}), True, 0)
    outer = OuterNegations(plain_checks([last], 1), Sliding(1), keeps_rows=False)
    outer.begin(rows, 1)
    yield "note_rows"
    outer.checked(EnumeratedMatches(np.zeros(1, np.int64), np.ones((1, 2), np.int64)))
    list(outer.closed(None))
    yield "drop_violated"


def _required_rows() -> Iterator[str]:
    time, last = np.zeros(1, np.int64), np.zeros((1, 1), np.int64)
    gpm = np.zeros(1, np.int32)
    note_near(1, time, gpm, time, last, 0, time.copy())
    yield "note_near"
    keys, latest, used = np.zeros(2, np.int64), np.zeros((2, 1), np.int64), np.zeros(1, np.int64)
    note_latest(time, gpm, time, gpm, 0, keys, latest, used)
    yield "note_latest"
    move_latest(keys, latest, np.zeros_like(keys), latest.copy(), 0)
    yield "move_latest"
    marks = np.zeros(1, np.bool_)
    mark_solutions(time, time, 1, marks)
    yield "mark_solutions"
    marked_rows(time, time, 1, marks, marks.copy())
    yield "marked_rows"


def _one_step() -> Program:
    edge = Edge(0, TakeLabel(0, "A", 0, (), {}), 1, None, (), ())
    return _program(edge)


def _two_steps() -> Program:
    first = Edge(0, TakeLabel(0, "A", 0, (), {}), 1, None, (), ())
    return _program(first, Edge(1, TakeLabel(1, "B", 1, (), {}), 2, SequenceOperator(";"), (), ()))


def _program(*edges: Edge) -> Program:
    """A program of edges in a row."""
    states = [State(f"before {edge.id}", (edge,), ()) for edge in edges]
    states.append(State("end", (), (Acceptance((), ()),)))
    automaton = Automaton(0, 0, tuple(states))
    return Program(automaton, (), {}, {}, {}, edges, frozenset(), False, False)
