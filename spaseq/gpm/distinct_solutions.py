"""Which solutions stage 1 hands on: distinct ones, without variables that nothing later reads."""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.kernels.keyed_ranges import some_repeats
from spaseq.gpm.solutions.solutions import only, taken, with_columns
from spaseq.gpm.solutions.value_columns import known_terms
from spaseq.lang.shapes import QUERY
from spaseq.rdf.columns.distinct_rows import first_rows
from spaseq.rdf.columns.term_columns import UNBOUND


def without_private(bindings: EventSolutions, private: frozenset[str]) -> EventSolutions:
    """The solutions without private variables, unless an event has several solutions."""
    if not private or not len(bindings.event):
        return bindings
    columns = only(bindings.columns, [v for v in bindings.columns if v not in private])
    event = bindings.event
    if (event[1:] == event[:-1]).any():
        several = are_several(bindings)
        if several.any():
            given = taken(only(bindings.columns, private), several)
            told = {v: np.full(len(event), UNBOUND, np.int32) for v in given}
            for variable, codes in given.items():
                told[variable][several] = codes
            columns = with_columns(columns, told)
    return EventSolutions(bindings.event, columns, bindings.terms)


def are_several(bindings: EventSolutions) -> Bools:
    """The rows whose event has several solutions, in a family for one member."""
    event, member = bindings.event, _members(bindings)
    if member is None:
        new = np.ones(len(event) + 1, np.bool_)
        new[1:-1] = event[1:] != event[:-1]
        return ~(new[1:] & new[:-1])
    if not _some_repeat(event, member):
        return np.zeros(len(event), np.bool_)
    members = int(member.max()) + 1
    _, which, counts = np.unique(event * members + member, return_inverse=True, return_counts=True)
    several: Bools = counts[which] > 1
    return several


def _members(bindings: EventSolutions) -> Int32s | None:
    """A number of the member of a family for each solution; None if it is of no family."""
    if QUERY not in bindings.columns:
        return None
    members = known_terms(bindings.columns, QUERY)
    return bindings.columns[QUERY] if members is None else members.codes


def _some_repeat(event: Int64s, member: Int32s) -> bool:
    """Whether a member has several solutions on an event; events ascend."""
    return some_repeats(event, member, np.full(int(member.max()) + 1, -1))


def distinct_solutions(bindings: EventSolutions) -> EventSolutions:
    """The distinct solutions, as matches are a set."""
    event = bindings.event
    if len(event) < 2 or (np.diff(event) > 0).all():
        return bindings
    member = _members(bindings)
    # The members of a family have one solution of most events each.
    if member is not None and not _some_repeat(event, member):
        return bindings
    alone = np.ones(len(event) + 1, np.bool_)
    alone[1:-1] = event[1:] != event[:-1]
    kept = alone[1:] & alone[:-1]
    rows = np.flatnonzero(~kept)  # the only ones whose columns are read
    first = first_rows([event[rows], *taken(bindings.columns, rows).values()])
    if len(first) == len(rows):
        return bindings
    kept[rows[first]] = True
    return EventSolutions(event[kept], taken(bindings.columns, kept), bindings.terms)
