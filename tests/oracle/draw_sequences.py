"""Generated sequence expressions over the whole grammar, without refused ones."""

from __future__ import annotations

from typing import Literal as L
from typing import TypeAlias

from spaseq.lang import ast
from tests.oracle.choices import Choices

NAMES = ["A", "B", "C", "D", "E"]

Operator: TypeAlias = L[",", ";", ":"]
Kind: TypeAlias = L["|", "&", "AND"]
OPERATORS: tuple[Operator, ...] = (",", ";", ":")
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

    def use(self, *features: str, one_in: int = 2) -> bool:
        """Whether to use a construct that needs the given features."""
        if not self.features.issuperset(features) or not self.choices.chance(one_in):
            return False
        self.used.update(features)
        return True

    # sequences

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
        if not self.choices.chance(4):
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
        return ast.Step(atom, ast.Quantifier(minimum, maximum))

    def atom(self, depth: int) -> ast.Ref | ast.Bracket:
        if depth and self.left > 1 and self.use("nested", one_in=3):
            kind = self.pick([None, *self.kinds])
            self.used.add(kind or "nested")
            count = 1 if kind is None else self.pick([2, 2, 2, 3])
            operands = [self.sequence(3 if kind is None else 2, depth - 1) for _ in range(count)]
            return ast.Bracket(kind, tuple(operands))
        return ast.Ref(self.name())

    def name(self) -> str:
        self.left -= 1
        fresh = [n for n in NAMES if n not in self.names]
        if self.names and (not fresh or self.use("same-GPM-twice", one_in=10)):
            return str(self.pick(self.names))
        self.names.append(fresh[0])
        return fresh[0]

    # negation

    def negate(self, sequence: ast.Sequence, depth: int, top: bool) -> ast.Sequence:
        """The sequence with negated steps inserted in allowed places."""
        steps, ops = list(sequence.steps), list(sequence.ops)
        for i in range(len(steps), -1, -1):
            left = steps[i - 1] if i else None
            right = steps[i] if i < len(steps) else None
            if len(self.names) < len(NAMES) and self._negatable(left, right, top):
                self._put(steps, ops, i, depth)
        return ast.Sequence(tuple(steps), tuple(ops))

    def _negatable(self, left: ast.Step | None, right: ast.Step | None, top: bool) -> bool:
        if left is not None and may_be_empty(edge(left, -1)):
            return False
        if right is not None and may_be_empty(edge(right, 0)):
            return False
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


def sequence_text(sequence: ast.Sequence) -> str:
    parts = [step_text(sequence.steps[0])]
    for op, step in zip(sequence.ops, sequence.steps[1:], strict=True):
        gap = f"[{op.gap.amount} {op.gap.unit}]" if op.gap else ""
        parts.append(f"{op.kind}{gap} {step_text(step)}")
    return " ".join(parts)


def step_text(step: ast.Step) -> str:
    match step.atom:
        case ast.Ref(name):
            text = name
        case ast.Bracket(kind, operands):
            text = "(" + f" {kind} ".join(map(sequence_text, operands)) + ")"
    if step.negated:
        return text + "!"
    match step.quantifier:
        case None:
            return text
        case ast.Quantifier(minimum, None):
            return text + {0: "*", 1: "+"}.get(minimum, f"{{{minimum},}}")
        case ast.Quantifier(0, 1):
            return text + "?"
        case ast.Quantifier(n, m):
            return text + (f"{{{n}}}" if n == m else f"{{{n},{m}}}")
