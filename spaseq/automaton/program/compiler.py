"""Compiles the normal form of a sequence to the G-NFA.

A chain first becomes a small program of instructions (take, pass a negation, loop). The states are
its reachable configurations (place, repetition counts). The count of an unbounded repetition stops
at its minimum, so there are finitely many states. If there were too many, the runs count
repetitions instead, and a state is a place.

An unrolled repetition has a copy of its body for every number of repetitions. All evaluators can
run it, the kernels included. A counted one has a single copy (`counters`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from types import MappingProxyType
from typing import TypeAlias

from spaseq.automaton.program import nfa
from spaseq.automaton.program.counters import Action, Counts, RepeatBounds
from spaseq.lang import sequence as seq
from spaseq.lang.scope import Scope, View
from spaseq.records import record

MOST_EDGES = 20_000
"""Maximum number of edges of an automaton."""


class TooManyEdges(Exception):
    """A sequence needs more edges than an automaton may have."""

    def __init__(self) -> None:
        super().__init__(f"the automaton of this sequence has more than {MOST_EDGES:,} edges")


@record
class _Loop:
    repeat: seq.Repeat
    body: int
    exit: int


@record
class _Jump:
    to: int


@record
class _Pass:
    negation: int


@record
class _Atom:
    step: seq.GpmStep | seq.BinaryStep
    join: seq.SequenceOperator


_Instruction: TypeAlias = _Loop | _Jump | _Pass | _Atom


@record
class _EpsilonPath:
    """The end of an epsilon path: the place reached, and the effects on the way."""

    place: int
    counts: Counts
    actions: tuple[Action, ...] = ()
    negations: tuple[int, ...] = ()
    exits: tuple[nfa.GreedyExit, ...] = ()
    own: seq.SequenceOperator | None = None
    """The operator that a loop has put in place of the operator before its first step."""


def compile_program(
    chain: seq.Chain,
    scope: Scope,
    gpms: Sequence[str],
    certain: Mapping[str, frozenset[str]],
    most_states: int | None = None,
) -> nfa.Program:
    """Compile a sequence.

    Args:
        chain: the sequence in normal form.
        scope: the scopes of its variables.
        gpms: the GPM names of the plan, in order.
        certain: by GPM name, the variables that every solution of the GPM binds.
        most_states: repetitions that need more states are counted; at most `MOST_STATES`.

    Raises:
        TooManyEdges: the sequence is too large, even with counted repetitions.
    """
    most = MOST_STATES
    if most_states is not None:
        most = min(most, most_states)
    folded, bounds = counted(chain)
    if not bounds or unrolled_states(chain) <= most:
        try:
            return _ProgramCompiler(chain, scope, gpms, certain).program()
        except TooManyEdges:
            if not bounds:
                raise
    return _ProgramCompiler(folded, scope, gpms, certain, bounds).program()


class _ProgramCompiler:
    def __init__(
        self,
        chain: seq.Chain,
        scope: Scope,
        gpms: Sequence[str],
        certain: Mapping[str, frozenset[str]],
        bounds: Mapping[int, RepeatBounds] = MappingProxyType({}),
    ) -> None:
        self._chain = chain
        self._bounds = bounds
        self._scope = scope
        self._gpm = {name: i for i, name in enumerate(gpms)}
        self._certain = {n: vs & scope.singles for n, vs in certain.items()}
        self._keys: dict[int, frozenset[str]] = {}
        self._before: dict[int, frozenset[str]] = {}  # by id of a step with `&` or AND
        self._edges: list[nfa.Edge] = []
        self._automata = count()
        self._negations = {p.id: p for p in seq.steps(chain) if isinstance(p, seq.Negation)}
        self._loops = [p for p in seq.steps(chain) if isinstance(p, seq.Repeat)]

    def program(self) -> nfa.Program:
        self._bound_before(self._chain, frozenset())
        automaton = self._automaton(self._chain, 0)
        negated = tuple(self._negated(p) for _, p in sorted(self._negations.items()))
        further = {e: a for loop in self._loops if loop.greedy for e, a in self._further(loop)}
        scope = self._scope
        owner = dict(scope.owner)
        for variables in scope.negation_owner.values():
            owner.update(variables)
        return nfa.Program(
            automaton,
            negated,
            owner,
            {r: tuple(sorted(v for v, o in owner.items() if o == r)) for r in scope.enclosing},
            {r: scope.owned_within(r) for r in scope.enclosing},
            tuple(self._edges),
            frozenset(self._replayed(self._chain, False)),
            any(e.join is not None and e.join.kind == "," for e in self._edges),
            any(n.repeats for n in negated),
            dict(self._bounds),
            {r.id: r.until.id for r in self._loops if r.until is not None},
            further,
        )

    # --- variables that are certainly bound before an occurrence --------------------------------

    def _bound_before(self, chain: seq.Chain, before: frozenset[str]) -> frozenset[str]:
        """Record the key of every occurrence; return the variables surely bound after the chain."""
        for link in chain.links:
            before = self._bound_after(link.step, before)
        return before

    def _bound_after(self, step: seq.ChainStep, before: frozenset[str]) -> frozenset[str]:
        match step:
            case seq.GpmStep(use):
                self._keys[use.id] = before & self._certain.get(use.gpm, frozenset())
                return before | self._certain.get(use.gpm, frozenset())
            case seq.Repeat():
                after = self._bound_before(step.body, before)
                return after if step.minimum else before
            case seq.BinaryStep("|"):
                ends = [self._bound_before(o, before) for o in step.operands]
                return frozenset.intersection(*ends)
            case seq.BinaryStep():
                self._before[id(step)] = before
                for operand in step.operands:
                    before = self._bound_before(operand, before)
                return before
            case seq.Negation():
                self._bound_before(step.body, before)
                return before

    def _replayed(self, chain: seq.Chain, inside: bool) -> Iterator[int]:
        """The GPMs of second operands, negated steps and greedy loops.

        These are evaluated over past events.
        """
        for link in chain.links:
            match link.step:
                case seq.GpmStep(use):
                    if inside:
                        yield self._gpm[use.gpm]
                case seq.Repeat(body=body, greedy=greedy, until=until):
                    yield from self._replayed(body, inside or greedy)
                    if until is not None:
                        yield from self._replayed(until.body, True)
                case seq.Negation():
                    yield from self._replayed(link.step.body, True)
                case seq.BinaryStep(kind, operands):
                    for i, operand in enumerate(operands):
                        yield from self._replayed(operand, inside or (kind != "|" and i > 0))

    # --- states and edges -------------------------------------------------------------------------

    def _negated(self, step: seq.Negation) -> nfa.Negated:
        scope = self._scope
        if step.inside is None:
            owner, outside = scope.owner, 0
        else:
            owner = scope.negation_owner[step.inside]
            outside = len(self._negations[step.inside].repeats)
        views = {v: scope.view(step.repeats, r, outside) for v, r in sorted(owner.items())}
        return nfa.Negated(step.id, self._automaton(step.body, 0), step.repeats, views)

    def _further(self, loop: seq.Repeat) -> Iterator[tuple[nfa.GreedyExit, nfa.Automaton]]:
        """The automata of one more repetition of a greedy loop."""
        before = loop.body.links[0].join
        yield nfa.GreedyExit(loop.id, False), self._automaton(loop.body, 0, loop.own or before)
        if loop.minimum == 0:
            yield nfa.GreedyExit(loop.id, True), self._automaton(loop.body, 0, before)

    def _automaton(
        self, chain: seq.Chain, depth: int, joined: seq.SequenceOperator | None = None
    ) -> nfa.Automaton:
        """The automaton of a chain; `joined` is the operator that joins it to events before it."""
        code: list[_Instruction] = []
        _emit(chain, code)
        number = next(self._automata)
        labels: dict[int, nfa.Label] = {}
        for place, instruction in enumerate(code):
            if isinstance(instruction, _Atom):
                labels[place] = self._label(instruction.step, depth)
        start: tuple[int, Counts] = (0, ())
        numbers = {start: 0}
        todo = [start]
        states: list[nfa.State] = []
        for config in todo:  # grows while it is walked
            edges: list[nfa.Edge] = []
            ends: list[nfa.Acceptance] = []
            operator = joined if config == start else None
            for step in _closure(code, _EpsilonPath(*config, own=operator)):
                if step.place == len(code):
                    ends.append(nfa.Acceptance(step.actions, step.negations, step.exits))
                    continue
                target = (step.place + 1, step.counts)
                if target not in numbers:
                    numbers[target] = len(todo)
                    todo.append(target)
                atom = code[step.place]
                assert isinstance(atom, _Atom)
                begins = config == start and joined is None
                edge = nfa.Edge(
                    len(self._edges),
                    labels[step.place],
                    numbers[target],
                    None if begins else step.own or atom.join,
                    step.actions,
                    step.negations,
                    step.exits,
                )
                self._edges.append(edge)
                if len(self._edges) > MOST_EDGES:
                    raise TooManyEdges
                edges.append(edge)
            accepts = tuple(dict.fromkeys(ends)) if config != start else ()
            states.append(nfa.State(_state_name(code, *config), tuple(edges), accepts))
        return nfa.Automaton(number, depth, tuple(states))

    def _label(self, step: seq.GpmStep | seq.BinaryStep, depth: int) -> nfa.Label:
        if isinstance(step, seq.BinaryStep):
            operands = tuple(self._automaton(o, depth + 1) for o in step.operands)
            before = self._before.get(id(step), frozenset())
            return nfa.BracketLabel(step.kind, operands, before)
        use = step.occurrence
        key = tuple(sorted(self._keys[use.id])) if use.negation is None else ()
        return nfa.TakeLabel(self._gpm[use.gpm], use.gpm, use.id, key, self._views(use))

    def _views(self, use: seq.Occurrence) -> dict[str, View]:
        scope = self._scope
        if use.negation is None:
            return {v: scope.view(use.repeats, r) for v, r in sorted(scope.owner.items())}
        views = dict.fromkeys(sorted(scope.owner), nfa.OUTER)
        number, *around = scope.negations(use.negation)
        for negation in around:
            views.update((v, nfa.OUTER) for v in sorted(scope.negation_owner[negation]))
        outside = len(self._negations[number].repeats)
        for v, r in sorted(scope.negation_owner[number].items()):
            views[v] = scope.view(use.repeats, r, outside)
        return views


def _emit(chain: seq.Chain, code: list[_Instruction]) -> None:
    for link in chain.links:
        step = link.step
        match step:
            case seq.GpmStep() | seq.BinaryStep():
                code.append(_Atom(step, link.join))
            case seq.Negation():
                code.append(_Pass(step.id))
            case seq.Repeat():
                test = len(code)
                code.append(_Loop(step, test + 1, -1))
                _emit(step.body, code)
                code.append(_Jump(test))
                code[test] = _Loop(step, test + 1, len(code))


def _closure(code: Sequence[_Instruction], start: _EpsilonPath) -> Iterator[_EpsilonPath]:
    """All epsilon paths from a configuration to an atom or to the end."""
    todo = [start]
    while todo:
        path = todo.pop()
        instruction = code[path.place] if path.place < len(code) else None
        match instruction:
            case None | _Atom():
                yield path
            case _Jump(to):
                todo.append(replace(path, place=to))
            case _Pass(negation):
                negations = (*path.negations, negation)
                todo.append(replace(path, place=path.place + 1, negations=negations))
            case _Loop():
                todo.extend(reversed([*_loop(instruction, path)]))


def _loop(loop: _Loop, path: _EpsilonPath) -> Iterator[_EpsilonPath]:
    repeat = loop.repeat
    bounds = RepeatBounds(repeat.minimum, repeat.maximum)
    counts = dict(path.counts)
    done = counts.get(repeat.id, 0)
    if bounds.allows_more(done):
        more = tuple(sorted({**counts, repeat.id: bounds.counted(done)}.items()))
        actions = path.actions
        if repeat.is_marked:
            actions = (*actions, _action("again" if done else "start", repeat.id))
        operator = repeat.own if done else path.own
        yield _EpsilonPath(loop.body, more, actions, path.negations, path.exits, operator)
    if done >= bounds.minimum:
        counts.pop(repeat.id, None)
        actions, exits = path.actions, path.exits
        if repeat.is_marked and done:
            actions = (*actions, _action("exit", repeat.id))
        if repeat.greedy and bounds.allows_more(done):
            exits = (*exits, nfa.GreedyExit(repeat.id, not done))
        left = tuple(sorted(counts.items()))
        # What follows a step without events keeps its own operator.
        yield _EpsilonPath(loop.exit, left, actions, path.negations, exits)


_action = lru_cache(maxsize=1024)(Action)
"""Many edges have equal actions, which are one object."""


def _state_name(code: Sequence[_Instruction], place: int, counts: Counts) -> str:
    if place == 0:
        return "start"
    atom = code[place - 1]
    assert isinstance(atom, _Atom)
    name = atom.step.occurrence.gpm if isinstance(atom.step, seq.GpmStep) else f"({atom.step.kind})"
    marks = "".join(f"#{n}" for _, n in counts)
    return f"after {name}{marks}"


MOST_STATES = 1024
"""Maximum number of states of a sequence with unrolled repetitions."""

FEW_STATES = 64
"""The same if only registers can run it; their kernel has room for about as many edges."""


def unrolled_states(chain: seq.Chain, copies: int = 1) -> int:
    """Number of states of the unrolled automaton, with `copies` of the chain.

    Alternatives inside a repetition count once for each of its states.
    """
    return sum(_states(link.step, copies) for link in chain.links)


def _states(step: seq.ChainStep, copies: int) -> int:
    match step:
        case seq.GpmStep():
            return copies
        case seq.Repeat():
            return unrolled_states(step.body, copies * _bounds(step).top)
        case seq.BinaryStep():
            return copies + sum(unrolled_states(operand, copies) for operand in step.operands)
        case seq.Negation():
            return unrolled_states(step.body)


def counted(chain: seq.Chain) -> tuple[seq.Chain, Mapping[int, RepeatBounds]]:
    """A chain without bounds on its repetitions, and these bounds, by repeated step.

    `X?` and `X{0}` keep theirs, since they need no counter, and neither does `X*` nor `X+`.

    >>> from spaseq.lang import ast
    >>> step = ast.Step(ast.Ref("A"), ast.Quantifier(2, 1000))
    >>> chain, bounds = counted(seq.normalise(ast.Sequence((step,), ())))
    >>> repeat = chain.links[0].step
    >>> repeat.minimum, repeat.maximum, bounds
    (1, None, {0: RepeatBounds(minimum=2, maximum=1000)})
    """
    bounds: dict[int, RepeatBounds] = {}
    return _counted(chain, bounds), bounds


def _counted(chain: seq.Chain, bounds: dict[int, RepeatBounds]) -> seq.Chain:
    return seq.Chain(tuple(replace(k, step=_step(k.step, bounds)) for k in chain.links))


def _step(step: seq.ChainStep, bounds: dict[int, RepeatBounds]) -> seq.ChainStep:
    if isinstance(step, seq.Repeat) and _bounds(step).top > 1:
        body, bounds[step.id] = _counted(step.body, bounds), _bounds(step)
        return replace(step, body=body, minimum=min(step.minimum, 1), maximum=None)
    return seq.with_inner(step, lambda chain: _counted(chain, bounds))


def _bounds(step: seq.Repeat) -> RepeatBounds:
    return RepeatBounds(step.minimum, step.maximum)
