"""N-Triples texts of a program give the same events in large batches as one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import InputError
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import TextEvents, batch_from_events, triples_of
from tests.rdf.streams import STREAM, events_of

LINES = [
    '<http://e/s> <http://e/p> "1" .',
    "<http://e/s> <http://e/q> _:b .",
    r'_:b <http://e/p> "\u00e9\t"@EN-gb . # why',
    '<http://e/s> <http://e/r> "é"^^<http://www.w3.org/2001/XMLSchema#string> .',
    "# nothing",
    "  ",
]
BAD = [
    f"{LINES[0]} {LINES[1]}",
    "<http://e/s> <http://e/p> .",
    '<http://e/s> <p> "1" .',
    "<http://e/s>",
]

texts = st.builds(
    lambda lines, end, last: end.join(lines) + last,
    st.lists(st.sampled_from(LINES), max_size=5),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.sampled_from(["", "\n"]),
)
events = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([None, "http://e/g"]), texts), min_size=1
).map(lambda given: sorted(given, key=lambda event: event[0]))


@given(events, st.sampled_from([None, ("http://e/p",), ()]))
@settings(max_examples=200, deadline=None)
def test_many_texts_are_like_each_by_itself(given, predicates):
    one_by_one = [(time, name, triples_of(text)) for time, name, text in given]
    kept = [
        (time, name, [t for t in triples if predicates is None or t[1][1:-1] in predicates])
        for time, name, triples in one_by_one
    ]
    reader = TextEvents(STREAM, InstantCounter(), predicates)
    batch = reader.batch(given)
    expected = batch_from_events(STREAM, kept, InstantCounter())
    assert list(events_of(iter([batch]))) == list(events_of(iter([expected])))
    assert reader.batch([(9, None, LINES[0])]).k.tolist() == [0]


@pytest.mark.parametrize("bad", [*BAD, "\ud800"])
def test_what_is_no_graph(bad: str) -> None:
    reader = TextEvents(STREAM, InstantCounter(), None)
    with pytest.raises(InputError, match="not a graph"):
        reader.batch([(0, None, LINES[0]), (1, None, bad), (2, None, LINES[1])])
    assert len(reader.batch([(0, None, LINES[0])])) == 1
