"""Engine and oracle agree with thresholds forced: all least, all never reached, and at random."""

from __future__ import annotations

import os

import pytest

from tests.oracle.forced_campaign import run
from tests.sizes import sizes

FIRST = int(os.environ.get("SPASEQ_ORACLE_FIRST", "0"))


@sizes(6, 15, 3000)
def test_forced_thresholds(examples: int) -> None:
    """`SPASEQ_ORACLE_FIRST` sets the number of the first case."""
    found = run(FIRST, examples)
    if found.wrong:
        pytest.fail("\n\n".join(found.wrong), pytrace=False)
    assert found.answered >= examples // 10
    assert len(found.crossed) > 12
