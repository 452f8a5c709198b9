"""Whoever reads names of events sees texts, whatever they are stored as."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from spaseq.rdf.columns.event_batch import NO_NAMES, WHOLE, EventNames, common_form
from tests.rdf.columns.encodings import NAMES

TEXTS = [f"http://example/{number}#it" for number in (7, 8, 8, -3, 900)]


@pytest.fixture(params=NAMES)
def names(request: pytest.FixtureRequest) -> EventNames:
    return NAMES[request.param](EventNames.of(TEXTS))


def test_single_names(names: EventNames) -> None:
    assert len(names) == 5
    assert [names[place] for place in range(5)] == TEXTS
    assert list(names) == TEXTS


def test_all_names(names: EventNames) -> None:
    assert names.texts() == TEXTS
    assert names.strings().to_pylist() == TEXTS
    assert names.strings().type == pa.large_string()


def test_some_names(names: EventNames) -> None:
    assert names[1:4].texts() == TEXTS[1:4]
    assert names.take(slice(3, None)).texts() == TEXTS[3:]
    assert names.read(np.array([4, 0, 4])).texts() == [TEXTS[4], TEXTS[0], TEXTS[4]]
    assert names.take(np.empty(0, np.int64)).texts() == []


def test_names_in_memory_of_their_own(names: EventNames) -> None:
    part = names.apart(1, 2)
    assert part.texts() == TEXTS[1:3]
    assert part.nbytes < names.nbytes


def test_names_one_after_the_other(names: EventNames) -> None:
    for encode in NAMES.values():
        both = [names, encode(EventNames.of(TEXTS))]
        assert EventNames.concat(both).texts() == TEXTS * 2
    assert EventNames.concat([names, EventNames.none(2), NO_NAMES]).texts() == [*TEXTS, None, None]


def test_names_in_a_file(names: EventNames) -> None:
    for form in (names.form, WHOLE):
        schema = pa.schema([form.field])
        batch = pa.RecordBatch.from_arrays([names.to_arrow(form)], schema=schema)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write_batch(batch)
        again = pa.ipc.open_stream(sink.getvalue()).read_next_batch()
        read = EventNames.from_arrow(again.column(0), again.schema.field(0))
        assert (read.texts(), read.form) == (TEXTS, form)


def test_pickled_names(names: EventNames) -> None:
    assert pickle.loads(pickle.dumps(names)).texts() == TEXTS


def test_integers_stay_integers_where_all_are() -> None:
    one, other = (
        EventNames.between("http://e/", pa.array(part, pa.int64()), "#it") for part in ([1], [2, 3])
    )
    assert EventNames.concat([one, other]).form.kind == pa.int64()
    elsewhere = EventNames.between("http://f/", pa.array([1], pa.int64()), "#it")
    assert common_form([one, elsewhere]) == WHOLE
