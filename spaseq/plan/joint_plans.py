"""Joint plans: the graph patterns of several families, evaluated together.

Families that differ in window, operator or SELECT often have graph patterns that differ in
constants only. A joint plan has such a GPM once. Its table has the rows of all families, so a batch
of events is matched once, whatever the number of families.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeAlias

from spaseq.algebra import nodes as n
from spaseq.algebra.nodes import mapped
from spaseq.lang.shapes import QUERY
from spaseq.plan.families import Family, row_of, row_term
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.records import record

Rows: TypeAlias = "tuple[tuple[str | None, ...], ...]"
"""Rows of a table of constants."""


@record
class JointPlan:
    """Stage 1 of several families as one plan; `families` has their numbers.

    Its tables number their rows anew. `origins` has for each of these numbers the family, the GPM
    of the family's plan, and the row of the family's table.
    """

    plan: QueryPlan
    families: tuple[int, ...]
    origins: tuple[tuple[int, int, int], ...]


def joint_plans(families: Sequence[Family]) -> tuple[JointPlan, ...]:
    """The joint plans of families that have a GPM in common with another; at least two each."""
    alike: dict[object, list[int]] = {}
    for number, family in enumerate(families):
        if _can_join(family.plan):
            alike.setdefault(_surroundings(family.plan), []).append(number)
    common = (_common(families, numbers) for numbers in alike.values())
    return tuple(_joint(families, numbers) for numbers in common if numbers)


def _can_join(plan: QueryPlan) -> bool:
    """Whether the solutions of each GPM depend on the event and the table alone."""
    partition, patterns = {*plan.sequence.partition}, plan.patterns
    return (
        patterns.evaluation.shared
        and not plan.sequence.needs_instants
        and not patterns.memberships
        and not plan.inputs.services
        and all(gpm.correlation is None and partition <= gpm.certain for gpm in patterns.gpms)
    )


def _surroundings(plan: QueryPlan) -> object:
    """The parts of plans that must be equal, beside GPMs."""
    return plan.inputs.streams, plan.inputs.kbs, plan.expressions, plan.patterns.evaluation


def _common(families: Sequence[Family], numbers: Iterable[int]) -> list[int]:
    """The families that share a GPM with another one."""
    keys = {number: {*map(_key, families[number].plan.patterns.gpms)} for number in numbers}
    users: dict[object, int] = {}
    for gpm_keys in keys.values():
        for key in gpm_keys:
            users[key] = users.get(key, 0) + 1
    return [number for number, gpm_keys in keys.items() if any(users[key] > 1 for key in gpm_keys)]


def _key(gpm: GpmPlan) -> object:
    """A GPM without its name, the conditions of stage 2 and the rows of its table."""
    return gpm.streams, gpm.variables, gpm.certain, gpm.private, _with_table(gpm.pattern, ())


def _with_table(pattern: n.Pattern, rows: Rows) -> n.Pattern:
    """The pattern with other rows in the family's table."""
    if isinstance(pattern, n.Table) and QUERY in pattern.variables:
        return n.Table(pattern.variables, rows)
    return mapped(pattern, lambda operand: _with_table(operand, rows))


def _table(pattern: n.Pattern) -> n.Table | None:
    """The table of the family in a pattern."""
    if isinstance(pattern, n.Table) and QUERY in pattern.variables:
        return pattern
    return next(filter(None, map(_table, n.children(pattern))), None)


def _joint(families: Sequence[Family], numbers: Sequence[int]) -> JointPlan:
    gpms: dict[object, GpmPlan] = {}
    rows: dict[object, list[tuple[str | None, ...]]] = {}
    origins: list[tuple[int, int, int]] = []
    for number in numbers:
        for index, gpm in enumerate(families[number].plan.patterns.gpms):
            key, table = _key(gpm), _table(gpm.pattern)
            assert table is not None  # each GPM of a family has one
            gpms.setdefault(key, gpm)
            joined, member = rows.setdefault(key, []), table.variables.index(QUERY)
            for row in table.rows:
                term = row_term(len(origins))
                joined.append((*row[:member], term, *row[member + 1 :]))
                member_row = row[member]
                assert member_row is not None
                origins.append((number, index, row_of(member_row)))
    tabled = (
        replace(gpm, pattern=_with_table(gpm.pattern, tuple(rows[key])))
        for key, gpm in gpms.items()
        if rows[key]
    )
    plan = families[numbers[0]].plan
    columns = _columns(families[number].plan.patterns.columns for number in numbers)
    patterns = replace(plan.patterns, gpms=tuple(tabled), columns=columns)
    sequence = replace(plan.sequence, partition=(QUERY,))
    return JointPlan(
        replace(plan, patterns=patterns, sequence=sequence), tuple(numbers), tuple(origins)
    )


def _columns(every: Iterable[SolutionColumns]) -> SolutionColumns:
    """The columns of all families."""
    given = [*every]
    variables = {v for columns in given for v in columns.variables}
    numbers = {v for columns in given for v in columns.numbers}
    return SolutionColumns(tuple(sorted(variables)), tuple(sorted(numbers)))
