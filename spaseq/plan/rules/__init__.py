"""The optimisation rules, each a function from plan to plan.

Answers are the same without any of them. The name of a rule is the name of its function, with
hyphens; `explain` shows the first line of its docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from difflib import get_close_matches
from typing import TypeAlias

from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules.kept_groups import kept_groups
from spaseq.plan.rules.pattern_evaluation import (
    awaited_requests,
    indexed_places,
    lazy_operands,
    rare_triples_first,
    shared_patterns,
    virtual_triples,
)
from spaseq.plan.rules.shared_runs import compiled_runs, query_families, shared_runs
from spaseq.plan.rules.unread_parts import pruned_columns, pushed_predicates

Rule: TypeAlias = Callable[[QueryPlan], QueryPlan]

RULES: tuple[Rule, ...] = (
    awaited_requests,
    kept_groups,
    pushed_predicates,
    virtual_triples,
    rare_triples_first,
    shared_patterns,
    lazy_operands,
    indexed_places,
    shared_runs,
    compiled_runs,
    pruned_columns,
    query_families,
)
"""The rules, in the order of their application.

`awaited_requests` changes GPMs, and `kept_groups` the content of windows: both come first.
`pruned_columns` reads the key of the evaluator that the three rules before it choose.
"""


def name_of(rule: Rule) -> str:
    """The name of a rule, as in `--disable`."""
    return rule.__name__.replace("_", "-")


NAMES = tuple(map(name_of, RULES))


def known_rules(names: Iterable[str]) -> frozenset[str]:
    """Check that there are rules of these names.

    Raises:
        UsageError: there is no rule of some name.

    >>> sorted(known_rules(["pruned-columns"]))
    ['pruned-columns']
    """
    wanted = frozenset(names)
    for name in sorted(wanted.difference(NAMES)):
        near = get_close_matches(name, NAMES, 1)
        meant = f", did you mean {near[0]}?" if near else "."
        raise UsageError(f"no rule {name!r}{meant} Rules: {', '.join(NAMES)}")
    return wanted


def apply_rules(plan: QueryPlan, disabled: Collection[str] = ()) -> QueryPlan:
    """The plan after all rules but the disabled ones."""
    for rule in RULES:
        if name_of(rule) not in disabled:
            plan = rule(plan)
    return replace(plan, disabled=tuple(name for name in NAMES if name in disabled))
