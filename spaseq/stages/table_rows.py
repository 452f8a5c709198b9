"""Rows of the tables of families, as numbers."""

from __future__ import annotations

import pyarrow.compute as pc

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.columns.term_columns import TextArray, TextMemo


def _table_rows(terms: TextArray) -> Int64s:
    numbers = pc.cast(pc.utf8_slice_codeunits(terms, 1, -1), "int64")  # as `row_of`
    rows: Int64s = numbers.to_numpy(zero_copy_only=False)
    return rows


table_rows_of = TextMemo(_table_rows)
"""The rows [n] of a family's table for n texts; batches mostly share the texts."""
