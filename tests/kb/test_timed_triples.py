"""Triples that come and go, against sets that change one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.kb.kernels.timed_triples import (
    crowded,
    holding,
    intervals,
    numbered,
    stable_order,
)
from spaseq.stages.timed_graphs import TimedKeys

LARGE = 2**31 - 5  # the greatest codes are near

codes = st.integers(0, 3) | st.integers(LARGE, LARGE + 3)
triples = st.tuples(codes, codes)
changes = st.tuples(codes, st.just(-1) | codes, st.booleans(), st.integers(0, 2))
Change = tuple[int, int, bool, int]


def key(triple: tuple[int, int]) -> int:
    return triple[0] << 32 | triple[1]


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def placed(given: list[Change]) -> list[Change]:
    """The changes with ascending places in place of the distances; what comes has an object."""
    place, found = 0, list[Change]()
    for s, o, comes, further in given:
        place += further
        found.append((s, o, comes and o >= 0, place))
    return found


@given(st.sets(triples), st.lists(changes), st.lists(st.tuples(triples, st.integers(0, 9))))
def test_rows_find_what_holds_at_their_places(
    known: set[tuple[int, int]],
    given: list[Change],
    asked: list[tuple[tuple[int, int], int]],
) -> None:
    made, held = placed(given), {-1: frozenset(known)}
    now = set(known)
    for s, o, comes, place in made:
        if comes:
            now.add((s, o))
        else:
            now = {t for t in now if t[0] != s or o not in (-1, t[1])}
        held[place] = frozenset(now)
    first = np.sort(ints([key(t) for t in known]))
    s, o, comes, place = ([c[i] for c in made] for i in range(4))
    timed = TimedKeys.of(*intervals(first, ints(s), ints(o), np.array(comes, bool), ints(place)))
    out, new = (column.tolist() for column in timed.change())
    assert out == sorted(map(key, known - now))
    assert new == sorted(map(key, now - known))
    at = ints([where for _, where in asked])
    for width, lowest in (
        (1, [key(t) for t, _ in asked]),
        (2**32, [key((t[0], 0)) for t, _ in asked]),
        (2**62, [0] * len(asked)),
    ):
        expected = []
        for row, (low, where) in enumerate(zip(lowest, at.tolist(), strict=True)):
            then = held[max(p for p in held if p <= where)]
            expected += [(row, key(t)) for t in then if low <= key(t) < low + width]
        rows, found = np.empty((2, len(expected)), np.int64)
        given_arrays = first, timed.keys, timed.since, timed.until, ints(lowest), width, at
        nothing = np.empty(0, np.int64)
        assert holding(*given_arrays, 2**40, nothing, nothing) == len(expected)
        assert holding(*given_arrays, 2**40, rows, found) == len(expected)
        assert sorted(zip(rows.tolist(), found.tolist(), strict=True)) == sorted(expected)
        assert holding(*given_arrays, 1, nothing, nothing) == min(len(expected), 2)


@given(st.lists(st.integers(-2, 2) | st.integers(2**61, 2**61 + 2)))
def test_equal_keys_have_one_number(keys: list[int]) -> None:
    assert numbered(ints(keys)).tolist() == [[*dict.fromkeys(keys)].index(k) for k in keys]


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans(), st.booleans())),
    st.integers(0, 3),
)
def test_few_values_come_between_places_that_are_made_alone(
    given: list[tuple[int, int, bool, bool]], most: int
) -> None:
    place = np.cumsum([further for further, *_ in given], dtype=np.int64)
    pair = numbered(ints([number for _, number, *_ in given]))
    comes, alone = (np.array([g[i] for g in given], bool) for i in (2, 3))
    cuts = crowded(place, pair, comes, alone, most).tolist()
    assert cuts == sorted(set(cuts))
    assert {*place[alone].tolist()} <= {*cuts}
    left = ~np.isin(place, cuts)
    part = np.searchsorted(cuts, place)
    for number, within in {*zip(pair.tolist(), part.tolist(), strict=True)}:
        assert np.count_nonzero(left & comes & (pair == number) & (part == within)) <= most
    if most >= len(given):
        assert cuts == sorted({*place[alone].tolist()})


@given(st.lists(triples.map(key) | st.integers(0, 5)))
def test_order_is_stable(keys: list[int]) -> None:
    order = stable_order(ints(keys)).tolist()
    assert order == sorted(range(len(keys)), key=keys.__getitem__)
