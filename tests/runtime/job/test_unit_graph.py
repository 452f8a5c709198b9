"""Queries of a run that read each other's registered streams: order, inputs and refusals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from spaseq.algebra.answers import AFTER_ALL, Answer
from spaseq.compile import compile_query
from spaseq.errors import UsageError
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import bind_streams, stream_names
from spaseq.runtime.job.unit_graph import (
    RegisteredStream,
    queries_read,
    reading_order,
)


def query(
    title: str, reads: str, makes: str = "", form: str = "CONSTRUCT { ?s <http://e/p> ?o }"
) -> QueryPlan:
    """A query that reads `http://e/X` for each letter X, with that name, and registers a stream."""
    register = f"REGISTER STREAM <http://e/{makes}> AS" if makes else ""
    streams = " ".join(f"FROM STREAM {x} <http://e/{x}>" for x in reads)
    return compile_query(
        f"{register} {form} WITHIN 1 SECONDS {streams} "
        f"{{ SEQ(G) DEFINE GPM G ON {', '.join(reads)} {{ ?s ?p ?o }} }}",
        title,
    )


def titles(plans: Sequence[QueryPlan]) -> str:
    return " ".join(plan.identity.title for plan in plans)


def test_what_is_read_comes_first() -> None:
    three, two, one = query("three", "RBC"), query("two", "B", "C"), query("one", "R", "B")
    assert titles(reading_order([three, two, one])) == "one two three"


def test_queries_that_read_nothing_of_each_other_keep_their_order() -> None:
    plans = [query("b", "R"), query("reader", "X"), query("a", "R"), query("maker", "R", "X")]
    assert titles(reading_order(plans)) == "b a maker reader"
    assert titles(reading_order([plans[0], plans[2]])) == "b a"


def test_what_queries_read() -> None:
    plans = reading_order(
        [query("last", "BCR"), query("c", "B", "C"), query("b", "R", "B"), query("alone", "R")]
    )
    assert titles(plans) == "b c last alone"
    assert queries_read(plans) == [frozenset(), {0}, {0, 1}, frozenset()]


def test_a_circle_is_refused_with_the_names_of_its_queries() -> None:
    plans = [query("x", "RC", "A"), query("y", "A", "B"), query("z", "B", "C"), query("w", "A")]
    with pytest.raises(UsageError) as error:
        reading_order(plans)
    assert str(error.value) == (
        "queries read each other's streams in a circle: x reads <http://e/C> of z, "
        "z reads <http://e/B> of y, y reads <http://e/A> of x"
    )


def test_a_query_that_waits_for_a_circle_is_not_blamed() -> None:
    plans = [query("outside", "A"), query("x", "B", "A"), query("y", "A", "B")]
    with pytest.raises(UsageError, match="in a circle") as error:
        reading_order(plans)
    assert "outside" not in str(error.value)


def test_two_queries_cannot_register_one_stream() -> None:
    with pytest.raises(UsageError, match="stream <http://e/A>: x and y"):
        reading_order([query("x", "R", "A"), query("y", "R", "A")])


def test_the_answers_of_a_select_query_are_no_events() -> None:
    maker = query("maker", "R", "A", form="SELECT *")
    reading_order([maker, query("other", "R")])
    with pytest.raises(
        UsageError, match=r"reads the stream <http://e/A> of query maker.*CONSTRUCT"
    ):
        reading_order([query("reader", "A"), maker])


def test_a_registered_stream_takes_no_input() -> None:
    plans = [query("maker", "R", "A"), query("reader", "A")]
    assert bind_streams(plans, {"R": 1}) == {"http://e/R": 1}
    for name in ("A", "http://e/A"):
        with pytest.raises(UsageError, match="takes no input: query maker of this run registers"):
            bind_streams(plans, {"R": 1, name: 2})


def test_inputs_come_in_the_order_of_the_queries() -> None:
    """The order of arguments is irrelevant: a resumed run must number its streams as before."""
    plans = [query("one", "AB"), query("two", "BC")]
    given = {"http://e/C": 3, "B": 2, "A": 1}
    assert list(bind_streams(plans, given)) == ["http://e/A", "http://e/B", "http://e/C"]


def test_a_stream_without_input_is_told_with_the_registered_ones() -> None:
    with pytest.raises(UsageError) as error:
        bind_streams([query("maker", "R", "A"), query("reader", "B")], {"R": 1})
    assert str(error.value) == (
        "no input for stream B <http://e/B>: give --stream B=PATH, in Python streams={'B': PATH} "
        "(streams that queries of this run register: <http://e/A>)"
    )


def test_of_many_registered_streams_the_nearest_is_told() -> None:
    makers = [query(f"maker{n}", "R", f"Made{n}") for n in range(20)]
    with pytest.raises(UsageError) as error:
        bind_streams([*makers, query("reader", "M")], {"R": 1})
    assert "register 20 streams, such as <http://e/Made" in str(error.value)


def test_a_name_that_one_query_has_for_a_registered_stream_is_free_in_another() -> None:
    reader = compile_query(
        "SELECT * WITHIN 1 SECONDS FROM STREAM R <http://e/A> "
        "{ SEQ(G) DEFINE GPM G ON R { ?s ?p ?o } }"
    )
    plans = [query("maker", "R", "A"), reader]
    assert stream_names(plans) == {"R": "http://e/R", "http://e/R": "http://e/R"}
    assert bind_streams(plans, {"R": 1}) == {"http://e/R": 1}


def test_ties_are_numbered_by_the_order_of_answers() -> None:
    def answer(number: int, time: int, k: int) -> Answer:
        graph = ((f"<http://e/{number}>", "<http://e/p>", '"x"'),)
        return Answer((0, 0), (time, k), (), (), graph=graph, event=f"urn:{number}")

    stream = RegisteredStream("http://e/A")
    one = stream.events([answer(1, 5, 0), answer(2, 5, 3), answer(3, 7, 0)])
    two = stream.events([answer(4, 7, 0), answer(5, 7, AFTER_ALL), answer(6, 9, 0)])
    assert (one.stream, [*one.graph]) == ("http://e/A", ["urn:1", "urn:2", "urn:3"])
    assert [*one.time, *two.time] == [5, 5, 7, 7, 7, 9]
    assert [*one.k, *two.k] == [0, 1, 0, 1, 2, 0]
    assert [one.terms[s] for s in one.s] == [f"<http://e/{n}>" for n in (1, 2, 3)]
