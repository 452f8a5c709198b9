"""A run that is slow to start says what it does."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from spaseq.runtime.spark.following.follow import telling


def test_notes_come_until_there_is_nothing_more_to_tell() -> None:
    notes = list[str]()
    texts: Iterator[str | None] = iter(["plans", "runs", None])
    over = threading.Event()

    def doing() -> str | None:
        text = next(texts)
        if text is None:
            over.set()
        return text

    with telling(notes.append, doing, first_s=0.01):
        assert over.wait(30)
    assert notes == ["plans", "runs"]


def test_a_quick_start_says_nothing() -> None:
    notes = list[str]()
    with telling(notes.append, lambda: "starts"):
        pass
    assert notes == []
