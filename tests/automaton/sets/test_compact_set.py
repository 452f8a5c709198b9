"""The compact set: unions are sets in order of start, and the next solution is always near."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.automaton.sets.python.compact_set import EVER, NIL, UNION, CompactSet, UnionList
from spaseq.automaton.sets.python.counting import count

Path = tuple[int, tuple[int, ...]]
"""A start, and the times of the rows in the path."""


@st.composite
def grown(draw: st.DrawFn) -> tuple[CompactSet, list[tuple[UnionList, Counter[Path]]]]:
    """A set grown as in the evaluators, with the expected paths of each union-list."""
    found = CompactSet()
    lists: list[tuple[UnionList, Counter[Path]]] = []
    for time in range(draw(st.integers(1, 12))):
        row = (0, time, 0, None, ())
        lists.sort(key=lambda entry: -found.start(entry[0].nodes[0]))
        # By descending start: a match that begins now, then the matches of each list.
        kept = [(UnionList([found.output(NIL, NIL, time, 0, row)]), Counter([(time, (time,))]))]
        for partial, paths in lists:
            if draw(st.booleans()):
                before = found.merge(partial)
                node = found.output(before, NIL, found.start(before), 0, row)
                taken = Counter({(s, (*times, time)): n for (s, times), n in paths.items()})
                _into(draw, found, kept, node, taken)
            if draw(st.booleans()):
                kept.append((partial, paths))
            else:
                _into(draw, found, kept, found.merge(partial), paths)
        lists = kept
    return found, lists


def _into(
    draw: st.DrawFn,
    found: CompactSet,
    lists: list[tuple[UnionList, Counter[Path]]],
    node: int,
    paths: Counter[Path],
) -> None:
    place = draw(st.integers(0, len(lists) - 1))
    found.insert(lists[place][0], node)
    lists[place] = lists[place][0], lists[place][1] + paths


def paths_of(found: CompactSet, node: int) -> list[Path]:
    return [(s, tuple(row[1] for _, row in taken)) for s, taken in found.enumerate([node])]


@settings(max_examples=200, deadline=None, database=None)
@given(grown())
def test_a_union_list_stands_for_what_was_put_into_it(
    case: tuple[CompactSet, list[tuple[UnionList, Counter[Path]]]],
) -> None:
    found, lists = case
    for partial, paths in lists:
        node = found.merge(partial)
        assert Counter(paths_of(found, node)) == paths
        assert count(found, [node]) == paths.total()
        assert found.start(node) == max(s for s, _ in paths)


@settings(max_examples=200, deadline=None, database=None)
@given(grown())
def test_a_solution_is_at_most_three_left_steps_away(
    case: tuple[CompactSet, list[tuple[UnionList, Counter[Path]]]],
) -> None:
    found, lists = case
    for partial, _ in lists:
        found.merge(partial)
    for node in range(len(found.nodes)):
        steps = 0
        while found.nodes[node][3] == UNION:
            left, right, start, _, _ = found.nodes[node]
            assert found.start(left) == start >= found.start(right)
            node, steps = left, steps + 1
        assert steps <= 3


@settings(max_examples=200, deadline=None, database=None)
@given(grown(), st.integers(0, 12))
def test_the_window_cuts_matches_off_by_their_start(
    case: tuple[CompactSet, list[tuple[UnionList, Counter[Path]]]], floor: int
) -> None:
    found, lists = case
    nodes = [(found.merge(partial), paths) for partial, paths in lists]
    found.floor = floor
    for node, paths in nodes:
        inside = Counter({p: n for p, n in paths.items() if p[0] >= floor})
        assert Counter(paths_of(found, node)) == inside
        assert count(found, [node]) == inside.total()


def test_nodes_added_before_the_window_are_forgotten_and_no_others() -> None:
    found = CompactSet()
    for time in range(1000):
        found.advance(time, time - 100)
        found.output(NIL, NIL, time, 0, (0, time, 0, None, ()))
    starts = [node[2] for node in found.nodes]
    assert starts == list(range(starts[0], 1000))
    assert starts[0] <= 899
    assert len(starts) < 500
    assert found.start(0) == EVER
