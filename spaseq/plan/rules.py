"""The rules by which a plan is made fast; without any of them, answers are the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from spaseq.errors import UsageError


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: what it is called, and what it does."""

    name: str
    effect: str


PUSHED_PREDICATES = Rule("pushed-predicates", "triples that no query looks at are not kept")
RARE_TRIPLES_FIRST = Rule("rare-triples-first", "the triple pattern that fits least comes first")
SHARED_PATTERNS = Rule("shared-patterns", "what several GPMs ask of an event is evaluated once")
LAZY_OPERANDS = Rule(
    "lazy-operands", "OPTIONAL, paths, EXISTS and the like wait until the triple patterns match"
)
PRUNED_COLUMNS = Rule("pruned-columns", "values that nothing asks for are not handed on")
SHARED_RUNS = Rule("shared-runs", "partial matches share their parts if no step looks at another")
AWAITED_REQUESTS = Rule(
    "awaited-requests", "SERVICE is asked about a pushed event only if a partial match awaits it"
)
RARE_STEPS_FIRST = Rule("rare-steps-first", "steps that can wait do, until the rarest has matched")
COMPILED_RUNS = Rule("compiled-runs", "runs are moved on by compiled code, a batch at a time")

RULES = (
    PUSHED_PREDICATES,
    RARE_TRIPLES_FIRST,
    SHARED_PATTERNS,
    LAZY_OPERANDS,
    PRUNED_COLUMNS,
    AWAITED_REQUESTS,
    SHARED_RUNS,
    RARE_STEPS_FIRST,
    COMPILED_RUNS,
)

NAMES = tuple(rule.name for rule in RULES)


def disabled_rules(names: Iterable[str]) -> frozenset[Rule]:
    """The rules of these names.

    Raises:
        UsageError: there is none of a name.

    >>> [rule.effect for rule in disabled_rules(["pruned-columns"])]
    ['values that nothing asks for are not handed on']
    """
    known = {rule.name: rule for rule in RULES}
    found = set()
    for name in names:
        if name not in known:
            near = get_close_matches(name, NAMES, 1)
            meant = f", did you mean {near[0]}?" if near else "."
            raise UsageError(f"no rule {name!r}{meant} Rules: {', '.join(NAMES)}")
        found.add(known[name])
    return frozenset(found)
