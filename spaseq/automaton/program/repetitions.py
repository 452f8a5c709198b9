"""Chooses how an automaton repeats a step: unrolled, or counted.

An unrolled repetition has a copy of its body for every number of repetitions. All evaluators can
run it, the kernels included. A counted one has a single copy (`counters`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spaseq.automaton.program.counters import RepeatBounds
from spaseq.lang import sequence as seq

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
    match step:
        case seq.GpmStep():
            return step
        case seq.Repeat():
            body, step_bounds = _counted(step.body, bounds), _bounds(step)
            if step_bounds.top <= 1:
                return replace(step, body=body)
            bounds[step.id] = step_bounds
            return replace(step, body=body, minimum=min(step.minimum, 1), maximum=None)
        case seq.BinaryStep(kind, operands):
            return seq.BinaryStep(kind, tuple(_counted(o, bounds) for o in operands))
        case seq.Negation():
            return replace(step, body=_counted(step.body, bounds))


def _bounds(step: seq.Repeat) -> RepeatBounds:
    return RepeatBounds(step.minimum, step.maximum)
