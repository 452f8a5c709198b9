"""The normal form of a sequence expression (docs/meaning.md#brackets and #repetition).

The normal form has no transparent brackets. Every link has the operator that joins it to the step
before, and every use of a GPM name is an `Occurrence` with a number:

    A; (B, C){2}   ->   Chain(Link(A, ";"), Link(Repeat(Chain(Link(B, ";"), Link(C, ","))), ";"))

A repeated plain sequence is joined as if written out. So the first link of its body has the
operator before the bracket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Literal, TypeAlias

from spaseq.errors import NOWHERE, Span
from spaseq.lang import ast
from spaseq.lang.ast.pattern_nodes import OpKind
from spaseq.records import record


@record
class SequenceOperator:
    """A sequence operator with its gap bound in milliseconds (None: unbounded)."""

    kind: OpKind
    gap_ms: int | None = None


SKIP_TILL_NEXT = SequenceOperator(";")


@record
class Occurrence:
    """One use of a GPM name in the sequence."""

    id: int
    gpm: str
    repeats: tuple[int, ...]  # ids of the enclosing repeated steps, outermost first
    negation: int | None  # id of the innermost negated step around it
    span: Span = NOWHERE


@record
class GpmStep:
    """A step that is one GPM."""

    occurrence: Occurrence


@record
class BinaryStep:
    """Union (`|`, two or more operands), conjunction (`&`, two) or any order (`AND`, two)."""

    kind: Literal["|", "&", "AND"]
    operands: tuple[Chain, ...]


@record
class Repeat:
    """A sequence that repeats `minimum` to `maximum` times (None: no upper bound)."""

    id: int
    body: Chain
    minimum: int
    maximum: int | None
    greedy: bool = False
    own: SequenceOperator | None = None  # joins the second repetition and all after it
    until: Negation | None = None
    span: Span = NOWHERE

    @property
    def is_scope(self) -> bool:
        """Whether the variables that it binds can be group variables."""
        return self.maximum is None or self.maximum > 1

    @property
    def is_marked(self) -> bool:
        """Whether a run must know where a repetition begins, repeats and ends."""
        return self.is_scope or self.until is not None


@record
class Negation:
    """A negated step."""

    id: int
    body: Chain
    repeats: tuple[int, ...]
    inside: int | None = None  # id of the negated step around it
    span: Span = NOWHERE


ChainStep: TypeAlias = GpmStep | BinaryStep | Repeat | Negation


@record
class Link:
    """A step with the operator that joins it to the step before."""

    step: ChainStep
    join: SequenceOperator


@record
class Chain:
    """Steps in a row."""

    links: tuple[Link, ...]


def normalise(sequence: ast.Sequence) -> Chain:
    """The normal form of a query's sequence expression."""
    return _Normaliser().chain(sequence, SKIP_TILL_NEXT, (), None)


class _Normaliser:
    """Numbers occurrences, repeated steps and negations in the order of the text."""

    def __init__(self) -> None:
        self._occurrence = count()
        self._repeat = count()
        self._negation = count()

    def chain(
        self,
        sequence: ast.Sequence,
        before: SequenceOperator,
        repeats: tuple[int, ...],
        negation: int | None,
    ) -> Chain:
        joins = [before, *(_join(op) for op in sequence.ops)]
        links: list[Link] = []
        for step, join in zip(sequence.steps, joins, strict=False):  # no steps after a syntax error
            links.extend(self._step(step, join, repeats, negation))
        return Chain(tuple(links))

    def _step(
        self, step: ast.Step, join: SequenceOperator, repeats: tuple[int, ...], negation: int | None
    ) -> Iterator[Link]:
        if step.negated:
            number = next(self._negation)
            negated = Chain(tuple(self._atom(step.atom, join, repeats, number)))
            yield Link(Negation(number, negated, repeats, negation, step.span), join)
            return
        loop = step.quantifier
        if loop is None or (loop.minimum == 1 == loop.maximum and loop.until is None):
            yield from self._atom(step.atom, join, repeats, negation)
            return
        number = next(self._repeat)
        scoped = loop.maximum is None or loop.maximum > 1
        inner = (*repeats, number) if scoped else repeats
        body = Chain(tuple(self._atom(step.atom, join, inner, negation)))
        until = None if loop.until is None else self._until(loop.until, inner, negation)
        operator = None if loop.own is None else _join(loop.own)
        repeat = Repeat(
            number, body, loop.minimum, loop.maximum, loop.greedy, operator, until, step.span
        )
        yield Link(repeat, join)

    def _until(self, ref: ast.Ref, repeats: tuple[int, ...], around: int | None) -> Negation:
        """UNTIL as a negated step that belongs to the repetition."""
        number = next(self._negation)
        use = Occurrence(next(self._occurrence), ref.name, repeats, number, ref.span)
        body = Chain((Link(GpmStep(use), SKIP_TILL_NEXT),))
        return Negation(number, body, repeats, around, ref.span)

    def _atom(
        self,
        atom: ast.Ref | ast.Bracket,
        join: SequenceOperator,
        repeats: tuple[int, ...],
        neg: int | None,
    ) -> Iterator[Link]:
        match atom:
            case ast.Ref(name):
                use = Occurrence(next(self._occurrence), name, repeats, neg, atom.span)
                yield Link(GpmStep(use), join)
            case ast.Bracket(None, (sequence,)):
                yield from self.chain(sequence, join, repeats, neg).links
            case ast.Bracket("|", operands):
                chains = tuple(self.chain(s, join, repeats, neg) for s in operands)
                yield Link(BinaryStep("|", chains), join)
            case ast.Bracket(kind, operands):
                assert kind is not None and kind != "|"
                left = self.chain(operands[0], join, repeats, neg)
                for operand in operands[1:]:
                    branch = BinaryStep(kind, (left, self.chain(operand, join, repeats, neg)))
                    left = Chain((Link(branch, join),))
                yield from left.links


