"""The G-NFA as readable text."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.automaton.program.counters import RepeatBounds
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    Program,
    TakeLabel,
)
from spaseq.lang.sequence import SequenceOperator
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import drawn_program

_SKIPS = {
    ",": "IGNORE nothing (strict contiguity)",
    ";": "IGNORE until it matches (skip-till-next)",
    ":": "IGNORE any (skip-till-any)",
}


def automaton_text(plan: QueryPlan) -> str:
    """The states with their edges, then the negated steps.

    Operands of a bracket are indented, and drawn once, however many edges lead to the bracket.
    """
    return "\n".join(_program(plan, drawn_program(plan)))


def _program(plan: QueryPlan, program: Program) -> Iterator[str]:
    if program is not plan.sequence.program:
        states = len(plan.sequence.program.automaton.states)
        yield f"drawn with counters; unrolled, as it runs, it has {states:,} states"
    for repeat, bounds in sorted(program.bounds.items()):
        yield f"counter of repetition {repeat}: {_bounds(bounds)}"
    drawn = set[int]()
    yield from _automaton(plan, program.automaton, "", drawn)
    until = {negation: repeat for repeat, negation in program.untils.items()}
    for negated in program.negated:
        ends = until.get(negated.id)
        yield f"negated step {negated.id}:" if ends is None else f"repetition {ends} ends at:"
        yield from _automaton(plan, negated.automaton, "  ", drawn)
    for left, automaton in program.further.items():
        which = "first" if left.first else "one more"
        yield f"repetition {left.repeat}, {which} time:"
        yield from _automaton(plan, automaton, "  ", drawn)


def _automaton(plan: QueryPlan, automaton: Automaton, lead: str, drawn: set[int]) -> Iterator[str]:
    """The lines of an automaton; operands in `drawn`, by id, are there already."""
    for number, state in enumerate(automaton.states):
        final = " (final)" if state.acceptances else ""
        yield f"{lead}state {number}: {state.name}{final}"
        for edge in state.edges:
            yield f"{lead}  -> {edge.target}: {_edge(plan, edge)}"
            if isinstance(edge.label, BracketLabel):
                for i, operand in enumerate(edge.label.operands):
                    if operand.id in drawn:
                        yield f"{lead}       operand {i + 1}: as above"
                        continue
                    drawn.add(operand.id)
                    yield f"{lead}       operand {i + 1}:"
                    yield from _automaton(plan, operand, lead + "         ", drawn)
        for end in state.acceptances:
            if end.actions or end.negations:
                yield f"{lead}  accept{_passing(end)}"


def _edge(plan: QueryPlan, edge: Edge) -> str:
    label = edge.label
    if isinstance(label, TakeLabel):
        gpm = plan.patterns.gpms[label.gpm]
        streams = ", ".join(plan.inputs.stream_names[s] for s in gpm.streams)
        what = f"TAKE {label.name} on {streams}"
        if label.key:
            what += " joined on " + ", ".join(f"?{v}" for v in label.key)
        if gpm.conditions:
            what += f", {len(gpm.conditions)} condition(s) on earlier steps"
    else:
        what = f"TAKE a match of {label.kind}"
    return f"{what}{_passing(edge)}; {_skips(edge.join)}"


def _passing(edge: Edge | Acceptance) -> str:
    parts = [f"{a.kind} repetition {a.repeat}" for a in edge.actions]
    parts += [f"unless negated step {n} matched" for n in edge.negations]
    parts += [f"unless repetition {e.repeat} can go on" for e in edge.exits]
    return f" [{', '.join(parts)}]" if parts else ""


def _bounds(bounds: RepeatBounds) -> str:
    """What a counter allows.

    >>> _bounds(RepeatBounds(2, 1000)), _bounds(RepeatBounds(5, None))
    ('again below 1,000, exit from 2 on', 'again always, exit from 5 on')
    """
    again = "always" if bounds.maximum is None else f"below {bounds.maximum:,}"
    return f"again {again}, exit from {max(bounds.minimum, 1):,} on"


def _skips(join: SequenceOperator | None) -> str:
    if join is None:
        return "begins anywhere"
    bound = f", gap at most {join.gap_ms} ms" if join.gap_ms is not None else ""
    return _SKIPS[join.kind] + bound
