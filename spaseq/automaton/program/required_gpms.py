"""The GPMs that take part in every match of a sequence."""

from __future__ import annotations

from spaseq.lang.sequence import (
    BinaryStep,
    Chain,
    ChainStep,
    GpmStep,
    Negation,
    Repeat,
)


def required_gpms(chain: Chain) -> frozenset[str]:
    """The names of the GPMs of which every match of a chain has a solution."""
    return frozenset[str]().union(*(_required(link.step) for link in chain.links))


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
