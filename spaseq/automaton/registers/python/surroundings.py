"""The match around a negated step, as the negated step sees it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spaseq.algebra.answers import Instant
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_match import PartitionMatch
from spaseq.automaton.run.runs import Obligation, Outside, Row
from spaseq.automaton.run.scoping import TraceNodes, trace_of


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
    """The time (ms) of the last event of each GPM that TIMESTAMP asks for."""
    times = dict(outside)
    for gpm, row in taken:
        name = machine.names[gpm]
        if name in machine.timed:
            times[name] = max(times.get(name, row[1]), row[1])
    return times
