"""The variables that may be bound before a GPM is evaluated."""

from __future__ import annotations

from collections.abc import Mapping

from spaseq.lang.scope import Scope
from spaseq.lang.sequence import BinaryStep, Chain, ChainStep, GpmStep, Negation, Repeat


def seen_before(
    chain: Chain, scope: Scope, binds: Mapping[str, frozenset[str]]
) -> dict[str, set[str]]:
    """For each GPM, the variables that may be bound before one of its uses.

    A negated step sees the variables of the whole match. `binds[g]` holds the variables that GPM g
    may bind.
    """
    seen: dict[str, set[str]] = {}
    positive = [o.gpm for o in scope.occurrences if o.negation is None]
    whole = {v for gpm in positive for v in binds.get(gpm, ())}

    def walk(chain: Chain, before: set[str]) -> set[str]:
        for link in chain.links:
            before = before | after(link.step, before)
        return before

    def after(step: ChainStep, before: set[str]) -> set[str]:
        match step:
            case GpmStep(use):
                seen.setdefault(use.gpm, set()).update(before)
                return before | binds.get(use.gpm, frozenset())
            case Repeat(body=body, until=until):
                if until is not None:
                    walk(until.body, before | whole)
                # A repetition starts with its group variables unbound, and after earlier ones.
                owned = set(scope.owned_within(step.id)) if step.is_scope else set()
                return walk(body, (before | _bound(body, binds)) - owned)
            case Negation(body=body):
                walk(body, before | whole)
                return before
            case BinaryStep("|", operands):
                return set().union(*(walk(o, before) for o in operands))
            case BinaryStep(_, operands):
                for operand in operands:
                    before = walk(operand, before)
                return before

    walk(chain, set())
    return seen


def _bound(chain: Chain, binds: Mapping[str, frozenset[str]]) -> set[str]:
    """The variables that the steps of a chain may bind, negated ones left out."""
    variables = set[str]()
    for link in chain.links:
        match link.step:
            case GpmStep(use):
                variables |= binds.get(use.gpm, frozenset())
            case Repeat(body=body):
                variables |= _bound(body, binds)
            case BinaryStep(_, operands):
                variables.update(*(_bound(operand, binds) for operand in operands))
            case Negation():
                pass
    return variables
