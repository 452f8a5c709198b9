"""An automaton as a diagram: a box for each state, and the links between them.

All edges into a state take the same step, so the state's box names the step, and a link has only
the operator, the negated steps that must not match, and the repetitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    Program,
    State,
    TakeLabel,
)
from spaseq.lang import ast
from spaseq.lang.ast.pattern_nodes import OPERATORS, OpKind
from spaseq.lang.format import format_sequence
from spaseq.lang.sequence import Negation, Repeat, steps
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.sequencing import drawn_program
from spaseq.records import record
from spaseq.render.query_words import (
    QueryWords,
    filters_of,
    operator_text,
    sequence_text,
    variables_text,
)

BRACKETS = {"|": "one of these", "&": "both at one time", "AND": "both, in any order"}
"""The words for the matches of a bracket, by its kind."""


@record
class StateBox:
    """A state, with the step of the edges into it.

    `name` is the GPM's, or the kind of a bracket, whose operands are diagrams themselves; it is
    empty for the initial state. `joined` are the variables on which the step is joined with earlier
    ones. `ends` has a text for each way to accept with further conditions. `step` is the number of
    the GPM's use in the sequence; `copy` numbers the states of one use.
    """

    id: str
    name: str
    streams: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    counts: tuple[str, ...] = ()
    final: bool = False
    ends: tuple[str, ...] = ()
    operands: tuple[Diagram, ...] = ()
    step: int | None = None
    copy: int | None = None

    @property
    def title(self) -> str:
        """The name, with the number of the repetition if there are several such states."""
        return self.name if self.copy is None else f"{self.name} #{self.copy}"


@record
class StateLink:
    """An edge between two states, given by their places; `operator` is empty at the start."""

    source: int
    target: int
    operator: str
    again: bool = False
    unless: tuple[str, ...] = ()

    @property
    def label(self) -> tuple[str, ...]:
        """The lines of its label."""
        how = (f"{self.operator} again" if self.again else self.operator,)
        return tuple(filter(None, how)) + self.unless


@record
class Diagram:
    """An automaton; the first state is the initial one."""

    states: tuple[StateBox, ...]
    links: tuple[StateLink, ...]


@record
class Panel:
    """An automaton beside the main one: a negated step, or the GPM of UNTIL."""

    title: str
    diagram: Diagram


@record
class Picture:
    """The drawn parts of a query.

    `operators` are the signs that occur. `leads` has, by the id of an automaton, the prefix of the
    ids of its states; the number of the state follows.
    """

    title: str
    note: str
    main: Diagram
    panels: tuple[Panel, ...]
    operators: tuple[OpKind, ...]
    leads: Mapping[int, str]


def picture_of(plan: QueryPlan, query: ast.Query, note: str) -> Picture:
    """The picture of a plan; `note` is below its title."""
    program = drawn_program(plan)
    makes = _DiagramMaker(plan, query, program)
    until = {negation: repeat for repeat, negation in program.untils.items()}
    panels = []
    for negated in program.negated:
        name = makes.negated[negated.id]
        repeat = until.get(negated.id)
        title = f"no {name}" if repeat is None else f"{makes.repeated[repeat]} ends at {name}"
        panels.append(Panel(title, makes.diagram(negated.automaton, f"n{negated.id}_")))
    kinds = {e.join.kind for e in program.edges if e.join is not None}
    signs = tuple(sign for sign in OPERATORS if sign in kinds)
    return Picture(
        format_sequence(query.sequence),
        note,
        makes.diagram(program.automaton, "s"),
        tuple(panels),
        signs,
        makes.leads,
    )


class _DiagramMaker:
    """Makes the diagrams of one program."""

    def __init__(self, plan: QueryPlan, query: ast.Query, program: Program) -> None:
        chain = plan.sequence.chain
        self._plan, self._program, self._words = plan, program, QueryWords(query.prologue)
        self._drawn: set[int] = set()
        self.leads: dict[int, str] = {}
        self._patterns = {gpm.name: gpm.pattern for gpm in query.gpms}
        self.negated = {
            s.id: _bracketed(sequence_text(s.body)) for s in steps(chain) if isinstance(s, Negation)
        }
        self.repeated = {
            s.id: _bracketed(sequence_text(s.body)) for s in steps(chain) if isinstance(s, Repeat)
        }

    def diagram(self, automaton: Automaton, lead: str) -> Diagram:
        """The diagram of an automaton; the ids of its states begin with `lead`."""
        self.leads[automaton.id] = lead
        into: dict[int, Edge] = {}
        for state in automaton.states:
            for edge in state.edges:
                into.setdefault(edge.target, edge)
        order = _order(automaton)
        place_of = {number: at for at, number in enumerate(order)}
        boxes = _numbered(
            [
                self._box(automaton.states[number], into.get(number), f"{lead}{number}")
                for number in order
            ]
        )
        links = tuple(
            self._link(edge, place_of[number], place_of[edge.target])
            for number in order
            for edge in automaton.states[number].edges
        )
        return Diagram(boxes, links)

    def _box(self, state: State, edge: Edge | None, name: str) -> StateBox:
        ends = tuple(filter(None, map(self._end, state.acceptances)))
        final = bool(state.acceptances)
        if edge is None:
            return StateBox(name, "", final=final, ends=ends)
        label = edge.label
        if isinstance(label, BracketLabel):
            return self._bracket(label, StateBox(name, label.kind, final=final, ends=ends))
        return StateBox(
            name,
            label.name,
            self._plan.sources_of(self._gpm(label)),
            label.key,
            self.conditions(label.name),
            tuple(self._counts(edge)),
            final,
            ends,
            step=label.occurrence,
        )

    def _bracket(self, label: BracketLabel, box: StateBox) -> StateBox:
        """The state of a bracket; operands are drawn once, however many states take them."""
        if any(operand.id in self._drawn for operand in label.operands):
            return replace(box, counts=("as above",))
        self._drawn.update(operand.id for operand in label.operands)
        operands = tuple(
            self.diagram(each, f"{box.id}_{number}_")
            for number, each in enumerate(label.operands, 1)
        )
        return replace(box, operands=operands)

    def _gpm(self, label: TakeLabel) -> GpmPlan:
        return self._plan.patterns.gpms[label.gpm]

    def conditions(self, gpm: str) -> tuple[str, ...]:
        """The FILTERs of a GPM, each conjunct by itself."""
        pattern = self._patterns.get(gpm)
        return () if pattern is None else tuple(self._words.conditions(filters_of(pattern)))

    def _counts(self, edge: Edge) -> Iterator[str]:
        """The bounds of the counted repetitions that begin with the edge."""
        for action in edge.actions:
            bounds = self._program.bounds.get(action.repeat)
            if bounds is not None and action.kind != "exit":
                name = self.repeated[action.repeat]
                top = "or more" if bounds.maximum is None else f"to {bounds.maximum:,}"
                yield f"{name} {bounds.minimum:,} {top} times"

    def _link(self, edge: Edge, source: int, target: int) -> StateLink:
        again = any(action.kind == "again" for action in edge.actions)
        operator = "" if edge.join is None else operator_text(edge.join)
        return StateLink(source, target, operator, again, tuple(self._unless(edge)))

    def _end(self, end: Acceptance) -> str:
        unless = ", ".join(self._unless(end))
        return f"at the close: {unless}" if unless else ""

    def _unless(self, passed: Edge | Acceptance) -> Iterator[str]:
        for negation in passed.negations:
            yield f"no {self.negated[negation]}"
        for left in passed.exits:
            yield f"no {'' if left.first else 'further '}{self.repeated[left.repeat]}"


def _numbered(boxes: Sequence[StateBox]) -> tuple[StateBox, ...]:
    """The states, with numbers for those that take the same step."""
    alike: dict[tuple[str, object], list[StateBox]] = {}
    for box in boxes:
        alike.setdefault((box.name, box.step), []).append(box)
    return tuple(
        replace(box, copy=same.index(box) + 1) if box.step is not None and len(same) > 1 else box
        for box in boxes
        for same in (alike[box.name, box.step],)
    )


def _bracketed(sequence: str) -> str:
    return f"({sequence})" if " " in sequence and not sequence.startswith("(") else sequence


def _order(automaton: Automaton) -> list[int]:
    """The states from the initial one on, each after those that lead to it, loops aside."""
    done: list[int] = []
    seen = {0}
    waiting = [(0, iter(automaton.states[0].edges))]
    while waiting:
        number, edges = waiting[-1]
        target = next((e.target for e in edges if e.target not in seen), None)
        if target is None:
            done.append(number)
            waiting.pop()
        else:
            seen.add(target)
            waiting.append((target, iter(automaton.states[target].edges)))
    return done[::-1]


def state_words(box: StateBox) -> tuple[str, ...]:
    """The step that a state takes, in lines."""
    if not box.name:
        return ("start", *box.ends)
    if box.name in BRACKETS:
        return (f"{BRACKETS[box.name]} ({box.name})", *box.counts, *box.ends)
    lines = [f"{box.title} on {', '.join(box.streams)}"]
    if box.joined:
        lines.append(f"same {variables_text(box.joined)}")
    return (*lines, *box.conditions, *box.counts, *box.ends)


def legend_of(operators: Iterable[OpKind]) -> list[str]:
    """The legend of the signs of a picture."""
    return [OPERATORS[sign].legend for sign in operators]
