"""`Engine` with several queries, query files, parsed queries, and as a context manager."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import spaseq
from spaseq import Engine, Event
from spaseq.errors import BadEvents, UsageError

EX = "http://example/"
HOT = f"""PREFIX : <{EX}>
REGISTER STREAM <{EX}hot> AS CONSTRUCT {{ ?x :is "hot" }}
WITHIN 1 MINUTES FROM STREAM S <{EX}s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :temperature ?t FILTER (?t > 50) }} }}"""
TWICE = f"""PREFIX : <{EX}>
SELECT ?x WITHIN 1 MINUTES FROM STREAM Hot <{EX}hot>
WHERE {{ SEQ(A; B) DEFINE GPM A ON Hot {{ ?x :is "hot" }}
  DEFINE GPM B ON Hot {{ ?x :is "hot" }} }}"""
PLAIN = f"""PREFIX : <{EX}>
SELECT ?x ?t WITHIN 1 MINUTES FROM STREAM S <{EX}s>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x :temperature ?t }} }}"""


def reading(value: int) -> str:
    return f'<{EX}pan> <{EX}temperature> "{value}"^^<http://www.w3.org/2001/XMLSchema#integer> .'


VALUES = [60, 40, 70, 80, 20, 90]


def replayed() -> list[dict[str, object]]:
    events = [Event(reading(v), 1000 * i) for i, v in enumerate(VALUES)]
    found = spaseq.run([TWICE, HOT, PLAIN], {"S": events}, runtime="local")
    return [m.to_json() for m in found]


@pytest.mark.parametrize("many", [False, True])
def test_queries_read_what_others_register(many: bool) -> None:
    engine = Engine([TWICE, HOT, PLAIN])
    pairs = [("S", Event(reading(v), 1000 * i)) for i, v in enumerate(VALUES)]
    if many:
        found = engine.push_many(pairs)
    else:
        found = [m for stream, e in pairs for m in engine.push(stream, e.graph, e.time)]
    found += engine.close()
    names = ["query1", f"{EX}hot", "query3"]
    assert {m.query for m in found} == set(names)
    key = names.index
    expected = sorted(replayed(), key=lambda m: key(str(m["query"])))
    assert [m.to_json() for name in names for m in found if m.query == name] == expected


def test_a_query_file_and_a_parsed_query(tmp_path: Path) -> None:
    file = tmp_path / "warm.rq"
    file.write_text(PLAIN)
    for query, name in ((file, "warm"), (spaseq.parse(PLAIN), "query"), (PLAIN, "query")):
        engine = Engine(query)
        engine.push("S", reading(1), "1970-01-01T00:00:01Z")
        (match,) = engine.close()
        assert (match.query, match.bindings["t"].to_python()) == (name, 1)
    (match,) = spaseq.run(spaseq.parse(PLAIN), {"S": [Event(reading(1), 0)]}, runtime="local")
    assert match.query == "query"
    renamed = Engine(PLAIN, name="kitchen")
    renamed.push("S", reading(1), 0)
    assert [m.query for m in renamed.close()] == ["kitchen"]
    with pytest.raises(UsageError, match="single query"):
        Engine([PLAIN, HOT], name="kitchen")


@pytest.mark.parametrize("text", ["slower.rq", "queries/no such file.sparql", "README.md"])
def test_a_text_that_looks_like_a_path(text: str) -> None:
    with pytest.raises(UsageError, match=r"looks like a path: say pathlib\.Path\("):
        Engine(text)
    with pytest.raises(UsageError, match="looks like a path"):
        spaseq.run(text, {})


@pytest.mark.parametrize("given", ["bars.nq", ["bars.nq"], Path("bars.nq")])
def test_inputs_without_names(given: Any) -> None:
    shown = re.escape(repr(given))
    with pytest.raises(UsageError, match=rf"inputs by name: streams=\{{'S': {shown}\}}"):
        spaseq.run(PLAIN, given, runtime="local")
    with pytest.raises(UsageError, match=rf"inputs by name: kb=\{{'NAME': {shown}\}}"):
        spaseq.run(PLAIN, {"S": []}, kb=given, runtime="local")


def test_what_is_no_query() -> None:
    with pytest.raises(UsageError, match="not int"):
        spaseq.run([3], {})  # type: ignore[list-item]


def test_a_block_closes_the_engine() -> None:
    with Engine(PLAIN) as engine:
        engine.push("S", reading(1), 0)
        assert len(engine.close()) == 1
    with pytest.raises(UsageError, match="closed"):
        engine.push("S", reading(1), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError), Engine(PLAIN) as engine:
            engine.push("S", reading(1), 0)
            raise ZeroDivisionError


def test_a_block_says_which_answers_nobody_took() -> None:
    with pytest.warns(RuntimeWarning, match=r"1 answers came"), Engine(PLAIN) as e:
        e.push("S", reading(1), 0)


def test_times_of_several_libraries() -> None:
    engine = Engine(PLAIN)
    for time in ("1970-01-01T00:00:01Z", np.datetime64(2000, "ms"), pd.Timestamp(3, unit="s")):
        engine.push("S", reading(1), time)
    assert [m.end.second for m in engine.advance(np.datetime64(3, "s"))] == [3]
    with pytest.raises(UsageError, match=r"float.*seconds"):
        engine.push("S", reading(1), 4.5)  # type: ignore[arg-type]
    with pytest.raises(BadEvents) as refused:
        engine.push_many([("S", Event(reading(1), 4000)), ("S", Event(reading(1), 4.5))])  # type: ignore[arg-type]
    assert [place for place, _ in refused.value.bad] == [1]
    assert [m.end.second for m in engine.close()] == [4]


def test_a_short_repr() -> None:
    assert repr(Engine(PLAIN)) == f"<Engine of query: streams S, {EX}s>"
