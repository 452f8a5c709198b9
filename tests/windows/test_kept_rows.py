"""Kept rows are the rows that were appended, without those that were dropped or did not stay."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spaseq.windows.kept_rows import EVENT_COLUMNS, KeptRows

STEPS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 12), st.booleans(), st.integers(0, 4)), max_size=30
)


@given(STEPS)
def test_rows_come_and_go(steps: list[tuple[int, int, bool, int]]) -> None:
    rows = KeptRows({**EVENT_COLUMNS, "text": (2, np.object_)})
    wanted, first, number = list[tuple[int, str | None]](), 0, 0
    for come, gone, has_texts, every in steps:
        times = np.arange(number, number + come)
        columns = {"time": times, "event": times}
        if has_texts:
            columns["text"] = np.array([[f"{n}{t}" for n in "ab"] for t in times], object).T
            columns["text"] = columns["text"].reshape(2, come)
        rows.append(come, columns)
        wanted += [(int(t), f"a{t}" if has_texts else None) for t in times]
        number += come
        if every:
            stays = np.arange(len(wanted)) % every > 0
            places = rows.keep(stays)
            wanted = [row for row, is_kept in zip(wanted, stays, strict=True) if is_kept]
            assert places[stays].tolist() == [first + i for i in range(len(wanted))]
            assert (places[~stays] == -1).all()
        rows.drop(first + gone)
        left = min(gone, len(wanted))
        first, wanted = first + left, wanted[left:]
        assert rows.first == first
        assert len(rows) == len(wanted)
        texts = rows.column("text")
        assert [*zip(rows.time.tolist(), texts[0].tolist(), strict=True)] == wanted
        assert [*map(bool, texts[1])] == [*map(bool, texts[0])]
