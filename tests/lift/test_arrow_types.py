"""Each Arrow type has one form as a term (docs/lift.md#types)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spaseq.errors import InputError
from spaseq.lift.row_blocks import joined
from tests.lift.lifting import integer, lift_of, objects, typed

READS_A = lift_of(":r :n ?_line . :r :v ?a")
UTC = dt.UTC


def written(tmp_path: Path, table: Any, name: str) -> Path:
    path = tmp_path / name
    if name.endswith(".parquet"):
        pq.write_table(table, path)
        return path
    make = pa.ipc.new_stream if name.endswith(".arrows") else pa.ipc.new_file
    with make(path, table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.arrows", "t.feather"])
@pytest.mark.parametrize(
    ("kind", "value", "term"),
    [
        (pa.string(), "a\n", '"a\\n"'),
        (pa.large_string(), "ä", '"ä"'),
        (pa.dictionary(pa.int8(), pa.string()), "x", '"x"'),
        (pa.int8(), -5, integer(-5)),
        (pa.uint64(), 2**64 - 1, integer(2**64 - 1)),
        (pa.float64(), 0.1, typed("1.0E-1", "double")),
        (pa.float64(), float("nan"), typed("NaN", "double")),
        (pa.float32(), 0.1, typed("1.0E-1", "float")),
        (pa.decimal128(10, 3), Decimal("10.500"), typed("10.5", "decimal")),
        (pa.decimal128(10, 3), Decimal("10.000"), typed("10", "decimal")),
        (pa.bool_(), True, typed("true", "boolean")),
        (pa.timestamp("us"), dt.datetime(2020, 1, 1), typed("2020-01-01T00:00:00Z", "dateTime")),
        (
            pa.timestamp("ms", "Europe/Vienna"),
            dt.datetime(2020, 1, 1, 0, 0, 0, 120_000, UTC),
            typed("2020-01-01T00:00:00.12Z", "dateTime"),
        ),
        (pa.timestamp("us"), dt.datetime(1, 1, 1), typed("0001-01-01T00:00:00Z", "dateTime")),
        (pa.date32(), dt.date(2020, 2, 29), typed("2020-02-29", "date")),
        (pa.time64("us"), dt.time(1, 2, 3, 40), typed("01:02:03.00004", "time")),
        (
            pa.duration("us"),
            dt.timedelta(days=1, seconds=1.5),
            typed("P1DT1.5S", "dayTimeDuration"),
        ),
        (pa.duration("us"), dt.timedelta(seconds=-1), typed("-PT1S", "dayTimeDuration")),
        (pa.null(), None, None),
        (pa.int32(), None, None),
    ],
)
def test_type(kind: Any, value: Any, term: str | None, name: str, tmp_path: Path) -> None:
    array = (
        pa.array([value], pa.string()).dictionary_encode()
        if pa.types.is_dictionary(kind)
        else pa.array([value], kind)
    )
    path = written(tmp_path, pa.table({"b": ["x"], "a": array}), name)
    assert objects(path, READS_A) == ([[] if term is None else [term]], [])


def test_nanoseconds_are_cut(tmp_path: Path) -> None:
    array = pa.array([1_999, -1], pa.timestamp("ns"))
    found, _ = objects(written(tmp_path, pa.table({"a": array}), "t.arrow"), READS_A)
    assert found == [
        [typed("1970-01-01T00:00:00.000001Z", "dateTime")],
        [typed("1969-12-31T23:59:59.999999Z", "dateTime")],
    ]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.binary(), b"x"),
        (pa.list_(pa.int8()), [1]),
        (pa.struct([("f", pa.int8())]), {"f": 1}),
        (pa.map_(pa.string(), pa.int8()), [("k", 1)]),
        (pa.timestamp("s"), 2**40),
    ],
)
def test_values_that_are_no_terms_make_the_row_bad(kind: Any, value: Any, tmp_path: Path) -> None:
    array = pa.array([None, value], kind)
    path = written(tmp_path, pa.table({"a": array, "b": [1, 2]}), "t.arrow")
    found, bad = objects(path, READS_A)
    assert found == [[]]
    assert [line for line, _ in bad] == [2]
    assert objects(path, lift_of(":r :v ?b"))[0] == [[integer(1)], [integer(2)]]


def test_structs_and_lists(tmp_path: Path) -> None:
    rows = [
        {"s": {"x": 1}, "l": [{"f": 1}, None, {"f": None}]},
        {"s": None, "l": []},
        {"s": {"x": None}, "l": [{"f": 5}]},
    ]
    for name in ("t.parquet", "t.arrow"):
        path = written(tmp_path, pa.Table.from_pylist(rows), name)
        assert objects(path, lift_of(":r :v ?s_x ; :n 1"))[0] == [[integer(1)], [], []]
        lift = lift_of(":r :v ?i_f ; :n ?_line", "UNNEST ?l AS ?i")
        assert objects(path, lift)[0] == [[integer(1)], [integer(5)]]


def test_file_that_is_no_table(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.arrow"):
        (tmp_path / name).write_text("no table")
        with pytest.raises(InputError, match="cannot read"):
            objects(tmp_path / name, READS_A)


def test_small_batches_are_lifted_together() -> None:
    words = [pa.array(some).dictionary_encode() for some in (["x", "y"], ["z"], ["x"])]
    batches = [pa.record_batch({"a": column}) for column in words]

    def damaged() -> Iterator[Any]:
        yield from batches
        raise pa.ArrowInvalid("damaged")

    (together,) = joined(batches)
    assert together.column(0).to_pylist() == ["x", "y", "z", "x"]
    numbers = pa.record_batch({"a": pa.array([7])})
    assert [len(batch) for batch in joined([*batches, numbers])] == [2, 1, 1, 1]
    found = joined(damaged())
    assert len(next(found)) == 4
    with pytest.raises(pa.ArrowInvalid, match="damaged"):
        next(found)


def test_a_file_of_which_no_field_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"a": [7, 8, 9]}), "t.arrow")
    found, bad = objects(path, lift_of(":r :v ?_line"))
    assert (found, bad) == ([[integer(1)], [integer(2)], [integer(3)]], [])


def test_the_rest_of_a_torn_stream_is_bad_input(tmp_path: Path) -> None:
    """The rows before are read."""
    path, table = tmp_path / "t.arrows", pa.table({"a": [*range(1000)]})
    with pa.ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=100)
    path.write_bytes(path.read_bytes()[:-500])
    found, bad = objects(path, lift_of(":r :v ?a"))
    assert [row[0] for row in found] == [integer(n) for n in range(900)]
    assert [reason.split(":")[0] for _, reason in bad] == ["the rest of the file is not read"]
