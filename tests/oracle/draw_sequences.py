"""Generated sequence expressions over the whole grammar, without refused ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal as L
from typing import TypeAlias

from spaseq.lang import ast
from tests.oracle.choices import Choices
from tests.oracle.model import Refused
from tests.oracle.steps import unfold

NAMES = ["A", "B", "C", "D", "E"]
UNTIL_NAMES = ["U", "V"]
LOOPS = frozenset(["own-operator", "greedy", "until", "running", "!-union"])
"""Features of loops, and of negation beside a step that may be empty."""

Operator: TypeAlias = L[",", ";", ":"]
Kind: TypeAlias = L["|", "&", "AND"]
OPERATORS: tuple[Operator, ...] = (",", ";", ":")
OWN: tuple[Operator, ...] = (":", ":", ":", ",", ",", ";")
KINDS: tuple[Kind, ...] = ("|", "&", "AND")


class Grammar:
    """Draws sequences and records the features used."""

    def __init__(self, choices: Choices, features: frozenset[str]) -> None:
        self.choices = choices
        self.pick = choices.pick
        self.operators: list[Operator] = [op for op in OPERATORS if op in features]
        self.kinds: list[Kind] = [kind for kind in KINDS if kind in features]
        self.features = features
        self.used: set[str] = set()
        self.names: list[str] = []
        self.left = choices.pick([2, 2, 3, 3, 3, 4, 4, 5, 6])  # GPM names still to be placed
        self.loops = bool(features & LOOPS) and not choices.chance(3)
        """Whether the query is to have many loops, and little that keeps them short."""
        self.calm = self.loops and choices.chance(2)
        """Whether the query has nothing that keeps loops short."""
        if self.loops:
            self.operators += [op for op in self.operators if op != ","]
            self.kinds += [kind for kind in self.kinds if kind != "&"]

    def use(self, *features: str, one_in: int = 2) -> bool:
        """Whether to use a construct that needs the given features."""
        ordinary = not LOOPS.intersection(features)
        if self.loops and ordinary:
            one_in *= 3  # otherwise few loops have several repetitions
        if not self.features.issuperset(features) or (self.calm and ordinary):
            return False
        if not self.choices.chance(one_in):
            return False
        self.used.update(features)
        return True

    # sequences

    def whole(self) -> ast.Sequence:
        """The sequence of a query."""
        return self.make_greedy(self.sequence(4, 2, top=True))

    def sequence(self, size: int, depth: int, top: bool = False) -> ast.Sequence:
        steps = [self.step(depth)]
        while len(steps) < size and self.left > 0 and not self.choices.chance(4):
            steps.append(self.step(depth))
        ops = [self.op() for _ in steps[1:]]
        if not top and all(may_be_empty(s) for s in steps):
            steps[0] = ast.Step(steps[0].atom, None)
        return self.negate(ast.Sequence(tuple(steps), tuple(ops)), depth, top)

    def op(self) -> ast.Op:
        kind = self.pick(self.operators)
        gap = None
        if self.use("gap", one_in=6):
            gap = ast.TimeSpan(self.pick(range(6)), "SECONDS")
        self.used.add(kind)
        return ast.Op(kind, gap)

    def step(self, depth: int) -> ast.Step:
        atom = self.atom(depth)
        if not self.choices.chance(2 if self.loops else 4):
            return ast.Step(atom)
        options = {"+": (1, None), "*": (0, None), "?": (0, 1)}
        mark = self.pick(sorted(self.features & {"+", "*", "?", "{n,m}"}) or [""])
        if not mark:
            return ast.Step(atom)
        self.used.add(mark)
        if isinstance(atom, ast.Bracket):
            self.used.add("repeated-bracket")
        minimum, maximum = options.get(mark) or self.pick(
            [
                (2, 2),
                (1, 2),
                (0, 2),
                (2, 3),
                (2, None),
                (3, None),
                (0, 1000),
                (1, 5000),
                (2, 10**12),
            ]
        )
        own = None
        if (maximum is None or maximum > 1) and self.use("own-operator", one_in=3):
            own = replace(self.op(), kind=self.pick([op for op in OWN if op in self.features]))
        until = ast.Ref(self.until_name()) if self.loops and self.use("until", one_in=4) else None
        return ast.Step(atom, ast.Quantifier(minimum, maximum, own=own, until=until))

    def atom(self, depth: int) -> ast.Ref | ast.Bracket:
        if depth and self.left > 1 and self.use("nested", one_in=2 if self.loops else 3):
            kind = self.pick([None, *self.kinds])
            self.used.add(kind or "nested")
            count = 1 if kind is None else self.pick([2, 2, 2, 3])
            operands = [self.sequence(3 if kind is None else 2, depth - 1) for _ in range(count)]
            if kind == "|" and any(len(operand.steps) > 1 for operand in operands):
                self.used.add("|-of-steps")
            return ast.Bracket(kind, tuple(operands))
        return ast.Ref(self.name())

    def name(self) -> str:
        self.left -= 1
        fresh = [n for n in NAMES if n not in self.names]
        known = [n for n in NAMES if n in self.names]
        if known and (not fresh or self.use("same-GPM-twice", one_in=10)):
            return str(self.pick(known))
        self.names.append(fresh[0])
        return fresh[0]

    def until_name(self) -> str:
        """A GPM for UNTIL; it is no step."""
        name = self.pick(UNTIL_NAMES)
        if name not in self.names:
            self.names.append(name)
        return name

    # greedy loops

    def make_greedy(self, sequence: ast.Sequence) -> ast.Sequence:
        """The sequence with some loops greedy, where that is allowed."""
        for number in range(len(loops(sequence))):
            changed = with_greedy(sequence, number)
            if is_legal(changed, top=True) and self.use("greedy", one_in=2):
                sequence = changed
        return sequence

    # negation

    def negate(self, sequence: ast.Sequence, depth: int, top: bool) -> ast.Sequence:
        """The sequence with negated steps inserted in allowed places."""
        steps, ops = list(sequence.steps), list(sequence.ops)
        for i in range(len(steps), -1, -1):
            left = steps[i - 1] if i else None
            right = steps[i] if i < len(steps) else None
            free = not set(NAMES) <= set(self.names)
            if free and self._negatable(left, right, top):
                before = list(steps), list(ops), set(self.used)
                self._put(steps, ops, i, depth)
                if not is_legal(ast.Sequence(tuple(steps), tuple(ops)), top):
                    steps, ops, self.used = before
        return ast.Sequence(tuple(steps), tuple(ops))

    def _negatable(self, left: ast.Step | None, right: ast.Step | None, top: bool) -> bool:
        beside = [edge(left, -1)] if left else []
        beside += [edge(right, 0)] if right else []
        if any(map(may_be_empty, beside)):
            return self.use("!-union", "!", one_in=3)
        if left is None or right is None:
            return top and self.use("!-first" if left is None else "!-last", one_in=8)
        return self.use("!", one_in=6)

    def _put(self, steps: list[ast.Step], ops: list[ast.Op], i: int, depth: int) -> None:
        negated = ast.Step(self.negated_atom(depth), None, True)
        op = ast.Op(self.pick(self.operators))
        if i == len(steps):
            ops.append(op)
        elif i == 0:
            ops.insert(0, op)
        else:  # the bound of the gap stays with the operator before what follows
            ops.insert(i - 1, op)
        steps.insert(i, negated)

    def negated_atom(self, depth: int) -> ast.Ref | ast.Bracket:
        if not self.use("!-bracket", one_in=4):
            return ast.Ref(self.name())
        kind = self.pick([None, *self.kinds])
        operands = [self.sequence(2, 0) for _ in range(1 if kind is None else 2)]
        return ast.Bracket(kind, tuple(operands))


def may_be_empty(step: ast.Step) -> bool:
    if step.quantifier is not None and step.quantifier.minimum == 0:
        return True
    match step.atom:
        case ast.Bracket(None, (inner,)):
            return all(may_be_empty(s) for s in inner.steps if not s.negated)
        case _:
            return False


def edge(step: ast.Step, end: int) -> ast.Step:
    """The step at an end of a transparent bracket, or the step itself."""
    match step:
        case ast.Step(ast.Bracket(None, (inner,)), None, False):
            return edge(inner.steps[end], end)
        case _:
            return step


def is_legal(sequence: ast.Sequence, top: bool) -> bool:
    """Whether the language allows the sequence, by itself or in a bracket."""
    try:
        unfold(sequence, top=top)
    except Refused:
        return False
    return True


def loops(sequence: ast.Sequence) -> list[ast.Step]:
    """The quantified steps, inner ones before outer ones."""
    found: list[ast.Step] = []
    for step in sequence.steps:
        if isinstance(step.atom, ast.Bracket):
            for operand in step.atom.operands:
                found += loops(operand)
        if step.quantifier is not None:
            found.append(step)
    return found


def with_greedy(sequence: ast.Sequence, number: int) -> ast.Sequence:
    """The sequence with one loop greedy, given by its place in `loops`."""
    place = iter(range(number + 1, -1, -1))

    def change(step: ast.Step) -> ast.Step:
        if step.quantifier is None or next(place, None) != 1:
            return step
        return replace(step, quantifier=replace(step.quantifier, greedy=True))

    return changed_steps(sequence, change)


def changed_steps(sequence: ast.Sequence, change: Callable[[ast.Step], ast.Step]) -> ast.Sequence:
    """The sequence with every step changed, inner ones before outer ones."""

    def step(old: ast.Step) -> ast.Step:
        if isinstance(old.atom, ast.Bracket):
            operands = tuple(changed_steps(o, change) for o in old.atom.operands)
            old = replace(old, atom=replace(old.atom, operands=operands))
        return change(old)

    return replace(sequence, steps=tuple(map(step, sequence.steps)))
