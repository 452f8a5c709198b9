"""A query's sequence over columns of solutions: the compiled face of `automaton.sequencer`.

It brings a batch into the order that the kernel takes, numbers its keys, and turns matches into
`Found`s. If solutions come whose numbers float64 cannot compare exactly, the partial matches are
handed over to the evaluator in Python, for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from spaseq.algebra.answers import Instant
from spaseq.automaton.columns.exactness import Seen
from spaseq.automaton.columns.layout import Number
from spaseq.automaton.columns.row_store import Chunk, RowStore
from spaseq.automaton.columns.run_state import Matched, Rows, RunState
from spaseq.automaton.columns.slots import Interner
from spaseq.automaton.columns.tables import run_tables
from spaseq.automaton.evaluators.emission import Emission
from spaseq.automaton.evaluators.registers import Partition
from spaseq.automaton.kernels.measures import positions
from spaseq.automaton.machine import Machine
from spaseq.automaton.runs import Row
from spaseq.automaton.sequencer import PartitionKey, PartitionMatch, Sequencer
from spaseq.automaton.window import Counted
from spaseq.rdf.batches import SolutionBatch

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]

_LEAST_ROWS = 4096
_LEAST_KEYS = 256


def _writable(rows: SolutionBatch) -> SolutionBatch:
    """The same rows in arrays that are not only for reading: for those, the kernel would have to be
    compiled once more."""
    own = partial(np.require, requirements=["C_CONTIGUOUS", "WRITEABLE"])
    return replace(
        rows, stream=own(rows.stream), time=own(rows.time), k=own(rows.k), gpm=own(rows.gpm)
    )


class _Part(Protocol):
    """A part of the state."""

    def state(self) -> object: ...

    def take_up(self, state: object) -> None: ...


class RunSequencer:
    """The register kernel over all partitions of one query."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._window = machine, machine.window
        self._tables = tables = run_tables(
            machine.program, machine.gpms, machine.partition, machine.window
        )
        self._counted = isinstance(machine.window, Counted)
        events = machine.window.events if isinstance(machine.window, Counted) else -1
        self._runs = RunState(tables, events)
        self._variables = tuple(sorted({v for g in machine.gpms for v in g.variables}))
        self._store = RowStore(machine.gpms, self._variables)
        self._keys = Interner()
        self._terms = {n.variable: Interner() for n in tables.own if n.by_term}
        self._seen = Seen(tables.compared)
        self._emission = Emission(machine, None)
        self._places = [
            tuple(g.variables.index(v) for v in machine.partition if v in g.variables)
            for g in machine.gpms
        ]
        self._number = 0  # solutions so far
        self._most_rows, self._most_keys = _LEAST_ROWS, _LEAST_KEYS
        self._python: Sequencer | None = None

    @property
    def withheld(self) -> int:
        """Always 0: the limit is applied to what is found here."""
        return 0

    def run(self, rows: SolutionBatch, watermark: int) -> Iterator[PartitionMatch]:
        """Work off rows that are none later than the watermark (ms), and later than all before."""
        if self._python is None and not self._seen.add(self._kinds(rows)):
            self._python = self._handed_over()
        if self._python is not None:
            yield from self._python.run(rows, watermark)
        elif len(rows):
            yield from self._advanced(rows)

    def close(self) -> Iterator[PartitionMatch]:
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
        counts = self._number, self._most_rows, self._most_keys
        return False, (counts, [part.state() for part in parts])

    def take_up(self, state: object) -> None:
        """Go on from what `state` gave."""
        assert isinstance(state, tuple)
        in_python, kept = state
        if in_python:
            self._python = Sequencer(self._machine)
            self._python.take_up(kept)
            return
        (self._number, self._most_rows, self._most_keys), states = kept
        for part, own in zip(self._parts(), states, strict=True):
            part.take_up(own)

    def _parts(self) -> tuple[_Part, ...]:
        return self._runs, self._store, self._keys, self._seen, *self._terms.values()

    # --- a batch ----------------------------------------------------------------------------------

    def _kinds(self, rows: SolutionBatch) -> dict[str, npt.NDArray[np.int8]]:
        return {v: rows.numbers[v].kind[rows.values[v].codes >= 0] for v in self._seen.variables}

    def _advanced(self, rows: SolutionBatch) -> Iterator[PartitionMatch]:
        rows, slot = self._ordered(_writable(rows))
        prepared = self._prepared(rows, slot)
        matched = self._runs.advance(prepared, self._own(rows))
        rows = replace(rows, numbers={})
        chunk = Chunk(np.arange(self._number, self._number + len(rows)), rows)
        if len(matched.ends):
            yield from self._matches(matched, chunk)
        taken = np.flatnonzero(matched.taken)
        self._store.add(chunk if len(taken) == len(rows) else chunk.part(taken))
        self._number += len(rows)
        if len(self._store) > self._most_rows or len(self._keys) > self._most_keys:
            self._sweep(int(prepared.lowest[-1]))

    def _ordered(self, rows: SolutionBatch) -> tuple[SolutionBatch, Int32s]:
        """Rows in the order of instants, then slots, then streams; and their slots."""
        columns = [rows.values[v] for v in self._tables.key]
        slot = self._keys.numbers(columns, len(rows)).astype(np.int32)
        self._runs.grow(self._keys.bound)
        time, k = rows.time, rows.k
        if len(rows) > 1 and not (time[1:] > time[:-1]).all():
            order = np.lexsort((rows.stream, slot, k, time))
            if (order[1:] < order[:-1]).any():
                return rows.take(order), slot[order]
        return rows, slot

    def _prepared(self, rows: SolutionBatch, slot: Int32s) -> Rows:
        start, ordinal = rows.time, np.empty(0, np.int64)
        reach = start
        if self._counted or self._tables.strict:
            ordinal, before, after = (np.empty(len(rows), np.int64) for _ in range(3))
            passed = self._runs.passed.copy()
            positions(slot, rows.time, rows.k, rows.stream, passed, ordinal, before, after)
            if self._counted:
                start, reach = before, after
        lowest = self._window.earliest(reach)
        return Rows(slot, rows.gpm, rows.time, rows.k, start, lowest, ordinal, self._number)

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

    # --- matches ----------------------------------------------------------------------------------

    def _matches(self, matched: Matched, chunk: Chunk) -> Iterator[PartitionMatch]:
        taken = self._store.rows(np.unique(matched.rows), chunk)
        numbers, first = matched.rows.tolist(), 0
        for end, origin in zip(matched.ends.tolist(), matched.origins.tolist(), strict=True):
            trace = [taken[n] for n in numbers[first:end]]
            found = self._emission.found_of(origin, trace)
            yield PartitionMatch(self._partition_of(trace[0]), found)
            first = end

    def _partition_of(self, taken: tuple[int, Row]) -> PartitionKey:
        gpm, row = taken
        return tuple([row[4][c] for c in self._places[gpm]])

    # --- memory -----------------------------------------------------------------------------------

    def _sweep(self, lowest: int) -> None:
        """Drop solutions and keys that no partial match needs; amortised, as it waits until they
        may have doubled."""
        self._store.keep(self._runs.collect(lowest))
        idle = np.flatnonzero(self._runs.idle())
        self._runs.release(np.array(self._keys.release(idle.tolist()), np.intp))
        for register, number in enumerate(self._tables.registers):
            if number.by_term:
                terms = self._terms[number.variable]
                used = set(self._runs.registers(register).astype(np.int64).tolist())
                terms.release([n for n in range(terms.bound) if n not in used])
        self._most_rows = 2 * len(self._store) + _LEAST_ROWS
        self._most_keys = 2 * len(self._keys) + _LEAST_KEYS

    # --- handing over -----------------------------------------------------------------------------

    def _handed_over(self) -> Sequencer:
        """A sequencer in Python with the partial matches as they are now."""
        sequencer = Sequencer(self._machine)
        waits = [*self._runs.waits()]
        numbers = np.array(sorted({n for w in waits for _, n in w.path}), np.int64)
        taken, edges = self._store.rows(numbers), self._tables.edges
        for wait in waits:
            path = [(edges[e], taken[n][1]) for e, n in wait.path]
            partition = sequencer.partition(self._partition_of(taken[wait.path[0][1]]))
            assert isinstance(partition, Partition)
            partition.wait_at(edges[wait.edge], path, wait.origin)
            if self._counted:
                partition.begin_at(self._runs.events(wait.slot))
        return sequencer
