"""Forced thresholds and their watch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spaseq import thresholds
from spaseq.errors import UsageError
from spaseq.thresholds import ENTRIES
from tests.thresholds import environment, forced, names
from tests.thresholds.forcing import forced as read

MOST = 90
"""More thresholds are too many to test."""


def test_every_threshold_says_what_it_counts_and_why() -> None:
    assert len(ENTRIES) <= MOST
    for name, entry in ENTRIES.items():
        assert entry.unit and len(entry.why) > 10, name
        assert 0 <= entry.least <= entry.value <= entry.never, name


def test_words_force_thresholds() -> None:
    assert read("").few_matches == ENTRIES["few_matches"].value
    assert read("least few_matches=7").few_matches == 7
    assert read("least few_matches=7").tied_rows == 1
    assert read("never tied_rows=least").tied_rows == 1
    assert read("random:1") != read("random:2")
    with pytest.raises(UsageError, match="few_match"):
        read("few_match=7")


def test_a_context_forces_them_and_ends() -> None:
    before = thresholds.current
    with forced("few_matches=7") as crossed:
        assert not thresholds.current.few_matches < 7
        assert thresholds.current.tied_rows > 7
    assert thresholds.current is before
    assert crossed == {"few_matches"}


def test_a_context_sees_what_an_inner_one_crosses() -> None:
    with forced("few_matches=7") as outer:
        with forced("tied_rows=7") as inner:
            assert thresholds.current.few_matches < 8
        assert thresholds.current.tied_rows > 8
    assert outer == inner == {"few_matches"}


def test_numbers_of_numpy_cross_a_threshold() -> None:
    with forced("few_matches=7 tied_rows=7") as crossed:
        assert np.int64(7) >= thresholds.current.few_matches
        assert not np.int64(6) >= thresholds.current.tied_rows
    assert crossed == {"few_matches"}


def test_a_process_takes_them_from_its_environment(tmp_path: Path) -> None:
    script = "from spaseq import thresholds; print(8 > thresholds.current.few_matches)"
    found = subprocess.run(
        [sys.executable, "-c", script],
        env=environment("few_matches=7", tmp_path / "crossed"),
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout == "True\n"
    assert names(tmp_path / "crossed") == {"few_matches"}
