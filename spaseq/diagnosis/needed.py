"""Which GPMs a sequence cannot do without."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Negation,
    Repeat,
    can_be_empty,
)


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
