"""Unfolds a sequence: opens transparent brackets, and finds each step's group variables.

Every step has its operator and its repetitions. Refused sequences are refused here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spaseq.lang import ast
from tests.oracle.model import Refused


@dataclass(eq=False)
class Step:
    """One step; `op` is None at the start of a sequence. `atom` is a GPM name, the steps of a
    plain bracket, or a `Choice`.

    A loop may have its own operator, may be greedy, and may have a GPM after UNTIL.
    """

    op: ast.Op | None
    atom: Atom
    minimum: int
    maximum: int | None
    negated: bool
    group: set[str] = field(default_factory=set)  # the group variables of this step only
    own: ast.Op | None = None
    greedy: bool = False
    until: str | None = None

    @property
    def repeats(self) -> bool:
        return self.maximum is None or self.maximum > 1

    @property
    def inside(self) -> frozenset[str]:
        """The group variables of this step and of the steps inside it."""
        inner = (s.inside for steps in parts(self.atom) for s in steps if not s.negated)
        return frozenset(self.group).union(*inner)


@dataclass(eq=False)
class Choice:
    """`(X | Y)`, `(X & Y)` or `(X AND Y)`."""

    kind: str
    operands: list[list[Step]]


Atom: TypeAlias = "str | list[Step] | Choice"


def parts(atom: Atom) -> list[list[Step]]:
    """The sequences inside an atom."""
    match atom:
        case str():
            return []
        case list():
            return [atom]
        case Choice(operands=operands):
            return operands


def unfold(sequence: ast.Sequence, *, top: bool = True, upto: int | None = None) -> list[Step]:
    """The steps of a sequence with transparent brackets opened; raises on refused sequences.

    If `upto` is given, only so many steps.
    """
    steps = flat(sequence)[:upto]
    refuse(steps, top)
    return steps


def flat(sequence: ast.Sequence) -> list[Step]:
    steps: list[Step] = []
    for op, step in zip((None, *sequence.ops), sequence.steps, strict=True):
        match step:
            case ast.Step(ast.Bracket(None, (inner,)), None, False):
                opened = flat(inner)
                opened[0].op = op
                steps.extend(opened)
            case _:
                steps.append(_step(op, step))
    return steps


def _step(op: ast.Op | None, step: ast.Step) -> Step:
    quantifier = step.quantifier or ast.Quantifier(1, 1)
    if step.negated and step.quantifier is not None:
        raise Refused("a negated step is repeated")
    return Step(
        op,
        _atom(step.atom),
        quantifier.minimum,
        quantifier.maximum,
        step.negated,
        own=quantifier.own,
        greedy=quantifier.greedy,
        until=quantifier.until.name if quantifier.until else None,
    )


def _atom(atom: ast.Ref | ast.Bracket) -> Atom:
    match atom:
        case ast.Ref(name):
            return name
        case ast.Bracket(None, (inner,)):
            return unfold(inner, top=False)
        case ast.Bracket(kind, operands):
            assert kind is not None
            return Choice(kind, [unfold(operand, top=False) for operand in operands])


def may_be_empty(steps: list[Step]) -> bool:
    return all(s.negated or s.minimum == 0 for s in steps)


def alternatives(steps: list[Step]) -> list[list[Step]]:
    """The sequences whose union a sequence is.

    A step beside a negated step that may be empty is there at least once, or not at all.
    """
    for i, step in enumerate(steps):
        if step.minimum == 0 and any(s.negated for s in steps[max(0, i - 1) : i + 2]):
            some = replace(step, minimum=1)  # it has the same set of group variables
            return [
                *alternatives([*steps[:i], some, *steps[i + 1 :]]),
                *alternatives(steps[:i] + steps[i + 1 :]),
            ]
    return [steps]


# --- refused sequences ----------------------------------------------------------------------------


def refuse(steps: list[Step], top: bool) -> None:
    """Raise on negations and loops in a wrong place, and on empty operands."""
    for step in steps:
        repeated = (step.minimum, step.maximum) != (1, 1)
        unit = repeated or step.negated or isinstance(step.atom, Choice)
        if unit and any(may_be_empty(inner) for inner in parts(step.atom)):
            raise Refused("an operand, or a repeated or negated step, may be empty")
        if step.own is not None and not step.repeats:
            raise Refused("an operator of a loop that repeats at most once")
        if (repeated or step.negated) and any(map(_has_greedy, parts(step.atom))):
            raise Refused("a greedy loop inside a negated step or a quantified bracket")
    for sequence in alternatives(steps):
        _refuse_one(sequence, top)


def _refuse_one(steps: list[Step], top: bool) -> None:
    """Raise on a sequence of the union."""
    if all(s.negated for s in steps):
        raise Refused("a sequence of negations only")
    for i, step in enumerate(steps):
        if step.negated:
            _refuse_negated(steps, i, top)
        if step.greedy:
            _refuse_greedy(steps, i, top)


def _refuse_negated(steps: list[Step], i: int, top: bool) -> None:
    left = next((s for s in reversed(steps[:i]) if not s.negated), None)
    right = next((s for s in steps[i + 1 :] if not s.negated), None)
    if not top and (left is None or right is None):
        raise Refused("negation at the edge of a bracket")
    op = steps[i].op
    if op is not None and op.gap is not None:
        raise Refused("a gap bound before a negated step")
    after = steps[i + 1].op if i + 1 < len(steps) else None
    if left is None and after is not None and after.gap is not None:
        raise Refused("a gap bound after a negation in first place")


def _refuse_greedy(steps: list[Step], i: int, top: bool) -> None:
    if any(s.negated for s in steps[max(0, i - 1) : i + 2]):
        raise Refused("a greedy loop beside a negated step")
    if any(s.minimum == 0 for s in steps[i + 1 : i + 2]):
        raise Refused("a greedy loop before a step that may be empty")
    if not top and i in (0, len(steps) - 1):
        raise Refused("a greedy loop at the edge of a bracket")
    if steps[i].minimum == 0 and may_be_empty(steps[:i]):
        raise Refused("a greedy loop and all before it may be empty")
    if any(map(_has_negated, parts(steps[i].atom))):
        raise Refused("a negated step inside a greedy loop")


def _has_greedy(steps: list[Step]) -> bool:
    return any(s.greedy or any(map(_has_greedy, parts(s.atom))) for s in steps)


def _has_negated(steps: list[Step]) -> bool:
    return any(s.negated or any(map(_has_negated, parts(s.atom))) for s in steps)


def waits_for_the_close(steps: list[Step]) -> bool:
    """Whether a sequence has a negated step in first place, or one or a greedy loop in last place.

    Such a sequence is refused under WITHIN n EVENTS.
    """
    return any(s[0].negated or s[-1].negated or s[-1].greedy for s in alternatives(steps))


# --- group variables ------------------------------------------------------------------------------


def find_group_variables(
    steps: list[Step], binds: Mapping[str, frozenset[str]], taken: frozenset[str]
) -> frozenset[str]:
    """Give each repeated step its group variables; returns the variables bound by `steps`.

    `taken` are variables that cannot be group variables here: the partition's variables and, inside
    a negated step, the variables bound outside it.
    """
    paths: dict[str, list[list[Step]]] = defaultdict(list)
    for name, path in _occurrences(steps, []):
        for variable in binds[name] - taken:
            paths[variable].append(path)
    for variable, all_paths in paths.items():
        common = all_paths[0]
        for path in all_paths[1:]:
            common = [a for a, b in zip(common, path, strict=False) if a is b]
        if common:
            common[-1].group.add(variable)
    bound = taken | paths.keys()
    for negated in _negated(steps):
        inside = Step(None, negated.atom, 1, 1, False)
        find_group_variables([inside], binds, bound)
    return frozenset(paths)


def _occurrences(steps: list[Step], path: list[Step]) -> Iterator[tuple[str, list[Step]]]:
    """Every GPM name that is not negated, with the repeated steps around it, outermost first."""
    for step in steps:
        if step.negated:
            continue
        here = [*path, step] if step.repeats else path
        if isinstance(step.atom, str):
            yield step.atom, here
        for inner in parts(step.atom):
            yield from _occurrences(inner, here)


def _negated(steps: list[Step]) -> Iterator[Step]:
    """The outermost negated steps."""
    for step in steps:
        if step.negated:
            yield step
        else:
            for inner in parts(step.atom):
                yield from _negated(inner)


def group_variables(steps: list[Step]) -> frozenset[str]:
    """All group variables, those inside negated steps included."""
    inner = (group_variables(i) for step in steps for i in parts(step.atom))
    return frozenset(v for step in steps for v in step.group).union(*inner)


def until_names(steps: list[Step]) -> frozenset[str]:
    """The GPMs after UNTIL."""
    inner = (until_names(i) for step in steps for i in parts(step.atom))
    return frozenset(step.until for step in steps if step.until).union(*inner)


def step_names(steps: list[Step]) -> frozenset[str]:
    """The GPMs that are steps, negated ones included."""
    own = (step.atom for step in steps if isinstance(step.atom, str))
    return frozenset(own).union(*(step_names(i) for step in steps for i in parts(step.atom)))


def positive_names(steps: list[Step]) -> frozenset[str]:
    """The GPMs that are not negated."""
    return frozenset(name for name, _ in _occurrences(steps, []))
