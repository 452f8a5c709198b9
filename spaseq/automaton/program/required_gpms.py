"""The GPMs that take part in every match of a sequence, and their order."""

from __future__ import annotations

from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Link,
    Negation,
    Repeat,
    occurrences,
)

_MOST_REPETITIONS = 8
"""More repetitions of a loop are not listed."""


def required_gpms(chain: Chain) -> frozenset[str]:
    """The names of the GPMs of which every match of a chain has a solution."""
    return frozenset[str]().union(*(_required(link.step) for link in chain.links))


def required_steps(chain: Chain) -> tuple[str, ...]:
    """The names of GPMs of which every match of a chain has solutions, at ascending instants.

    Between these instants it may have others, for example solutions in a bracket.
    """
    return tuple(name for link in chain.links for name in _in_order(link.step))


def _in_order(step: ChainStep) -> tuple[str, ...]:
    match step:
        case GpmStep(occurrence):
            return (occurrence.gpm,)
        case Repeat(body=body, minimum=minimum):
            return min(minimum, _MOST_REPETITIONS) * required_steps(body)
        case BinaryStep() | Negation():
            return ()


def unordered_gpms(chain: Chain) -> frozenset[str]:
    """The names of GPMs that stand elsewhere than in the required steps of a chain."""
    return frozenset[str]().union(*(_unordered(link) for link in chain.links))


def _unordered(link: Link) -> frozenset[str]:
    match link.step:
        case GpmStep():
            return frozenset()
        case Repeat(body=body, minimum=minimum, until=None) if minimum > 0:
            return unordered_gpms(body)
        case _:
            return frozenset(use.gpm for use in occurrences(Chain((link,))))


def _required(step: ChainStep) -> frozenset[str]:
    match step:
        case GpmStep(occurrence):
            return frozenset([occurrence.gpm])
        case BinaryStep("|", operands):
            return frozenset.intersection(*map(required_gpms, operands))
        case BinaryStep(_, operands):
            return frozenset[str]().union(*map(required_gpms, operands))
        case Repeat(body=body, minimum=minimum) if minimum > 0:
            return required_gpms(body)
        case Repeat() | Negation():
            return frozenset()
