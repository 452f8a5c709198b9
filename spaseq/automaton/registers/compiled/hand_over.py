"""The hand-over of a sequence to the evaluator in Python, in the middle of a run."""

from __future__ import annotations

import numpy as np

from spaseq.automaton.batch.match_builder import MatchBuilder
from spaseq.automaton.batch.outer_checks import OuterNegations
from spaseq.automaton.partition_sequencer import PartitionSequencer
from spaseq.automaton.program.nfa import Acceptance, Edge, Program
from spaseq.automaton.program.outer_steps import OuterNegation, outer_negations
from spaseq.automaton.registers.compiled.edge_tests import Number
from spaseq.automaton.registers.compiled.judged_matches import JudgedMatches
from spaseq.automaton.registers.compiled.run_state import RunState
from spaseq.automaton.registers.compiled.run_tables import RunTables
from spaseq.automaton.registers.compiled.stored_runs import WaitingPath
from spaseq.automaton.registers.compiled.waiting_candidates import WaitingCandidate
from spaseq.automaton.registers.loop_tests import without_greedy_ends
from spaseq.automaton.registers.python.register_evaluator import (
    RegisterEvaluator,
    shares_no_event,
)
from spaseq.automaton.run.event_rows import GpmRow
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import PartitionKey, PartitionMatch
from spaseq.automaton.run.runs import Candidate, Obligation, Rivals, Row


def hand_over(
    machine: Machine,
    tables: RunTables,
    runs: RunState,
    builder: MatchBuilder,
    outer: OuterNegations | JudgedMatches | None,
) -> PartitionSequencer:
    """A sequencer in Python with the partial matches as they are now."""
    return _HandOver(machine, tables, builder).sequencer(tables, runs, outer)


def python_sequencer(machine: Machine, tables: RunTables) -> PartitionSequencer:
    """A sequencer in Python for what a register kernel has run; checks of matches split nothing."""
    return PartitionSequencer(machine, () if tables.judged else machine.key)


