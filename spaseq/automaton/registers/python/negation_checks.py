"""Checks of negated steps and greedy loops: a search for a match that must not be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.counters import Action
from spaseq.automaton.registers.python.event_history import EventHistory, search_start
from spaseq.automaton.registers.python.run_stepping import RunStepper, start_of
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import PartitionMatch
from spaseq.automaton.run.runs import (
    Duty,
    LeftLoop,
    Obligation,
    Outside,
    Row,
    Run,
)
from spaseq.automaton.run.scoping import ListNodes, TraceNodes, trace_of, values_since


def surroundings(
    machine: Machine,
    trace: TraceNodes,
    match: PartitionMatch,
    obligation: Obligation,
    around: Outside | None,
    after: Instant | None,
) -> tuple[Mapping[str, str], Outside]:
    """The single variables of a match, and its other parts that a negated step can use.

    `around` is the view of `match` on its surroundings if `match` belongs to a negated step. The
    negated step must not match after the instant `after`.
    """
    views = machine.program.negated[obligation.negation].views
    groups = dict(around.groups) if around else {}
    previous = dict(around.previous) if around else {}
    running = dict(around.running) if around else {}
    for variable, view in views.items():
        if view.kind == "whole":
            groups[variable] = match.lists.get(variable, ())
            continue
        assert view.repeat is not None
        captured = obligation.captured.get(view.repeat)
        groups[variable] = captured.values.get(variable, ()) if captured else ()
        if view.kind == "current" and captured:
            running[variable] = captured.running.get(variable, ())
            if variable in captured.previous:
                previous[variable] = captured.previous[variable]
    singles = {**match.singles, **{v: groups[v][-1] for v in views if groups[v]}}
    times = _times(machine, trace, match, obligation, around.times if around else {})
    return singles, Outside(groups, previous, times, after, running)


def _times(
    machine: Machine,
    trace: TraceNodes,
    match: PartitionMatch,
    obligation: Obligation,
    outside: Mapping[str, int],
) -> Mapping[str, int]:
    """The times for TIMESTAMP in a negated step: inside a repetition, as of its end."""
    if not machine.timed:
        return {}
    times = _latest(machine, match.trace, outside)
    for captured in reversed([*obligation.captured.values()]):  # the innermost repetition last
        times.update(_latest(machine, trace_of(trace, captured.trace), outside))
    return times


def _latest(
    machine: Machine, taken: Iterable[tuple[int, Row]], outside: Mapping[str, int]
) -> dict[str, int]:
    """The time (ms) of the last event of each GPM that TIMESTAMP uses."""
    times = dict(outside)
    for gpm, row in taken:
        name = machine.names[gpm]
        if name in machine.timed:
            times[name] = max(times.get(name, row[1]), row[1])
    return times


class NegationChecks:
    """Checks the obligations of complete matches against the event history."""

    __slots__ = ("_history", "_lists", "_machine", "_stepper", "_trace")

    def __init__(
        self,
        machine: Machine,
        trace: TraceNodes,
        lists: ListNodes,
        history: EventHistory,
        stepper: RunStepper,
    ) -> None:
        self._machine, self._trace, self._lists = machine, trace, lists
        self._history, self._stepper = history, stepper

    def is_violated(self, match: PartitionMatch, duty: Duty, around: Outside | None = None) -> bool:
        """Whether a negated step matches, or a greedy loop repeats, where it must not.

        `around` is the view of `match` on its surroundings if `match` belongs to a negated step.
        """
        if isinstance(duty, LeftLoop):
            return self._goes_on(match, duty, around)
        return self._matches(match, duty, around)

    def _matches(
        self, match: PartitionMatch, obligation: Obligation, around: Outside | None
    ) -> bool:
        """Whether a negated step matches where it must not."""
        machine = self._machine
        after = search_start(self._history, machine.window, match, obligation)
        automaton = machine.program.negated[obligation.negation].automaton
        moments = self._stepper.moments(automaton, match.origin, after, obligation.end)
        if moments is None:
            return False
        singles, outside = surroundings(machine, self._trace, match, obligation, around, after)
        start = start_of(automaton, singles, outside)
        return any(self._stands(run) for run in self._stepper.found(start, moments))

    def _goes_on(self, match: PartitionMatch, left: LeftLoop, around: Outside | None) -> bool:
        """Whether a greedy loop has one more repetition before the next step begins."""
        runs = self._stepper.going_on(left, match.origin)
        return any(self._counts(run, match, left, around) for run in runs)

    def _counts(
        self, run: Run, match: PartitionMatch, left: LeftLoop, around: Outside | None
    ) -> bool:
        """Whether UNTIL, of the loop and inside it, allows one more repetition of a greedy loop."""
        program, repeat = self._machine.program, left.exit.repeat
        if left.exit.forestalls:
            return True
        leave = (Action("exit", repeat),) if repeat in program.untils else ()
        for end in self._stepper.ends(run):
            ended = self._stepper.ended(run, (*end.actions, *leave))
            if not ended.obligations:
                return True
            repetition = self.match_of(ended)
            repetition.singles = {**match.singles, **repetition.singles}
            repetition.lists = {**match.lists, **repetition.lists}
            if not any(self.is_violated(repetition, o, around) for o in ended.obligations):
                return True
        return False

    def _stands(self, run: Run) -> bool:
        """Whether a match of a negated step passes the negated steps inside it."""
        for end in self._stepper.ends(run):
            ended = self._stepper.ended(run, end.actions)
            if not ended.obligations:
                return True
            match = self.match_of(ended)
            if not any(self.is_violated(match, o, run.outside) for o in ended.obligations):
                return True
        return False

    def match_of(self, run: Run) -> PartitionMatch:
        """The match of a complete run."""
        assert run.first is not None and run.last is not None and run.origin is not None
        lasts = run.groups.lists if run.groups else {}
        lists = {v: values_since(self._lists, last, 0) for v, last in lasts.items()}
        trace = tuple(reversed([*trace_of(self._trace, run.trace)]))
        return PartitionMatch(run.first, run.last, run.origin, trace, run.singles, lists)
