"""The solutions of groups that change at drawn window events, against sets of solutions."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import ScopedTerms
from spaseq.gpm.solutions.lazy_columns import Lexicon
from spaseq.windows.lasting_solutions import GroupSolutions, texts_of

GROUPS, PARTITIONS, VALUES = 6, 3, 3
"""A group is in the partition whose number is the remainder of the group's."""


@pytest.mark.parametrize("changes", [[None], ["NEW"], ["GONE"], ["NEW", "GONE"], [None, "GONE"]])
def test_solutions_are_those_of_sets(changes: list[str | None]) -> None:
    draw = Random(3)
    for _ in range(60):
        kept = GroupSolutions(frozenset(changes))
        held: dict[int, set[str]] = {}
        at_once = draw.choice([1, 3])
        for _ in range(4):
            if draw.random() < 0.2:
                again = GroupSolutions(frozenset(changes))
                again.restore(kept.snapshot())
                kept = again
            wanted = list[tuple[int, str, str]]()
            heads, places, groups, values = [], list[int](), list[str](), list[str]()
            some = draw.sample(range(PARTITIONS), at_once)
            partitions = [p for p in some for _ in range(draw.randrange(5))]
            for event, partition in enumerate(partitions):
                gone = list[tuple[str, str]]()
                own = [g for g in range(GROUPS) if g % PARTITIONS == partition]
                for group in sorted(draw.sample(own, draw.randrange(3))):
                    before = held.get(group, set())
                    now = {f'"{v}"' for v in range(VALUES) if draw.random() < 0.4}
                    for value in sorted(now) * draw.choice([1, 1, 2]):
                        places.append(len(heads))
                        groups.append(f'"{group}"')
                        values.append(value)
                    heads.append((event, group))
                    held[group] = now
                    if None not in changes and "NEW" in changes:
                        wanted += [(event, f'"{group}"', v) for v in now - before]
                    gone += [(f'"{group}"', v) for v in before - now]
                if None in changes:
                    wanted += [(event, f'"{g}"', v) for g in own for v in held.get(g, ())]
                if "GONE" in changes:
                    wanted += [(event, *lost) for lost in gone]
            lexicon = Lexicon(ScopedTerms([]))
            columns = {"g": lexicon.encode(groups), "v": lexicon.encode(values)}
            found = EventSolutions(np.array(places, np.int64), columns, lexicon)
            given = np.array(heads, np.int64).reshape(-1, 2)
            event, told = kept.advance(np.array(partitions, np.int64), given, found, lexicon)
            assert (np.diff(event) >= 0).all()
            held_by = {g % PARTITIONS for g, solutions in held.items() if solutions}
            assert held_by == {p for p in range(PARTITIONS) if kept.has(p)}
            texts = [texts_of(codes, lexicon) for codes in told.values()]
            assert sorted(zip(event.tolist(), *texts, strict=True)) == sorted(wanted)
