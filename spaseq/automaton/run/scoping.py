"""The values of variables that a FILTER sees at its place in the query, given a run's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from spaseq.automaton.program.counters import Action, counts_after
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.run.arena import NIL, Arena
from spaseq.automaton.run.machine import CompiledTake
from spaseq.automaton.run.runs import Captured, Duty, Groups, Obligation, Row, Run
from spaseq.lang.scope import View

TraceNodes: TypeAlias = Arena[tuple[int, Row, int]]
"""(GPM index, row, id of the node before)."""

ListNodes: TypeAlias = Arena[tuple[str, int, int]]
"""(value, id of the node before, length so far)."""


def values_since(nodes: ListNodes, last: int, length: int) -> tuple[str, ...]:
    """The values of a list after its first `length`, in order."""
    values = []
    while last != NIL:
        value, before, position = nodes[last]
        if position <= length:
            break
        values.append(value)
        last = before
    return tuple(reversed(values))


def segment(nodes: ListNodes, groups: Groups, variable: str, view: View) -> tuple[str, ...]:
    """The values of a group variable that are visible with a view, in order."""
    last = groups.lists.get(variable, NIL)
    if last == NIL:
        return ()
    start = 0
    if view.kind != "whole":
        assert view.repeat is not None
        start = groups.marks.get(view.repeat, {}).get(variable, 0)
    return values_since(nodes, last, start)


def running_values(nodes: ListNodes, groups: Groups, variable: str, repeat: int) -> tuple[str, ...]:
    """The values of a group variable in all repetitions since its step was entered, in order."""
    start = groups.entries.get(repeat, {}).get(variable, 0)
    return values_since(nodes, groups.lists.get(variable, NIL), start)


class TakeEnv:
    """The variables that a FILTER of a GPM sees when an edge takes a row."""

    __slots__ = ("groups", "lists", "names", "row", "run", "take", "trace", "views")

    def __init__(self, names: Sequence[str], trace: TraceNodes, lists: ListNodes) -> None:
        self.names, self.trace, self.lists = names, trace, lists
        self.run: Run
        self.groups: Groups | None
        self.row: Row
        self.take: CompiledTake
        self.views: Mapping[str, View]

    def value(self, name: str) -> str | None:
        column = self.take.columns.get(name)
        if column is not None:
            text = self.row[4][column]
            if text is not None:
                return text
        view = self.views.get(name)
        if view is None or view.kind == "outer":
            return self.run.singles.get(name)
        if self.groups is None:  # no repetition has begun
            return None
        if view.kind == "current":
            return self.groups.current.get(name)
        seen = segment(self.lists, self.groups, name, view)
        return seen[-1] if seen else None

    def previous(self, name: str) -> str | None:
        view = self.views.get(name)
        if view is not None and view.kind == "outer":
            return self.run.outside.previous.get(name) if self.run.outside else None
        return self.groups.previous.get(name) if self.groups else None

    def group(self, name: str) -> Sequence[str]:
        view = self.views.get(name)
        if view is None:
            value = self.value(name)
            return () if value is None else (value,)
        if view.kind == "outer":
            outside = self.run.outside
            return outside.running.get(name, outside.groups.get(name, ())) if outside else ()
        if self.groups is None:
            return ()
        if view.kind != "current":
            return segment(self.lists, self.groups, name, view)
        assert view.repeat is not None
        values = running_values(self.lists, self.groups, name, view.repeat)
        column = self.take.columns.get(name)
        term = None if column is None else self.row[4][column]
        return values if term is None or name in self.groups.current else (*values, term)

    def time(self, gpm: str) -> int | None:
        times = [r[1] for g, r in trace_of(self.trace, self.run.trace) if self.names[g] == gpm]
        outside = self.run.outside.times.get(gpm) if self.run.outside else None
        return max(times if outside is None else [*times, outside], default=None)

    def now(self) -> int | None:
        return self.row[1]


def trace_of(nodes: TraceNodes, node: int) -> Iterator[tuple[int, Row]]:
    """The (GPM index, row) pairs of a trace up to a node, last first."""
    while node != NIL:
        gpm, row, node = nodes[node]
        yield gpm, row


def bind(
    lists: ListNodes,
    groups: Groups | None,
    columns: tuple[tuple[int, str], ...],
    values: tuple[str | None, ...],
) -> Groups | None:
    """Bind the group variables of a repetition, and append the values to their lists."""
    if not columns or groups is None:
        return groups
    after: Groups | None = None
    for column, variable in columns:
        value = values[column]
        if value is None or variable in groups.current:
            continue
        after = after or groups.to_bind()
        last = after.lists.get(variable, NIL)
        length = lists[last][2] if last != NIL else 0
        after.current[variable] = value
        after.lists[variable] = lists.add((value, last, length + 1))
    return after or groups


def may_follow(program: Program, actions: Sequence[Action], groups: Groups | None) -> bool:
    """Whether the bounds of counted repetitions allow a run the actions of an edge."""
    return counts_after(program.bounds, groups.counts if groups else (), actions) is not None


def follow(
    program: Program,
    lists: ListNodes,
    actions: Sequence[Action],
    groups: Groups | None,
    obligations: tuple[Duty, ...],
    run: Run,
) -> tuple[Groups | None, tuple[Duty, ...]]:
    """The group variables and obligations of a run after the actions of an edge.

    Call it only if `may_follow` allows the actions. `groups` and `obligations` are what `run` has
    before the edge. The obligation of an UNTIL belongs to the last repetition, so a further
    repetition replaces it.
    """
    if not actions:
        return groups, obligations
    after = groups.to_repeat() if groups else Groups({}, {}, {}, {})
    if program.bounds:
        after.counts = counts_after(program.bounds, after.counts, actions) or ()
    for action in actions:
        repeat = action.repeat
        variables = program.owned.get(repeat, ())
        if action.kind != "start" and program.negation_in_repeat:
            obligations = tuple(
                _capture(program, lists, after, repeat, run.trace, o) for o in obligations
            )
        until = program.untils.get(repeat)
        if until is not None and action.kind != "exit":
            obligations = _until(until, action, obligations, run)
        for variable in variables:
            value = after.current.pop(variable, None)
            after.previous.pop(variable, None)
            if action.kind == "again" and value is not None:
                after.previous[variable] = value
        if action.kind != "exit":
            known = after.lists
            after.marks[repeat] = lengths = {
                v: lists[known[v]][2] if v in known else 0
                for v in program.owned_within.get(repeat, ())
            }
            if action.kind == "start":
                after.entries[repeat] = lengths
    return after, obligations


def _until(until: int, action: Action, obligations: tuple[Duty, ...], run: Run) -> tuple[Duty, ...]:
    """The obligations once a repetition of a loop with UNTIL begins."""
    after, kept = None if action.opens else run.last, list(obligations)
    if action.kind == "again":
        at = max(
            i
            for i, duty in enumerate(kept)
            if isinstance(duty, Obligation) and duty.negation == until
        )
        old = kept.pop(at)
        assert isinstance(old, Obligation)
        after = old.after
    return *kept, Obligation(until, after, None, until=True)


def _capture(
    program: Program,
    lists: ListNodes,
    groups: Groups,
    repeat: int,
    trace: int,
    obligation: Duty,
) -> Duty:
    """Keep the values that this repetition bound, for a negated step inside it."""
    if not isinstance(obligation, Obligation):
        return obligation
    negated = program.negated[obligation.negation]
    if repeat not in negated.repeats or repeat in obligation.captured:
        return obligation
    view = View("segment", repeat)
    values = {v: segment(lists, groups, v, view) for v in program.owned_within[repeat]}
    previous = {v: groups.previous[v] for v in program.owned[repeat] if v in groups.previous}
    running = {v: running_values(lists, groups, v, repeat) for v in program.owned[repeat]}
    captured = {**obligation.captured, repeat: Captured(values, previous, trace, running)}
    return replace(obligation, captured=captured)
