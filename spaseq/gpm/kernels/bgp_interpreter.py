"""Interpreter of basic graph patterns over events: nested-loop join, event by event.

A step is one triple pattern. Each of its three terms is a constant, a variable that an earlier step
has bound, or a variable that it binds itself. As the order of the steps is fixed, the mode of each
term is known beforehand. A step scans all triples of a small event. A large event is first sorted
by (predicate, subject) and (predicate, object), so that a step finds its triples by binary search.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int8s, Int32s, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, kernel
from spaseq.rdf.kernels.vectors import signed

CONSTANT, BOUND, FREE, AGAIN = 0, 1, 2, 3
"""Modes of a term: a constant; a variable that an earlier step has bound; a variable that this term
binds; a variable that an earlier term of the same pattern binds."""

S, P, O = 0, 1, 2  # noqa: E741  positions in a triple
ANY = -1
"""Matches every code."""
MANY = 48
"""Events with more triples than this are sorted."""
FEW = 16
"""Up to this number of solutions of an event are compared pairwise to remove repeats."""

_HALF = 32


@device_function
def _lower(keys: Int64s, key: int) -> int:
    """The first index whose key is not less than `key`."""
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@inlined_device_function
def _key(predicate: int, code: int) -> int:
    return signed(predicate) << _HALF | signed(code)


@device_function
def _most(start: Int64s) -> int:
    """The size of the largest event if it must be sorted, else 0."""
    most = 0
    for e in range(len(start) - 1):
        most = max(most, start[e + 1] - start[e])
    return most if most > MANY else 0


@device_function
def _fill(keys: Int64s, p: Int32s, codes: Int32s, start: int) -> None:
    """Set the keys (predicate, other term) of an event's triples."""
    for i in range(len(keys)):
        keys[i] = _key(p[start + i], codes[start + i])


@device_function
def _arrange(keys: Int64s, order: Int64s, p: Int32s, codes: Int32s, start: int) -> None:
    """Set the keys of an event's triples in the given order."""
    for i in range(len(keys)):
        keys[i] = _key(p[start + order[i]], codes[start + order[i]])


@device_function
def _narrowed(
    s: int, p: int, o: int, by_subject: Int64s, by_object: Int64s
) -> tuple[int, int, bool]:
    """(first, end, whether in order by object): the range of sorted triples that may match."""
    if p == ANY:
        return 0, len(by_subject), False
    if s != ANY:
        return _lower(by_subject, _key(p, s)), _lower(by_subject, _key(p, s) + 1), False
    if o != ANY:
        return _lower(by_object, _key(p, o)), _lower(by_object, _key(p, o) + 1), True
    return _lower(by_subject, _key(p, 0)), _lower(by_subject, _key(p + 1, 0)), False


@inlined_device_function
def _wanted(term: int, mode: int, values: Int32s) -> int:
    """The code that a triple must have for a term, or ANY."""
    if mode == CONSTANT:
        return term
    return values[term] if mode == BOUND else ANY


@inlined_device_function
def _gives(term: int, mode: int, code: int, values: Int32s) -> bool:
    """Bind a FREE variable to a code. Return False if an AGAIN variable has another value."""
    if mode == FREE:
        values[term] = code
    return mode != AGAIN or bool(values[term] == code)


@inlined_device_function
def _agrees(code: int, wanted: int) -> bool:
    return code == wanted or wanted == ANY


@device_function
def _next(
    s: Int32s, p: Int32s, o: Int32s, at: int, end: int, own_s: int, own_p: int, own_o: int
) -> int:
    """The first triple of `at:end` that matches three codes, or `end`."""
    if own_s == ANY and own_p != ANY and own_o != ANY:  # for example rdf:type
        while at < end and (o[at] != own_o or p[at] != own_p):
            at += 1
        return at
    while at < end and not (
        _agrees(p[at], own_p) and _agrees(o[at], own_o) and _agrees(s[at], own_s)
    ):
        at += 1
    return at


@inlined_device_function
def _same(rows: Int32s, i: int, j: int) -> bool:
    for v in range(len(rows)):
        if rows[v, i] != rows[v, j]:
            return False
    return True


@device_function
def _without_repeats(rows: Int32s, first: int, end: int) -> int:
    """Remove repeated solutions from first:end of an event and return the new end."""
    kept = first + 1
    for i in range(first + 1, end):
        new = True
        for j in range(first, kept):
            if _same(rows, i, j):
                new = False
                break
        if new:
            for v in range(len(rows)):
                rows[v, kept] = rows[v, i]
            kept += 1
    return kept


