"""The Python API: `run`, `Engine`, matches and terms."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import rdflib

import spaseq
from spaseq import Engine, Event
from spaseq.errors import InputError, QueryError, UsageError
from tests.language.test_tables import RUNTIMES

EX = "http://example/"
QUERY = f"""PREFIX : <{EX}>
SELECT ?s ?p1 ?p2 ?owner WITHIN 1 MINUTES
FROM STREAM S1 <{EX}s1> FROM STREAM S2 <{EX}s2> FROM NAMED <{EX}kb>
WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S1 {{ ?s :price ?p1 GRAPH <{EX}kb> {{ ?s :owner ?owner }} }}
  DEFINE GPM B ON S2 {{ ?s :price ?p2 FILTER(?p2 < ?p1) }}
}}"""


def price(value: int) -> str:
    return f'<{EX}m> <{EX}price> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> .'


def graph(value: int) -> rdflib.Graph:
    return rdflib.Graph().parse(data=price(value), format="nt")


KB = rdflib.Graph().parse(data=f'<{EX}m> <{EX}owner> "Ada" .', format="nt")

STREAMS = {
    "S1": [Event(graph(14), datetime(2020, 1, 1, tzinfo=UTC), f"{EX}e1")],
    f"{EX}s2": [
        Event(price(16), 1577836801000),
        Event([(f"<{EX}m>", f"<{EX}price>", price(12).split(" ")[2])], 1577836802000, f"{EX}e3"),
    ],
}


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_events_of_the_program(runtime: str) -> None:
    (match,) = spaseq.run(QUERY, STREAMS, {f"{EX}kb": KB}, runtime=runtime)
    assert list(match.bindings) == ["s", "p1", "p2", "owner"]
    assert match.bindings["owner"].to_rdflib() == rdflib.Literal("Ada")
    assert match.bindings["s"].n3() == f"<{EX}m>"
    assert match.bindings["p2"].to_python() == 12
    assert (match.start, match.end) == (
        datetime(2020, 1, 1, tzinfo=UTC),
        datetime(2020, 1, 1, 0, 0, 2, tzinfo=UTC),
    )
    assert [(t.gpm, t.stream, t.event, t.time) for t in match.trace] == [
        ("A", f"{EX}s1", f"{EX}e1", match.start),
        ("B", f"{EX}s2", f"{EX}e3", match.end),
    ]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_files_and_several_queries(runtime: str, tmp_path: Path) -> None:
    lines = [
        f"{price(v)[:-1]} <{EX}e{v}> .\n<{EX}e{v}> <http://www.w3.org/ns/prov#generatedAtTime> "
        f'"{t}"^^<http://www.w3.org/2001/XMLSchema#long> .\n'
        for t, v in ((1000, 14), (2000, 12))
    ]
    (tmp_path / "s1.nq").write_text(lines[0])
    (tmp_path / "s2.nq").write_text(lines[1])
    (tmp_path / "kb.ttl").write_text(f'<{EX}m> <{EX}owner> "Ada" .')
    query = tmp_path / "falling.rq"
    query.write_text(QUERY)
    streams = {"S1": tmp_path / "s1.nq", "S2": [tmp_path / "s2.nq"]}
    rising = QUERY.replace("?p2 < ?p1", "?p2 > ?p1")
    kb = {f"{EX}kb": tmp_path / "kb.ttl"}
    matches = list(spaseq.run([query, rising], streams, kb, runtime=runtime))
    assert [m.query for m in matches] == ["falling"]


def test_errors_come_with_the_call_not_later() -> None:
    with pytest.raises(QueryError) as error:
        spaseq.run("SELECT ?s WHERE { SEQ(A) }", {})
    assert len(error.value.diagnostics) >= 2
    with pytest.raises(UsageError, match="S2"):
        spaseq.run(QUERY, {"S1": []}, {f"{EX}kb": KB})
    with pytest.raises(InputError, match="kb"):
        spaseq.run(QUERY, STREAMS, {})
    with pytest.raises(InputError, match=r"missing\.nq"):
        next(spaseq.run(QUERY, {"S1": "missing.nq", "S2": []}, {f"{EX}kb": KB}, "local"))


def test_parse_and_explain() -> None:
    assert [g.name for g in spaseq.parse(QUERY).gpms] == ["A", "B"]
    assert "# automaton" in str(spaseq.explain(QUERY))


# --- Engine -----------------------------------------------------------------------------------


def engine() -> Engine:
    return Engine(QUERY, kb={f"{EX}kb": KB})


def test_answers_are_returned_when_they_are_certain() -> None:
    live = engine()
    assert live.push("S1", graph(14), 1000) == []
    assert live.push("S2", price(12), 2000) == []  # more events with that time may follow
    (match,) = live.push("S2", price(10), 3000)
    assert match.bindings["p2"].to_python() == 12
    assert live.close() == []


def test_advance_and_close() -> None:
    live = engine()
    live.push("S1", graph(14), 1000)
    live.push(f"{EX}s2", price(12), datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
    assert live.advance(1999) == []
    assert len(live.advance(2000)) == 1
    assert live.advance(2000) == []
    live.close()
    with pytest.raises(UsageError):
        live.push("S1", graph(14), 3000)


def test_push_many_is_like_many_pushes() -> None:
    events = [
        ("S1", Event(price(14), 1000)),
        ("S1", Event(price(20), 1000)),
        ("S2", Event(price(12), 1000)),
        ("S2", Event(price(13), 2000)),
        ("S2", Event(price(1), 3000)),
    ]
    one, many = engine(), engine()
    pushed = [m for s, e in events for m in one.push(s, e.graph, e.time)] + one.close()
    batch = many.push_many(events) + many.close()
    assert [m.to_json() for m in pushed] == [m.to_json() for m in batch]
    # The event at 1 s of S2 has the instant of the first of S1: it comes after none.
    assert [m.bindings["p2"].to_python() for m in batch] == [13, 13]


@pytest.mark.parametrize("form", [price, graph])
def test_many_events_at_once(form) -> None:
    """There are enough events for the kernel to parse the texts."""
    events = [
        ("S2" if i % 3 else "S1", Event(form(100 + i % 7 - i), 1000 * (i // 2), f"{EX}e{i}"))
        for i in range(60)
    ]
    one, many = engine(), engine()
    pushed = [m for s, e in events for m in one.push_many([(s, e)])] + one.close()
    batch = many.push_many(events[:50]) + many.push_many(events[50:]) + many.close()
    assert len(batch) > 5
    assert [m.to_json() for m in pushed] == [m.to_json() for m in batch]


def test_time_does_not_go_back() -> None:
    live = engine()
    live.push("S1", graph(14), 2000)
    live.push("S2", graph(14), 2000)
    with pytest.raises(UsageError, match="goes back"):
        live.push("S2", graph(12), 1999)
    live.advance(5000)
    with pytest.raises(UsageError, match="goes back"):
        live.push("S2", graph(12), 5000)


def test_an_unknown_stream_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="S1, S2"):
        engine().push("S3", graph(1), 0)


KEYED = f"""PREFIX : <{EX}>
SELECT {{form}} WITHIN 1 MINUTES {{partition}} FROM STREAM S <{EX}s>
WHERE {{{{
  SEQ(A: B)
  DEFINE GPM A ON S {{{{ ?x :a ?v }}}}
  DEFINE GPM B ON S {{{{ ?x :b ?w }}}}
}}}}"""
"""Every match has one ?x, so stage 2 can be split by it."""


def crowd(predicate: str, time: int) -> Event:
    """One event about eight things, which have the same value."""
    return Event("".join(f'<{EX}{i}> <{EX}{predicate}> "7" .\n' for i in range(8)), time)


@pytest.mark.parametrize("partition", ["", "PARTITION BY (?x)"])
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_distinct_answers_of_one_end_whatever_their_keys(runtime: str, partition: str) -> None:
    query = KEYED.format(form="DISTINCT ?w", partition=partition)
    streams = {"S": [crowd("a", 0), crowd("b", 1000), crowd("b", 2000)]}
    found = [*spaseq.run(query, streams, runtime=runtime)]
    assert [m.end.second for m in found] == [1, 2]


MANY = f"""PREFIX : <{EX}>
SELECT * WITHIN 2 MINUTES FROM STREAM S <{EX}s>
WHERE {{
  SEQ(A: B+: C)
  DEFINE GPM A ON S {{ ?a :is "A" }}
  DEFINE GPM B ON S {{ ?b :is "B" }}
  DEFINE GPM C ON S {{ ?c :is "C" }}
}}"""
"""Every non-empty set of the Bs between an A and a C is a match."""


def lettered(letters: str) -> list[Event]:
    return [Event(f'<{EX}{i}> <{EX}is> "{letter}" .', 1000 * i) for i, letter in enumerate(letters)]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_limit_per_event(runtime: str) -> None:
    """The first C ends 2^5 - 1 matches, and the second C ends as many."""
    stats = spaseq.Stats()
    streams = {"S": lettered("ABBBBBCC")}
    found = list(spaseq.run(MANY, streams, runtime=runtime, stats=stats, limit_per_event=4))
    assert [m.end.second for m in found] == [6] * 4 + [7] * 4
    assert (stats.matches, stats.suppressed) == (8, 2 * (2**5 - 1) - 8)
    everything = {str(m.to_json()) for m in spaseq.run(MANY, streams, runtime="local")}
    assert len(everything) == 62
    assert {str(m.to_json()) for m in found} < everything


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("threads", 0, "threads is 0; it must be a whole number of at least 1"),
        ("threads", "2", "threads is '2'; it must"),
        ("triples_per_event", 0, "triples_per_event is 0; it must"),
        ("limit_per_event", 1.5, "limit_per_event is 1.5; it must"),
        ("on_bad", 5, "on_bad is 5; it must be a function"),
        ("on_partial", [], r"on_partial is \[\]; it must be a function"),
        ("stats", {}, "stats is {}; it must be a spaseq.Stats"),
    ],
)
def test_an_option_of_another_kind_is_refused(
    runtime: str, option: str, value: Any, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        spaseq.run(MANY, {"S": lettered("ABC")}, runtime=runtime, **{option: value})


def test_an_engine_needs_a_function_for_bad_events() -> None:
    with pytest.raises(UsageError, match="on_bad is 5; it must be a function"):
        Engine(MANY, on_bad=5)  # type: ignore[arg-type]


def test_an_engine_with_a_limit_per_event() -> None:
    live = Engine(MANY, limit_per_event=3)
    pushed = [m for e in lettered("ABBBC") for m in live.push("S", e.graph, e.time)]
    assert pushed == []
    assert len(live.close()) == 3
    assert live.suppressed == 2**3 - 1 - 3


def test_a_limit_per_event_where_each_key_is_strict() -> None:
    """Events of another key do not stand between those of one."""
    text = f"""PREFIX : <{EX}> SELECT ?a ?b WITHIN 2 MINUTES PARTITION BY (?k) FROM STREAM S <{EX}s>
    WHERE {{ SEQ(A, B) DEFINE GPM A ON S {{ ?a :is "A" ; :k ?k }}
             DEFINE GPM B ON S {{ ?b :is "B" ; :k ?k }} }}"""

    def event(i: int, letter: str, key: int) -> str:
        return f'<{EX}{i}> <{EX}is> "{letter}" .\n<{EX}{i}> <{EX}k> "{key}" .'

    live = Engine(text, limit_per_event=1)
    found = []
    for i, given in enumerate([("A", 1), ("A", 2), ("B", 1), ("B", 2)]):
        found += live.push("S", event(i, *given), 1000 * i)
    found += live.close()
    assert [tuple(str(m.bindings[v]) for v in "ab") for m in found] == [
        (f"<{EX}0>", f"<{EX}2>"),
        (f"<{EX}1>", f"<{EX}3>"),
    ]
    assert live.suppressed == 0


def test_a_limit_of_none_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        Engine(MANY, limit_per_event=0)
    with pytest.raises(UsageError, match="at least 1"):
        spaseq.run(MANY, {"S": []}, limit_per_event=0)


@pytest.mark.parametrize("query", [None, 5, b"SELECT"], ids=repr)
def test_what_is_no_query(query: Any) -> None:
    with pytest.raises(UsageError, match=f"a query is text, .* not {type(query).__name__}"):
        spaseq.run(query, {})


def test_no_query_is_given() -> None:
    with pytest.raises(UsageError, match="no query is given"):
        spaseq.run([], {"S": []})


def test_a_stream_has_one_input() -> None:
    query = """SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
        WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/v> ?v } }"""
    with pytest.raises(UsageError, match="stream <http://e/s> has two inputs"):
        spaseq.run(query, {"S": [], "http://e/s": []})
    events = [Event('<http://e/x> <http://e/v> "1" .', 0)]
    assert len([*spaseq.run("\ufeff" + query, {"S": events}, runtime="local")]) == 1