class _HandOver:
    def __init__(self, machine: Machine, tables: RunTables, builder: MatchBuilder) -> None:
        self._machine, self._builder = machine, builder
        self._sequencer = python_sequencer(machine, tables)
        self._rivals = dict[tuple[int, int], Rivals]()  # by run before a bracket, and bracket

    def sequencer(
        self, tables: RunTables, runs: RunState, outer: OuterNegations | JudgedMatches | None
    ) -> PartitionSequencer:
        if isinstance(outer, JudgedMatches):
            self._judged(outer)
        self._waiting_runs(tables, runs)
        if isinstance(outer, OuterNegations):
            self._negated(outer)
            self._waiting_matches(outer)
        return self._sequencer

    def _key(self, row: GpmRow) -> PartitionKey:
        """The key of the partition that a solution is in."""
        gpm, (*_, values) = row
        columns, sequencer = self._machine.gpms[gpm].variables, self._sequencer
        split = (values[columns.index(v)] for v in sequencer.split)
        return sequencer.key_of((*self._builder.partition_of(row), *split))

    def _partition(self, row: GpmRow) -> RegisterEvaluator:
        partition = self._sequencer.partition(self._key(row))
        assert isinstance(partition, RegisterEvaluator)
        return partition

    def _waiting_runs(self, tables: RunTables, runs: RunState) -> None:
        waiting, edges = [*runs.paths()], self._machine.program.edges
        # The machine's own edges have the negated steps in first place, too.
        steps = [edges[step.id] for step in tables.steps]
        takes = [edges[edge.id] for edge in tables.edges]
        opened = set[tuple[int, tuple[tuple[int, int], ...]]]()
        ids = np.array(sorted({n for w in waiting for _, n in w.path}), np.int64)
        taken = self._builder.rows(ids)
        for run in waiting:
            partition = self._partition(taken[run.path[0][1]])
            path = [(steps[e], takes[e], taken[n][1]) for e, n in run.path]
            if not shares_no_event(path):
                continue
            if run.edge >= len(steps):
                end = tables.closings[run.edge - len(steps)]
                free = _may_leave(self._machine.program, tables, runs, run, end)
                key = self._key(taken[run.path[0][1]])
                self._sequencer.wait(key, partition.closing(end, path, run.origin, free))
                continue
            step = steps[run.edge]
            own = runs.candidate(run)
            if own is not None and own.is_forestalled:
                continue
            candidate = None if own is None else self._candidate(own, path)
            if (step.id, tuple(run.path)) not in opened:  # alternatives wait together
                opened.add((step.id, tuple(run.path)))
                may_leave = _may_leave(self._machine.program, tables, runs, run, step)
                partition.wait_at(step, path, run.origin, may_leave, candidate)
            if runs.is_counted:
                partition.begin_at(runs.events(run.slot))

    def _candidate(
        self, waiting: WaitingCandidate, path: list[tuple[Edge, Edge, Row]]
    ) -> Candidate:
        """The candidate that a run with a path belongs to, or may begin.

        The beginning of the earliest complete one matters only to candidates that begin there.
        """
        rivals = self._rivals.setdefault(waiting.bracket, Rivals())
        if waiting.first == len(path):
            return Candidate(rivals)
        *_, (_, time, k, *_) = path[waiting.first]
        if waiting.is_earliest:
            rivals.earliest = time, k
        return Candidate(rivals, (time, k))

    def _judged(self, judged: JudgedMatches) -> None:
        """The history for checks of matches, and the waiting matches."""
        for key, history in judged.histories().items():
            self._sequencer.partition(key).look_back(history)
        for key, (path, origin) in judged.pending():
            for match in self._sequencer.partition(key).judged(path, origin):
                self._sequencer.wait(key, match)

    def _negated(self, outer: OuterNegations) -> None:
        """The solutions of negated steps in first and last place."""
        for _, rows in sorted(self._builder.rows(outer.negated_rows()).items()):
            gpm, row = rows
            self._partition(rows).remember(gpm, row)

    def _waiting_matches(self, outer: OuterNegations) -> None:
        """The matches that wait for the close of their windows."""
        last = [
            n
            for n in outer_negations(without_greedy_ends(self._machine.program))
            if n.is_last and n.number is not None
        ]
        for matches in outer.waiting:
            rows, begin = self._builder.rows(matches.rows), 0
            columns = matches.ends, matches.origin, matches.close
            for end, origin, close in zip(*(c.tolist() for c in columns), strict=True):
                trace = tuple([rows[n] for n in matches.rows[begin:end].tolist()])
                self._partition(trace[0])
                match = self._match(trace, origin, close, last)
                self._sequencer.wait(self._key(trace[0]), match)
                begin = end

    def _match(
        self, trace: tuple[GpmRow, ...], origin: int, close: int, last: list[OuterNegation]
    ) -> PartitionMatch:
        singles, lists = self._builder.bindings(trace)
        (_, (_, time, k, _, _)), (_, (_, last_time, last_k, _, _)) = trace[0], trace[-1]
        first, end = (time, k), (last_time, last_k)
        pending = tuple(
            [
                Obligation(n.number, end, None)
                for n in last
                if n.number is not None and (n.beside is None or trace[-1][0] in n.beside)
            ]
        )
        return PartitionMatch(first, end, origin, trace, singles, lists, pending, close)


def _may_leave(
    program: Program, tables: RunTables, runs: RunState, run: WaitingPath, way: Edge | Acceptance
) -> bool:
    """Whether no solution can be one more repetition of the greedy loop that a run waits to leave.

    Either UNTIL forbids it, or the loop repeats under `,` and the next instant has passed.
    """
    registers = {number: i for i, number in enumerate(tables.registers)}
    following = registers.get(Number("", measure="instant", plus=1))
    for left in way.exits:
        mark = registers.get(Number(str(left.repeat), measure="mark"))
        if mark is not None and runs.register_of(run.node, mark) == 0:
            return True
        join = program.further[left].states[0].edges[0].join
        if join is not None and join.kind == "," and following is not None:
            return runs.register_of(run.node, following) <= runs.latest(run.slot)
    return False
