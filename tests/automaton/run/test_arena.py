"""The arena forgets exactly the nodes added before a given time."""

from __future__ import annotations

from spaseq.automaton.run.arena import Arena


def filled(times: list[int]) -> tuple[Arena[int], dict[int, int]]:
    """An arena with one marked node per time, and the time of each node by its id."""
    arena: Arena[int] = Arena()
    added = {}
    for time in times:
        arena.mark(time)
        added[arena.add(time)] = time
    return arena, added


def test_nodes_of_the_horizon_itself_stay() -> None:
    arena, added = filled([*range(1000), *[1000] * 3000, *range(1001, 1100)])
    arena.forget(1000)
    for number, time in added.items():
        if time >= 1000:
            assert arena[number] == time


def test_old_nodes_go_and_ids_stay() -> None:
    arena, added = filled(list(range(5000)))
    arena.forget(4000)
    assert len(arena) <= 1001
    assert all(arena[n] == t for n, t in added.items() if t >= 4000)
    assert arena.add(-1) == 5000