def _join(op: ast.Op) -> SequenceOperator:
    return SequenceOperator(op.kind, op.gap.ms if op.gap else None)


# --- properties of chains -------------------------------------------------------------------------


def occurrences(chain: Chain) -> Iterator[Occurrence]:
    """All occurrences in the order of the text, also in negated steps."""
    for step in steps(chain):
        if isinstance(step, GpmStep):
            yield step.occurrence


def steps(chain: Chain) -> Iterator[ChainStep]:
    """Every step of a chain, at any depth, in the order of the text, outer before inner."""
    for link in chain.links:
        step = link.step
        yield step
        for inner in inner_chains(step):
            yield from steps(inner)
        if isinstance(step, Repeat) and step.until is not None:
            yield step.until
            yield from steps(step.until.body)


def chains(chain: Chain) -> Iterator[Chain]:
    """A chain and the chains inside it; UNTIL is in none of them."""
    yield chain
    for link in chain.links:
        for inner in inner_chains(link.step):
            yield from chains(inner)


def inner_chains(step: ChainStep) -> tuple[Chain, ...]:
    """The chains directly inside a step; UNTIL is in none of them."""
    match step:
        case GpmStep():
            return ()
        case BinaryStep(_, operands):
            return operands
        case Repeat(body=body) | Negation(body=body):
            return (body,)


def with_inner(step: ChainStep, change: Callable[[Chain], Chain]) -> ChainStep:
    """A step whose inner chains are changed."""
    match step:
        case GpmStep():
            return step
        case BinaryStep(kind, operands):
            return BinaryStep(kind, tuple(map(change, operands)))
        case Repeat(body=body) | Negation(body=body):
            return replace(step, body=change(body))


def has_single_gpm(chain: Chain) -> bool:
    """Whether the sequence is one GPM without a quantifier, whose matches are single events."""
    return len(chain.links) == 1 and isinstance(chain.links[0].step, GpmStep)


def can_be_empty(chain: Chain) -> bool:
    """Whether a chain has a match without events."""
    return all(_step_can_be_empty(link.step) for link in chain.links)


def _step_can_be_empty(step: ChainStep) -> bool:
    match step:
        case Repeat(minimum=0) | Negation():
            return True
        case Repeat(body=body):
            return can_be_empty(body)
        case _:
            return False


def needed_gpms(chain: Chain, has_solutions: Callable[[str], bool]) -> list[str]:
    """The names of the GPMs without which a sequence has no match, in order, each once.

    Negated steps and steps that may be empty need none. Alternatives need theirs if each of them
    has a GPM without solutions. Steps that may all be empty are alternatives, because a match holds
    at least one event.
    """
    if not can_be_empty(chain):
        return list(dict.fromkeys(_of_chain(chain, has_solutions)))
    bodies = [link.step.body for link in chain.links if isinstance(link.step, Repeat)]
    return list(dict.fromkeys(_of_alternatives(bodies, has_solutions)))


def _of_chain(chain: Chain, has: Callable[[str], bool]) -> Iterator[str]:
    for link in chain.links:
        yield from _of_step(link.step, has)


def _of_alternatives(chains: Iterable[Chain], has: Callable[[str], bool]) -> Iterator[str]:
    parts = [list(_of_chain(chain, has)) for chain in chains]
    if not any(all(map(has, part)) for part in parts):
        yield from (name for part in parts for name in part)


def _of_step(step: ChainStep, has: Callable[[str], bool]) -> Iterator[str]:
    match step:
        case GpmStep(use):
            yield use.gpm
        case Repeat(body=body, minimum=minimum) if minimum:
            yield from _of_chain(body, has)
        case BinaryStep("|", operands):
            yield from _of_alternatives(operands, has)
        case BinaryStep(_, operands):
            for operand in operands:
                yield from _of_chain(operand, has)
        case Negation() | Repeat():
            return
