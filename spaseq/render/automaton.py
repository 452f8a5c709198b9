"""The G-NFA as readable text."""

from __future__ import annotations

from collections.abc import Iterator

from spaseq.algebra.groups import conjoined
from spaseq.automaton.program.counters import RepeatBounds
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    Program,
    TakeLabel,
)
from spaseq.lang.ast.pattern_nodes import OPERATORS
from spaseq.lang.sequence import SequenceOperator
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import drawn_program
from spaseq.render.query_words import QueryWords, duration_text, variables_text


def automaton_text(plan: QueryPlan, words: QueryWords) -> str:
    """The states with their edges, then the negated steps; `words` has the query's prefixes.

    Operands of a bracket are indented, and drawn once, however many edges lead to the bracket.
    """
    return "\n".join(_AutomatonText(plan, words).program(drawn_program(plan)))


class _AutomatonText:
    """Writes one program; `_drawn` has the operands, by id, that are there already."""

    def __init__(self, plan: QueryPlan, words: QueryWords) -> None:
        self._plan, self._words = plan, words
        self._drawn: set[int] = set()

    def program(self, program: Program) -> Iterator[str]:
        """The lines of a program."""
        if program is not self._plan.sequence.program:
            states = len(self._plan.sequence.program.automaton.states)
            yield f"drawn with counters; unrolled, as it runs, it has {states:,} states"
        for repeat, bounds in sorted(program.bounds.items()):
            yield f"counter of repetition {repeat}: {_bounds(bounds)}"
        yield from self._automaton(program.automaton, "")
        until = {negation: repeat for repeat, negation in program.untils.items()}
        for negated in program.negated:
            ends = until.get(negated.id)
            yield f"negated step {negated.id}:" if ends is None else f"repetition {ends} ends at:"
            yield from self._automaton(negated.automaton, "  ")
        for left, automaton in program.further.items():
            which = "first" if left.first else "one more"
            yield f"repetition {left.repeat}, {which} time:"
            yield from self._automaton(automaton, "  ")

    def _automaton(self, automaton: Automaton, lead: str) -> Iterator[str]:
        for number, state in enumerate(automaton.states):
            final = " (final)" if state.acceptances else ""
            yield f"{lead}state {number}: {state.name}{final}"
            for edge in state.edges:
                yield f"{lead}  -> {edge.target}: {self._edge(edge)}"
                if isinstance(edge.label, BracketLabel):
                    yield from self._operands(edge.label, f"{lead}       ")
            for end in state.acceptances:
                if end.actions or end.negations or end.exits:
                    yield f"{lead}  accept{_passing(end)}"

    def _operands(self, bracket: BracketLabel, lead: str) -> Iterator[str]:
        for i, operand in enumerate(bracket.operands):
            if operand.id in self._drawn:
                yield f"{lead}operand {i + 1}: as above"
                continue
            self._drawn.add(operand.id)
            yield f"{lead}operand {i + 1}:"
            yield from self._automaton(operand, f"{lead}  ")

    def _edge(self, edge: Edge) -> str:
        label = edge.label
        if isinstance(label, TakeLabel):
            gpm = self._plan.patterns.gpms[label.gpm]
            streams = ", ".join(self._plan.sources_of(gpm))
            what = f"TAKE {label.name} on {streams}"
            if label.key:
                what += f" joined on {variables_text(label.key)}"
            condition = conjoined(gpm.conditions)
            if condition is not None:
                what += f" if {self._words.condition(condition)}"
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
    bound = f", at most {duration_text(join.gap_ms)} later" if join.gap_ms is not None else ""
    return OPERATORS[join.kind].ignored + bound
