"""A query's sequence over columns of solutions: the compiled face of `automaton.sequencer`.

It brings a batch into the order that the kernel takes, numbers its keys, and turns matches into
`Found`s. If solutions come whose numbers float64 cannot compare exactly, the partial matches are
handed over to the evaluator in Python, for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.algebra.answers import Instant
from spaseq.automaton.columns.exactness import Seen
from spaseq.automaton.columns.frame import Frame, Rows
from spaseq.automaton.columns.gathering import Gathering
from spaseq.automaton.columns.layout import Number
from spaseq.automaton.columns.run_state import RunState
from spaseq.automaton.columns.slots import Interner
from spaseq.automaton.columns.tables import run_tables
from spaseq.automaton.evaluators.registers import Partition
from spaseq.automaton.event_rows import EventRows, Taken, known_double
from spaseq.automaton.machine import Machine
from spaseq.automaton.matches import Match, PartitionKey
from spaseq.automaton.sequencer import Sequencer
from spaseq.automaton.window import Counted
from spaseq.rdf.batches import SolutionBatch

Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_LEAST_ROWS = 4096
_LEAST_KEYS = 256


class _Part(Protocol):
    """A part of the state."""

    def state(self) -> object: ...

    def take_up(self, state: object) -> None: ...


class RunSequencer:
    """The register kernel over all partitions of one query."""

    def __init__(self, machine: Machine) -> None:
        self._machine, window = machine, machine.window
        self._tables = tables = run_tables(machine.program, machine.gpms, machine.partition, window)
        self._counted = isinstance(window, Counted)
        self._runs = RunState(tables, window.events if isinstance(window, Counted) else -1)
        self._frame = Frame(machine.gpms, machine.partition, tables.key, window, tables.strict)
        self._gathering = Gathering(machine)
        self._terms = {n.variable: Interner() for n in tables.own if n.by_term}
        self._seen = Seen(tables.compared)
        columns_of = [{v: i for i, v in enumerate(g.variables)} for g in machine.gpms]
        columns_of.append({})  # of BARE
        self._compared = [
            [(i, v) for v, i in columns.items() if v in self._seen.variables]
            for columns in columns_of
        ]
        self._owned = [
            [
                (row, columns.get(n.variable), self._terms[n.variable] if n.by_term else None)
                for row, n in enumerate(tables.own)
            ]
            for columns in columns_of
        ]
        self._most_rows, self._most_keys = _LEAST_ROWS, _LEAST_KEYS
        self._python: Sequencer | None = None

    @property
    def withheld(self) -> int:
        """Always 0: the limit is applied to what is found here."""
        return 0

    def run(self, rows: SolutionBatch, watermark: int) -> Iterable[Match]:
        """Work off rows that are none later than the watermark (ms), and later than all before."""
        if self._fits(self._kinds(rows) if len(rows) else {}):
            if not len(rows):
                return ()
            solutions, framed = self._frame.rows(rows)
            return self._advanced(solutions, framed, self._own(solutions))
        assert self._python is not None
        return self._python.run(rows, watermark)

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterable[Match]:
        """The same for a few events that came one by one."""
        if self._fits(self._kinds_of(events) if events else {}):
            if not events:
                return ()
            taken, framed = self._frame.rows_of(events)
            return self._advanced(taken, framed, self._own_of(taken))
        assert self._python is not None
        return self._python.run_events(events, watermark)

    def _fits(self, kinds: Mapping[str, set[int]]) -> bool:
        """Whether float64 decides all comparisons still, given the kinds of some more numbers; if
        not, the evaluator in Python takes over."""
        if self._python is None and not self._seen.add(kinds):
            self._python = self._handed_over()
        return self._python is None

    def close(self) -> Iterator[Match]:
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

    def state(self) -> object:
        """What a snapshot keeps."""
        if self._python is not None:
            return True, self._python.state()
        parts = self._parts()
        counts = self._most_rows, self._most_keys
        return False, (counts, [part.state() for part in parts])

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        assert isinstance(state, tuple)
        in_python, kept = state
        if in_python:
            self._python = Sequencer(self._machine)
            self._python.take_up(kept)
            return
        (self._most_rows, self._most_keys), states = kept
        for part, own in zip(self._parts(), states, strict=True):
            part.take_up(own)

    def _parts(self) -> tuple[_Part, ...]:
        store = self._gathering.store
        return self._runs, self._frame, store, self._seen, *self._terms.values()

    # --- a batch ----------------------------------------------------------------------------------

    def _kinds(self, rows: SolutionBatch) -> dict[str, set[int]]:
        kinds = {v: rows.numbers[v].kind[rows.values[v].codes >= 0] for v in self._seen.variables}
        return {v: set(np.flatnonzero(np.bincount(k)).tolist()) for v, k in kinds.items()}

    def _kinds_of(self, events: Sequence[EventRows]) -> dict[str, set[int]]:
        kinds: dict[str, set[int]] = {}
        for event in events:
            for gpm, values in event.solutions:
                for column, variable in self._compared[gpm]:
                    text = values[column]
                    if text is not None:
                        kinds.setdefault(variable, set()).add(known_double(text)[1])
        return kinds

    def _advanced(
        self, solutions: SolutionBatch | list[Taken], rows: Rows, own: Floats
    ) -> Iterator[Match]:
        self._runs.grow(self._frame.keys.bound)
        self._gathering.begin(solutions, rows.number)
        taken = np.zeros(len(rows), np.uint8)
        for matched in self._runs.advance(rows, own, taken):
            yield from self._gathering.matches(matched)
        self._gathering.end(taken.view(np.bool_))
        kept, keys = len(self._gathering.store), len(self._frame.keys)
        if kept > self._most_rows or keys > self._most_keys:
            self._sweep(int(rows.lowest[-1]))

    def _own(self, rows: SolutionBatch) -> Floats:
        own = np.empty((len(self._tables.own), len(rows)))
        for i, number in enumerate(self._tables.own):
            own[i] = self._of(number, rows)
        return own

    def _of(self, number: Number, rows: SolutionBatch) -> Floats | Int64s:
        if number.by_term:
            column = rows.values[number.variable]
            return self._terms[number.variable].numbers([column], len(rows))
        return rows.numbers[number.variable].value

    def _own_of(self, rows: Sequence[Taken]) -> Floats:
        own = np.empty((len(self._tables.own), len(rows)))
        for j, (gpm, row) in enumerate(rows):
            for i, column, terms in self._owned[gpm]:
                text = None if column is None else row[4][column]
                if terms is not None:
                    own[i, j] = terms.number((text,))
                else:
                    own[i, j] = np.nan if text is None else known_double(text)[0]
        return own

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

    def _handed_over(self) -> Sequencer:
        """A sequencer in Python with the partial matches as they are now."""
        sequencer = Sequencer(self._machine)
        waits = [*self._runs.waits()]
        numbers = np.array(sorted({n for w in waits for _, n in w.path}), np.int64)
        taken, edges = self._gathering.rows(numbers), self._tables.edges
        for wait in waits:
            path = [(edges[e], taken[n][1]) for e, n in wait.path]
            partition = sequencer.partition(self._gathering.partition_of(taken[wait.path[0][1]]))
            assert isinstance(partition, Partition)
            partition.wait_at(edges[wait.edge], path, wait.origin)
            if self._counted:
                partition.begin_at(self._runs.events(wait.slot))
        return sequencer
