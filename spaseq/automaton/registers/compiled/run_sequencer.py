"""A query's sequence over columns of solutions: `automaton.partition_sequencer`, compiled.

It brings a batch into the order that the kernel takes, numbers its keys, and turns matches into
`Found`s. If solutions come whose numbers float64 cannot compare exactly, the partial matches are
handed over to the evaluator in Python, for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from spaseq.algebra.answers import Instant
from spaseq.automaton.batch.frame import BatchFrame, OrderedRows
from spaseq.automaton.batch.match_builder import MatchBuilder
from spaseq.automaton.batch.slots import Interner
from spaseq.automaton.partition_sequencer import PartitionSequencer
from spaseq.automaton.program.window import Counted
from spaseq.automaton.registers.compiled.edge_tests import Number
from spaseq.automaton.registers.compiled.exactness import Seen
from spaseq.automaton.registers.compiled.formulas import Formula
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.registers.compiled.run_tables import run_tables
from spaseq.automaton.registers.python.register_evaluator import RegisterEvaluator
from spaseq.automaton.run.event_rows import EventRows, GpmRow, known_double
from spaseq.automaton.run.machine import GpmColumns, Machine
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch
from spaseq.compiled.arrays import Float64s, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.terms.number_kinds import OTHER

_LEAST_ROWS = 4096
_LEAST_KEYS = 256


class _StatePart(Protocol):
    """A part of the state."""

    def snapshot(self) -> object: ...

    def restore(self, state: object) -> None: ...


_Double: TypeAlias = Callable[[str | None], tuple[float, int]]
"""A term's (float64, kind)."""


def _known(text: str | None) -> tuple[float, int]:
    return (np.nan, OTHER) if text is None else known_double(text)


def _known_value(text: str | None) -> float:
    return np.nan if text is None else known_double(text)[0]


@dataclass(frozen=True, slots=True)
class _Single:
    """Of a GPM: (own number, its column, what is made of a term there), and (name, column, what is
    made) of the numbers that are compared. A constant has no column."""

    own: Sequence[tuple[int, int | None, Callable[[str | None], float]]] = ()
    compared: Sequence[tuple[str, int | None, _Double]] = ()


