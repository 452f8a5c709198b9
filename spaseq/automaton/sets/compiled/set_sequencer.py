"""Sequences without conditions between events over columns: the chain and the compact kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from spaseq.algebra.answers import Instant
from spaseq.automaton.batch.frame import BatchFrame, OrderedRows
from spaseq.automaton.batch.match_builder import EnumeratedMatches, MatchBuilder
from spaseq.automaton.run.event_rows import EventRows, GpmRow
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import PartitionKey, SequenceMatch
from spaseq.automaton.sets.compiled.set_nodes import ROOT, SetNodes
from spaseq.automaton.sets.python.counting import count
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.rdf.columns.solution_batch import SolutionBatch

_LEAST_KEYS = 256


class SetState(Protocol):
    """The partial matches of all slots."""

    nodes: SetNodes
    strict: bool

    def grow(self, slots: int) -> None:
        """Make room for slots below a number."""

    def advance(self, rows: OrderedRows) -> Int64s:
        """Work off some solutions; the roots [R, 2] of the matches that end, with their rows."""

    def idle(self, floor: int) -> Bools:
        """By slot: whether no partial match there lies in the window that begins at `floor`."""

    def release(self, slots: Indices) -> None:
        """Slots that are idle will stand for other keys."""

    def waiting(self) -> int:
        """How many sets of partial matches wait."""

    def snapshot(self) -> object:
        """What a snapshot keeps."""

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""


class SetSequencer:
    """A kernel of sets over all partitions of one query."""

    def __init__(self, machine: Machine, state: SetState) -> None:
        self._machine, self._state = machine, state
        key = (*machine.partition, *machine.key)
        self._frame = BatchFrame(machine.gpms, machine.partition, key, machine.window, state.strict)
        self._gathering = MatchBuilder(machine)
        self._most_keys = _LEAST_KEYS
        self.suppressed = 0

    def run(self, rows: SolutionBatch, watermark: int) -> Iterable[SequenceMatch]:
        """Work off rows that are none later than the watermark (ms), and later than all before."""
        return self._advanced(*self._frame.rows(rows)) if len(rows) else ()

    def run_events(self, events: Sequence[EventRows], watermark: int) -> Iterable[SequenceMatch]:
        """The same for a few events that came one by one."""
        return self._advanced(*self._frame.rows_of(events)) if events else ()

    def close(self) -> Iterator[SequenceMatch]:
        """All streams have ended."""
        return iter(())

    def consecutive(self, key: PartitionKey, instants: Iterable[Instant]) -> bool:
        """True: SELECT STRICT is part of the automaton, so nothing else is found."""
        return True

    def live_runs(self) -> int:
        """How many sets of partial matches wait."""
        return self._state.waiting()

    def snapshot(self) -> object:
        """What a snapshot keeps."""
        parts = self._state, self._frame, self._gathering
        return [part.snapshot() for part in parts], self._most_keys, self.suppressed

    def restore(self, state: object) -> None:
        """Go on from what `snapshot` gave."""
        assert isinstance(state, tuple)
        (own, frame, store), self._most_keys, self.suppressed = state
        self._state.restore(own)
        self._frame.restore(frame)
        self._gathering.restore(store)

    # --- a batch ----------------------------------------------------------------------------------

    def _advanced(
        self, solutions: SolutionBatch | list[GpmRow], rows: OrderedRows
    ) -> Iterator[SequenceMatch]:
        nodes, gathering = self._state.nodes, self._gathering
        self._state.grow(self._frame.keys.bound)
        before = nodes.next
        roots = self._state.advance(rows)
        if nodes.next > before:
            gathering.begin(solutions, rows.number)
            if len(roots):
                yield from self._given(roots, rows)
            gathering.end(nodes.taken(before, rows.number, len(rows)))
            nodes.mark(before, rows.start, rows.number)
        self._forget(int(rows.lowest[-1]))

    def _forget(self, floor: int) -> None:
        """Drop nodes, solutions and keys of the past; amortised."""
        if self._state.nodes.forget(floor):
            self._gathering.store.keep(self._state.nodes.solutions())
        if len(self._frame.keys) > self._most_keys:
            idle = np.flatnonzero(self._state.idle(floor))
            self._state.release(np.array(self._frame.release(idle.tolist()), np.intp))
            self._most_keys = 2 * len(self._frame.keys) + _LEAST_KEYS

    # --- matches ----------------------------------------------------------------------------------

    def _given(self, roots: Int64s, rows: OrderedRows) -> Iterator[SequenceMatch]:
        """The matches of some roots that the selection and the limit leave."""
        nodes, machine, groups = self._state.nodes, self._machine, [roots]
        if machine.limit is not None or machine.strategy not in ("ALL", "STRICT"):
            groups = self._groups(roots, rows)
        if machine.strategy in ("NEXT", "LAST"):
            nodes, groups = self._preferred(groups, rows.lowest)
        if machine.limit is not None:
            for group in groups:
                yield from self._limited(nodes, group, rows.lowest, machine.limit)
            return
        chosen = groups[0] if len(groups) == 1 else np.concatenate(groups)
        for matched in nodes.matches(chosen, rows.lowest):
            yield from self._gathering.matches(matched)

    def _preferred(self, groups: list[Int64s], lowest: Int64s) -> tuple[SetNodes, list[Int64s]]:
        """What SELECT NEXT or LAST leaves of groups of roots, in nodes of its own."""
        nodes = self._state.nodes
        ranks = self._gathering.ranks(nodes.solutions())
        ends = np.cumsum([len(group) for group in groups])
        smallest_decides = self._machine.strategy == "NEXT"
        chosen, roots, ends = nodes.preferred(
            np.concatenate(groups), ends, lowest, ranks, smallest_decides
        )
        return chosen, np.split(roots, ends[:-1])

    def _groups(self, roots: Int64s, rows: OrderedRows) -> list[Int64s]:
        """The roots whose matches are selected and limited together: those of one instant,
        partition, and value of the variables that the limit is for."""
        taken = self._gathering.rows(roots[:, 1] + rows.number)
        names, gpms = (*self._machine.partition, *self._machine.limit_key), self._machine.gpms
        groups: dict[object, list[int]] = {}
        for i, row in enumerate(roots[:, 1].tolist()):
            gpm, (_, time, k, _, values) = taken[row + rows.number]
            columns = [gpms[gpm].variables.index(v) for v in names]
            group = time, k, tuple([values[c] for c in columns])
            groups.setdefault(group, []).append(i)
        return [roots[some] for some in groups.values()]

    def _limited(
        self, nodes: SetNodes, roots: Int64s, lowest: Int64s, limit: int
    ) -> Iterator[SequenceMatch]:
        """The matches of roots of one group, as many as the limit lets through."""
        sizes, given = np.zeros(len(roots), np.int64), 0
        for found in nodes.matches(roots, lowest, limit + 1):
            more = min(len(found.ends), limit - given)
            if more:
                rows = found.rows[: found.ends[more - 1, 0]]
                yield from self._gathering.matches(EnumeratedMatches(rows, found.ends[:more]))
            given += more
            sizes += np.bincount(found.ends[:, ROOT], minlength=len(roots))
        if (sizes > limit).any():
            size = count(*nodes.view(roots[:, 0].tolist(), int(lowest[roots[0, 1]])))
        else:
            size = int(sizes.sum())
        self.suppressed += max(size - limit, 0)
