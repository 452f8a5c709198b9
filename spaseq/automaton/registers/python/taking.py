"""Taking a solution: from a waiting run to the next run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from spaseq.automaton.program.nfa import Edge, TakeLabel
from spaseq.automaton.registers.python.late_filters import LateFilters
from spaseq.automaton.run.machine import CompiledTake, CorrelatedTake, Machine
from spaseq.automaton.run.runs import Groups, MeasuredInstant, Row, Run, WaitingRun
from spaseq.automaton.run.scoping import ListNodes, TakeEnv, TraceNodes, bind, trace_of
from spaseq.expr.env import Env


class Taker:
    """Takes solutions for runs whose traces and lists of values are in two arenas."""

    __slots__ = ("_env", "_late", "_lists", "_machine", "_trace")

    def __init__(self, machine: Machine, trace: TraceNodes, lists: ListNodes) -> None:
        self._machine, self._trace, self._lists = machine, trace, lists
        self._env = TakeEnv(machine.names, trace, lists)
        self._late = LateFilters(machine) if machine.keeps_paths else None

    def taken(self, wait: WaitingRun, rows: Iterable[Row], moment: MeasuredInstant) -> list[Run]:
        """The runs that follow when a waiting run takes each of some solutions."""
        run, edge, time = wait.run, wait.edge, moment.instant[0]
        gap = edge.join.gap_ms if edge.join is not None else None
        if gap is not None and run.last is not None and time - run.last[0] > gap:
            return []
        own = edge.gap_ms  # of an operand
        if own is not None and edge.after is not None and time - run.lasts[edge.after][0] > own:
            return []
        taking, results = self._machine.takes[wait.edge.id], []
        if taking.correlation is not None:
            rows = self._solved_rows(wait, rows, taking.correlation)
        for row in rows:
            after = self._take(wait, taking, row, moment)
            if after is not None:
                results.append(after)
        return results

    def _solved_rows(
        self, wait: WaitingRun, rows: Iterable[Row], correlation: CorrelatedTake
    ) -> Iterator[Row]:
        """The rows of a correlated GPM, evaluated now with the bindings of the run."""
        for row in rows:
            nothing: Row = (*row[:4], (None,) * len(row[4]))
            for values in correlation.solutions(
                row[4], self.seen(wait.run, wait.groups, wait.edge, nothing)
            ):
                yield (*row[:4], values)

    def _take(
        self, wait: WaitingRun, taking: CompiledTake, row: Row, moment: MeasuredInstant
    ) -> Run | None:
        """The run after one row; None if a join or a condition fails."""
        run, edge = wait.run, wait.edge
        if edge.apart and not self._is_apart(run, edge, row):
            return None
        values = row[4]
        fresh: dict[str, str] = {}
        for column, variable in taking.singles:
            value = values[column]
            if value is not None:
                old = run.singles.get(variable)
                if old is None:
                    fresh[variable] = value
                elif old != value:
                    return None
        groups, obligations = wait.groups, wait.obligations
        for column, variable in taking.groups:
            value = values[column]
            if value is not None and groups is not None:
                old = groups.current.get(variable)
                if old is not None and old != value:
                    return None
        if taking.conditions and not self._holds(wait, row, taking.conditions):
            return None
        label = edge.label
        assert isinstance(label, TakeLabel)
        conjunction = run.frame is not None and run.frame.conjunction
        return Run(
            self._machine.target[edge.id],
            run.frame,
            run.first or moment.instant,
            moment.instant,
            moment.start if run.origin is None else min(run.origin, moment.start),
            moment.instant[0] if conjunction else None,
            {**run.singles, **fresh} if fresh else run.singles,
            bind(self._lists, groups, taking.groups, values) if taking.groups else groups,
            self._trace.add((label.gpm, row, run.trace)),
            obligations
            and tuple([o if o.before else o.passed(moment.instant) for o in obligations]),
            run.outside,
            run.lasts_after(edge, moment.instant),
            (*run.path, (edge, row)) if self._machine.keeps_paths else run.path,
            run.candidate and run.candidate.begun(moment.instant),
        )

    def going_on(self, edge: Edge, runs: list[Run]) -> list[Run]:
        """The runs that continue, of those that have followed an edge.

        A step behind `;` is taken though FILTERs of other steps fail.
        """
        taking = self._machine.takes[edge.id]
        if taking.moved:
            nothing: Row = (0, 0, 0, None, (None,) * len(taking.columns))
            envs = ((run, self.seen(run, run.groups, edge, nothing)) for run in runs)
            runs = [run for run, env in envs if all(holds(env) for holds in taking.moved)]
        if taking.late and self._late is not None:
            runs = [run for run in runs if self._late.hold(run.path, taking.late)]
        return runs

    def _is_apart(self, run: Run, edge: Edge, row: Row) -> bool:
        """Whether the event of a row is none of the events that the edge must not share."""
        before = [taken for _, taken in islice(trace_of(self._trace, run.trace), max(edge.apart))]
        return all(before[back - 1][0] != row[0] for back in edge.apart)

    def _holds(
        self, wait: WaitingRun, row: Row, conditions: tuple[Callable[[Env], bool], ...]
    ) -> bool:
        """Whether all conditions hold."""
        env = self.seen(wait.run, wait.groups, wait.edge, row)
        return all(condition(env) for condition in conditions)

    def seen(self, run: Run, groups: Groups | None, edge: Edge, row: Row) -> TakeEnv:
        """The variables as a FILTER sees them while a run takes a row along an edge.

        `groups` are the run's after the edge. The next call changes the returned object.
        """
        env, label = self._env, edge.label
        assert isinstance(label, TakeLabel)
        env.run, env.groups, env.row = run, groups, row
        env.take, env.views = self._machine.takes[edge.id], label.views
        return env
