"""What is made of an array of texts is kept as long as the array."""

from __future__ import annotations

from typing import Any

from spaseq.rdf.columns.term_columns import TextMemo, text_array


def test_a_result_is_kept_as_long_as_the_array() -> None:
    asked: list[int] = []

    def length(texts: Any) -> int:
        asked.append(len(texts))
        return len(texts)

    length_of = TextMemo(length)
    first, second = text_array(["a", "b"]), text_array(["a", "b"])
    assert [length_of(first), length_of(second), length_of(first)] == [2, 2, 2]
    assert asked == [2, 2]
    assert len(length_of._known) == 2
    del first
    assert len(length_of._known) == 1
