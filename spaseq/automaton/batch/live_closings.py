"""The states of complete matches that wait for the close of their windows."""

from __future__ import annotations

from collections import Counter

import numpy as np

from spaseq.automaton.batch.match_builder import MatchBuilder
from spaseq.automaton.batch.waiting_matches import WaitingMatches
from spaseq.automaton.run.live_states import StateKey, StatePlaces, Wanted


def closing_states(
    waiting: WaitingMatches, builder: MatchBuilder, places: StatePlaces, wanted: Wanted | None
) -> Counter[StateKey]:
    """How many matches wait in each state in which a match may end."""
    found, last = Counter[StateKey](), [matches.last for matches in waiting]
    if not last:
        return found
    numbers, counts = np.unique(np.concatenate(last), return_counts=True)
    rows = builder.rows(numbers)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        row = rows[number]
        if wanted is None or wanted(builder.partition_of(row)):
            found[places.end(row[0])] += count
    return found
