"""Drawn cases in live runs that are killed, against the evaluation event by event."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.knowledge.cases import Case, cases
from tests.knowledge.live_cases import live, of_kills
from tests.sizes import sizes


def agrees(case: Case, seed: int) -> None:
    case = live(case)
    with TemporaryDirectory() as place:
        found = of_kills(case, Path(place) / "state", random.Random(seed))
        assert found == case.expected(), (case.query(), seed)


@sizes(4, 8, 2000)
def test_killed_runs_agree(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(given(cases(), st.integers(0, 10**6))(agrees))()