@kernel
def solutions(
    start: Int64s,
    s: Int32s,
    p: Int32s,
    o: Int32s,
    terms: Int32s,
    modes: Int8s,
    at_event: int,
    found: int,
    most_steps: int,
    event: Int64s,
    rows: Int32s,
) -> tuple[int, int, bool, int]:
    """The solutions of a basic graph pattern on each of n events, from event `at_event` on.

    Args:
        start: int64 [n + 1]; event e has the triples start[e]:start[e + 1].
        s, p, o: int32 [m], codes of the triples.
        terms: int32 [steps, 3], codes of constants and numbers of variables.
        modes: int8 [steps, 3], modes of the terms. A predicate is bound before subject and object.
        at_event: the first event.
        found: number of solutions so far.
        most_steps: number of triples to visit; the call ends soon after it.
        event: int64 [room], receives the event of each solution.
        rows: int32 [variables, room], receives the codes of each solution.

    Returns:
        (number of solutions, next event: n, or an event that needs more room or more steps, whether
        there may be repeated solutions because an event repeats a triple, number of steps).
    """
    steps, variables, room = len(terms), len(rows), len(event)
    values = np.empty(variables, np.int32)
    at, to = np.zeros(steps, np.int64), np.zeros(steps, np.int64)
    turned = np.zeros(steps, np.bool_)  # whether a step goes in the order by object
    most = _most(start)
    by_subject, by_object = np.empty(most, np.int64), np.empty(most, np.int64)
    subject_order, object_order = np.empty(most, np.int64), np.empty(most, np.int64)
    first_s = _wanted(terms[0, S], modes[0, S], values)
    first_p = _wanted(terms[0, P], modes[0, P], values)
    first_o = _wanted(terms[0, O], modes[0, O], values)
    repeats, looked = False, 0
    e, end, last = at_event, start[at_event], start[len(start) - 1]
    while True:
        fitting = _next(s, p, o, end, last, first_s, first_p, first_o)
        if fitting == last:
            break
        while start[e + 1] <= fitting:
            e += 1
        first, end = start[e], start[e + 1]
        before, step, comes = found, 0, True
        size = end - first
        many = size > MANY
        if many:
            _fill(by_subject[:size], p, s, first)
            subject_order[:size] = np.argsort(by_subject[:size])
            _arrange(by_subject[:size], subject_order, p, s, first)
            _fill(by_object[:size], p, o, first)
            object_order[:size] = np.argsort(by_object[:size])
            _arrange(by_object[:size], object_order, p, o, first)
        while step >= 0:
            wanted_p = _wanted(terms[step, P], modes[step, P], values)
            wanted_s = _wanted(terms[step, S], modes[step, S], values)
            wanted_o = _wanted(terms[step, O], modes[step, O], values)
            if comes:
                at[step], to[step] = first, end
                if many:
                    at[step], to[step], turned[step] = _narrowed(
                        wanted_s, wanted_p, wanted_o, by_subject[:size], by_object[:size]
                    )
            place, stop, comes = at[step], to[step], False
            looked -= place
            while place < stop:
                i = place
                if many:
                    i = first + (object_order[place] if turned[step] else subject_order[place])
                place += 1
                if (
                    _agrees(p[i], wanted_p)
                    and _agrees(o[i], wanted_o)
                    and _agrees(s[i], wanted_s)
                    and _gives(terms[step, P], modes[step, P], p[i], values)
                    and _gives(terms[step, S], modes[step, S], s[i], values)
                    and _gives(terms[step, O], modes[step, O], o[i], values)
                ):
                    comes = True
                    break
            at[step] = place
            looked += place + 1
            if looked > most_steps:
                return before, e, repeats, looked
            if not comes:
                step -= 1
            elif step < steps - 1:
                step += 1
            else:
                if found == room:
                    return before, e, repeats, looked
                event[found] = e
                for v in range(variables):
                    rows[v, found] = values[v]
                found += 1
                comes = False
        if found - before > FEW:
            repeats = True
        elif found - before > 1:
            found = _without_repeats(rows, before, found)
    return found, len(start) - 1, repeats, looked


@kernel
def frequencies(s: Int32s, p: Int32s, o: Int32s, terms: Int32s, modes: Int8s) -> Int64s:
    """For each step [steps], the number of the m triples that match its constants."""
    counts = np.zeros(len(terms), np.int64)
    for i in range(len(s)):
        for step in range(len(terms)):
            if (
                (modes[step, P] != CONSTANT or terms[step, P] == p[i])
                and (modes[step, S] != CONSTANT or terms[step, S] == s[i])
                and (modes[step, O] != CONSTANT or terms[step, O] == o[i])
            ):
                counts[step] += 1
    return counts