class RunSequencer:
    """The register kernel over all partitions of one query."""

    def __init__(self, machine: Machine) -> None:
        self._machine, window = machine, machine.window
        self._tables = tables = run_tables(machine.program, machine.gpms, machine.partition, window)
        self._counted = isinstance(window, Counted)
        self._runs = RunState(tables, window.events if isinstance(window, Counted) else -1)
        self._frame = BatchFrame(machine.gpms, machine.partition, tables.key, window, tables.strict)
        self._gathering = MatchBuilder(machine)
        self._terms = {n.variable: Interner() for n in tables.own if n.by_term}
        self._seen = Seen(tables.compared)
        self._formulas = {
            n: Formula(n, machine.expressions) for n in tables.own if n.formula is not None
        }
        self._singles = [*map(self._single, machine.gpms), _Single()]  # the last is BARE's
        self._most_rows, self._most_keys = _LEAST_ROWS, _LEAST_KEYS
        self._python: PartitionSequencer | None = None

    @property
    def suppressed(self) -> int:
        """Always 0: the limit is applied to what is found here."""
        return 0

    def run(self, rows: SolutionBatch, watermark: int) -> Iterable[SequenceMatch]:
        """Work off rows that are none later than the watermark (ms), and later than all before."""
        if self._python is None and len(rows):
            rows = self._computed(rows)
            self._take_note(self._kinds(rows))
        if self._python is not None:
            return self._python.run(rows, watermark)
        if not len(rows):
            return ()
        solutions, framed = self._frame.rows(rows)
        return self._advanced(solutions, framed, self._own(solutions))

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterable[SequenceMatch]:
        """The same for a few events that came one by one."""
        if self._python is None and events:
            news = self._new_kinds(events)
            if news:
                self._take_note(news)
        if self._python is not None:
            return self._python.run_events(events, watermark)
        if not events:
            return ()
        taken, framed = self._frame.rows_of(events)
        return self._advanced(taken, framed, self._own_of(taken))

    def _take_note(self, kinds: Mapping[str, set[int]]) -> None:
        """If float64 does not decide all comparisons any more, given the kinds of some more
        numbers, the evaluator in Python takes over."""
        if not self._seen.add(kinds):
            self._python = self._handed_over()

    def close(self) -> Iterator[SequenceMatch]:
        """All streams have ended."""
        if self._python is not None:
            yield from self._python.close()

    def consecutive(self, key: PartitionKey, instants: Iterable[Instant]) -> bool:
        """Whether instants of a match follow each other; only SELECT STRICT asks, which is left to
        the evaluators in Python."""
        raise NotImplementedError("SELECT STRICT is not compiled")

    def live_runs(self) -> int:
        """How many runs wait."""
        return self._runs.waiting() if self._python is None else self._python.live_runs()

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        if self._python is not None:
            return True, self._python.snapshot()
        parts = self._parts()
        counts = self._most_rows, self._most_keys
        return False, (counts, [part.snapshot() for part in parts])

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        in_python, kept = state
        if in_python:
            self._python = PartitionSequencer(self._machine)
            self._python.restore(kept)
            return
        (self._most_rows, self._most_keys), states = kept
        for part, own in zip(self._parts(), states, strict=True):
            part.restore(own)

    def _parts(self) -> tuple[_StatePart, ...]:
        return self._runs, self._frame, self._gathering, self._seen, *self._terms.values()

    # --- a batch ----------------------------------------------------------------------------------

    def _computed(self, rows: SolutionBatch) -> SolutionBatch:
        """The rows with the numbers that formulas make, by name."""
        numbers = dict(rows.numbers)
        for number, formula in self._formulas.items():
            of = number.variable
            numbers[number.name] = (
                formula.column(rows.values[of], rows.numbers[of])
                if of
                else formula.constant(len(rows))
            )
        return replace(rows, numbers=numbers)

    def _kinds(self, rows: SolutionBatch) -> dict[str, set[int]]:
        kinds = {n.name: rows.numbers[n.name].kind for n in self._seen.numbers}
        for number in self._seen.numbers:
            if number.variable:
                bound = rows.values[number.variable].codes >= 0
                kinds[number.name] = kinds[number.name][bound]
        return {name: set(np.flatnonzero(np.bincount(k)).tolist()) for name, k in kinds.items()}

    def _new_kinds(self, events: Sequence[EventRows]) -> dict[str, set[int]]:
        """The kinds, of the numbers of a few events, that have not been seen yet."""
        known, news = self._seen.kinds, dict[str, set[int]]()
        for event in events:
            for gpm, values in event.solutions:
                for name, column, double in self._singles[gpm].compared:
                    text = None if column is None else values[column]
                    if text is not None or column is None:
                        kind = double(text)[1]
                        if kind not in known[name]:
                            news.setdefault(name, set()).add(kind)
        return news

    def _advanced(
        self, solutions: SolutionBatch | list[GpmRow], rows: OrderedRows, own: Float64s
    ) -> Iterator[SequenceMatch]:
        self._runs.grow(self._frame.keys.bound)
        self._gathering.begin(solutions, rows.number)
        taken = np.zeros(len(rows), np.uint8)
        for matched in self._runs.advance(rows, own, taken):
            yield from self._gathering.matches(matched)
        self._gathering.end(taken)
        kept, keys = len(self._gathering.store), len(self._frame.keys)
        if kept > self._most_rows or keys > self._most_keys:
            self._sweep(int(rows.lowest[-1]))

    def _own(self, rows: SolutionBatch) -> Float64s:
        own = np.empty((len(self._tables.own), len(rows)))
        for i, number in enumerate(self._tables.own):
            own[i] = self._of(number, rows)
        return own

    def _of(self, number: Number, rows: SolutionBatch) -> Float64s | Int64s:
        if number.by_term:
            column = rows.values[number.variable]
            return self._terms[number.variable].numbers([column], len(rows))
        return rows.numbers[number.name].value

    def _own_of(self, rows: Sequence[GpmRow]) -> Float64s:
        own = np.empty((len(self._tables.own), len(rows)))
        own.fill(np.nan)
        for j, (gpm, row) in enumerate(rows):
            values = row[4]
            for i, column, value in self._singles[gpm].own:
                own[i, j] = value(None if column is None else values[column])
        return own

    def _single(self, gpm: GpmColumns) -> _Single:
        """How the numbers of single solutions of a GPM are made."""
        columns: dict[str, int | None] = {v: i for i, v in enumerate(gpm.variables)}
        columns[""] = None  # of constants
        own = [
            (i, columns[n.variable], self._value(n))
            for i, n in enumerate(self._tables.own)
            if n.variable in columns
        ]
        compared = [
            (n.name, columns[n.variable], self._double(n))
            for n in self._seen.numbers
            if n.variable in columns
        ]
        return _Single(own, compared)

    def _double(self, number: Number) -> _Double:
        return _known if number.formula is None else self._formulas[number].of

    def _value(self, number: Number) -> Callable[[str | None], float]:
        if number.by_term:
            terms = self._terms[number.variable]
            return lambda text: terms.number((text,))
        if number.formula is None:
            return _known_value
        double = self._double(number)
        return lambda text: double(text)[0]

    # --- memory -----------------------------------------------------------------------------------

    def _sweep(self, lowest: int) -> None:
        """Drop solutions and keys that no partial match needs; amortised, as it waits until they
        may have doubled."""
        self._gathering.store.keep(self._runs.collect(lowest))
        idle = np.flatnonzero(self._runs.idle())
        self._runs.release(np.array(self._frame.release(idle.tolist()), np.intp))
        for register, number in enumerate(self._tables.registers):
            if number.by_term:
                terms = self._terms[number.variable]
                used = set(self._runs.registers(register).astype(np.int64).tolist())
                terms.release([n for n in range(terms.bound) if n not in used])
        self._most_rows = 2 * len(self._gathering.store) + _LEAST_ROWS
        self._most_keys = 2 * len(self._frame.keys) + _LEAST_KEYS

    # --- handing over -----------------------------------------------------------------------------

    def _handed_over(self) -> PartitionSequencer:
        """A sequencer in Python with the partial matches as they are now."""
        sequencer = PartitionSequencer(self._machine)
        waits = [*self._runs.waits()]
        numbers = np.array(sorted({n for w in waits for _, n in w.path}), np.int64)
        taken, edges = self._gathering.rows(numbers), self._tables.edges
        for wait in waits:
            path = [(edges[e], taken[n][1]) for e, n in wait.path]
            partition = sequencer.partition(self._gathering.partition_of(taken[wait.path[0][1]]))
            assert isinstance(partition, RegisterEvaluator)
            partition.wait_at(edges[wait.edge], path, wait.origin)
            if self._counted:
                partition.begin_at(self._runs.events(wait.slot))
        return sequencer
