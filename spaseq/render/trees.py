"""Readable text of syntax tree, algebra and automaton: any tree of frozen dataclasses, and the
G-NFA.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

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
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import drawn_program
from spaseq.render.query_words import QueryWords, duration_text, variables_text


def algebra_text(plan: QueryPlan) -> str:
    """The pattern of each GPM as a tree, then its conditions on earlier steps.

    The core of a correlated GPM, which stage 1 evaluates, follows the pattern.
    """
    return "\n".join(line for gpm in plan.patterns.gpms for line in _gpm(gpm))


def _gpm(gpm: GpmPlan) -> Iterator[str]:
    yield f"GPM {gpm.name}"
    yield tree(gpm.pattern)
    if gpm.correlation is not None:
        yield tree(gpm.correlation.core, "core")
        for name, expr in gpm.correlation.parameters:
            yield tree(expr, f"parameter {name}")
    for condition in gpm.conditions:
        yield tree(condition, "condition on earlier steps")


_HIDDEN = {"span"}


def tree(node: object, label: str = "") -> str:
    """A node and all nodes below it, a line for each node; leaves share the line of their node."""
    return "\n".join(_lines(node, label, 0))


def _lines(node: object, label: str, depth: int) -> Iterator[str]:
    lead = "  " * depth + (f"{label}: " if label else "")
    if isinstance(node, tuple | list):
        if all(_is_leaf(n) for n in node):
            yield f"{lead}[{', '.join(_leaf(n) for n in node)}]"
            return
        yield f"{lead}[{len(node)}]"
        for child in node:
            yield from _lines(child, "", depth + 1)
        return
    if isinstance(node, Mapping):
        yield f"{lead}{{{', '.join(f'{k}: {_leaf(v)}' for k, v in node.items())}}}"
        return
    if _is_leaf(node):
        yield f"{lead}{_leaf(node)}"
        return
    leaves: list[tuple[str, object]] = []
    branches: list[tuple[str, object]] = []
    for field in fields(node):  # type: ignore[arg-type]
        value = getattr(node, field.name)
        if field.name in _HIDDEN or value is None or value == ():
            continue
        (leaves if _is_leaf(value) else branches).append((field.name, value))
    inner = ", ".join(f"{name}={_leaf(value)}" for name, value in leaves)
    yield f"{lead}{type(node).__name__}({inner})"
    for name, value in branches:
        yield from _lines(value, name, depth + 1)


def _is_leaf(node: object) -> bool:
    if is_dataclass(node):
        shown = [f.name for f in fields(node) if f.name not in _HIDDEN]
        values = [getattr(node, name) for name in shown]
        return len(shown) <= 3 and all(
            v is None or isinstance(v, str | int | bool | frozenset) for v in values
        )
    if isinstance(node, tuple | list):
        return not node
    return not isinstance(node, Mapping)


def _leaf(node: object) -> str:
    match node:
        case str():
            return node
        case frozenset():
            return "{" + ", ".join(sorted(map(str, node))) + "}"
        case tuple() | list():
            return "[]"
    if is_dataclass(node):
        values = [getattr(node, f.name) for f in fields(node) if f.name not in _HIDDEN]
        shown = ", ".join(_leaf(v) for v in values if v is not None)
        return f"{type(node).__name__}({shown})"
    return str(node)


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
    """The bounds of a counter, in words.

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
