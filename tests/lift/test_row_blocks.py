"""Rows that are lifted one by one come in blocks; no row is lost between two of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BufferedReader, BytesIO
from typing import Any

import pytest

from spaseq.lift.delimited_rows import DelimitedRows
from spaseq.lift.json_rows import DocumentRows, JsonRows
from spaseq.lift.lift_plan import Fields
from spaseq.lift.python_rows import dict_blocks
from spaseq.lift.row_blocks import Report
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT
from tests.thresholds import Force

NONE = frozenset[str]()
FIELDS = Fields(frozenset({"v"}), NONE, NONE, frozenset({"v"}), NONE)

ROWS = [{"v": f"x{number}"} for number in range(1, 16)]
BAD = 4
"""The number of a row that is bad."""

LINES = [json.dumps(row) for row in ROWS]
LINES[BAD - 1] = '"no object"'
CELLS = [f'"{row["v"]}"' for row in ROWS]
CELLS[BAD - 1] += "z"


def opened(text: str) -> Any:
    return BufferedReader(BytesIO(text.encode()))


def of_csv(report: Report) -> Iterator[Any]:
    data = opened("v\n" + "\n".join(CELLS))
    return DelimitedRows(data, DEFAULT_DIALECT, DEFAULT_LIMITS, "t").blocks(FIELDS.wanted, report)


def of_json_lines(report: Report) -> Iterator[Any]:
    return JsonRows(opened("\n".join(LINES)), FIELDS, DEFAULT_LIMITS).blocks(report)


def of_document(report: Report) -> Iterator[Any]:
    return DocumentRows(opened(f"[{','.join(LINES)}]"), FIELDS, DEFAULT_LIMITS).blocks(report)


@pytest.mark.parametrize("read", [of_csv, of_json_lines, of_document])
@pytest.mark.parametrize(("size", "sizes"), [(5, [5, 5, 4]), (7, [7, 7]), ("never", [14])])
def test_rows_of_text_come_in_blocks(
    read: Callable[[Report], Iterator[Any]], size: int | str, sizes: list[int], force: Force
) -> None:
    force(f"block_rows={size}")
    bad: list[str] = []
    blocks = [*read(lambda line, reason, text: bad.append(reason))]
    assert len(bad) == 1
    check_blocks(blocks, sizes, [row for number, row in enumerate(ROWS, 1) if number != BAD])


@pytest.mark.parametrize(("size", "sizes"), [(4, [4, 4, 4, 3]), (5, [5, 5, 5]), ("never", [15])])
def test_dicts_of_a_program_come_in_blocks(size: int | str, sizes: list[int], force: Force) -> None:
    force(f"block_rows={size}")
    check_blocks([*dict_blocks(ROWS, FIELDS, lambda *_: None)], sizes, ROWS)


def check_blocks(blocks: list[Any], sizes: list[int], rows: list[dict[str, str]]) -> None:
    """Check that these blocks have these sizes, and these rows with their numbers."""
    assert not any(block.is_table for block in blocks)
    assert [len(block) for block in blocks] == sizes
    found = [(n, v) for b in blocks for n, v in zip(b.numbers, b.columns["v"], strict=True)]
    assert found == [(int(row["v"][1:]), f'"{row["v"]}"') for row in rows]
