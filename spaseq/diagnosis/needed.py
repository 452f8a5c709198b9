"""Which GPMs a sequence cannot do without."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spaseq.lang.sequence import BinaryStep, Chain, ChainStep, GpmStep, Negation, Repeat


def needed_gpms(chain: Chain, has_solutions: Callable[[str], bool]) -> list[str]:
    """The names of the GPMs without which a sequence has no match, in order, each once.

    Negated steps and steps that may be empty need none. Alternatives need theirs if each of them
    has a GPM without solutions.
    """
    return list(dict.fromkeys(_of_chain(chain, has_solutions)))


def _of_chain(chain: Chain, has: Callable[[str], bool]) -> Iterator[str]:
    for link in chain.links:
        yield from _of_step(link.step, has)


def _of_step(step: ChainStep, has: Callable[[str], bool]) -> Iterator[str]:
    match step:
        case GpmStep(use):
            yield use.gpm
        case Repeat(body=body, minimum=minimum) if minimum:
            yield from _of_chain(body, has)
        case BinaryStep("|", operands):
            parts = [list(_of_chain(operand, has)) for operand in operands]
            if not any(all(map(has, part)) for part in parts):
                yield from (name for part in parts for name in part)
        case BinaryStep(_, operands):
            for operand in operands:
                yield from _of_chain(operand, has)
        case Negation() | Repeat():
            return
