"""Answers that are written as columns are written like answers that are written one by one."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answer_blocks import answers_of, blocks
from spaseq.algebra.answers import Answer, extent_text
from spaseq.algebra.joined_texts import PlacedTexts, joined, joined_where_bound
from spaseq.compile import CompileOptions, compile_query
from spaseq.plan.query_plan import EvaluatorName, QueryPlan
from spaseq.rdf.columns.event_batch import EventNames
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.rdf.columns.term_columns import TermColumn, text_array
from spaseq.rdf.terms.term import CDT_LIST, XSD
from spaseq.rdf.terms.times import format_time
from spaseq.sinks import FORMATS, SINKS, arrow_files, open_sink
from spaseq.sinks.answer_columns import AnswerColumns
from spaseq.sinks.answer_json import answer_json, term_json
from spaseq.sinks.base import open_lines
from spaseq.sinks.table_sink import TableSink, csv_syntax, csv_term
from spaseq.sinks.text_columns import (
    JSON_SYNTAX,
    encoded,
    json_lines,
    time_texts,
)
from spaseq.sinks.typed_columns import ColumnType, value_of
from spaseq.stages.sequence import SequenceStage
from spaseq.stages.sorting import RowSorter
from tests.automaton.cases import Event, Values, batch, query
from tests.rdf.columns.encodings import PAIRS
from tests.rdf.columns.encodings import encoded as rows_encoded
from tests.sizes import sizes
from tests.thresholds import forced

NUMBERS = ["5", "05", "-0", "+7", "5.", ".5", "1e3", "-2.5E-07", "INF", "-INF", "NaN", "9" * 30]
NUMBERS += ["1e400", "00", "999999999999999999", "1000000000000000000", " 5 ", "x", ""]
TYPES = ["integer", "decimal", "double", "float", "int", "boolean", "dateTime", "date", "string"]
TERMS = [
    "<http://e/é>",
    "<http://e/a,b>",
    "<urn:x>",
    "_:b1",
    '""',
    '"a, \\"b\\"\\tc\\n"',
    '"a\\\\"',
    '"tab\there"',
    '"\u0085\u2028é😀\x7f"',
    '"\\u0001"',
    '"chat"@fr',
    '"@"@en-GB',
    '"\\"^^<http://e/t>"',
    '"x"^^<http://e/t>',
    '"x,y"^^<http://e/,t>',
    f'"[1, \\"a\\", null]"^^<{CDT_LIST}>',
    f'"broken"^^<{CDT_LIST}>',
    '<<( <http://e/s> <http://e/p> "o" )>>',
    '"true"^^<http://www.w3.org/2001/XMLSchema#boolean>',
    '"2014-08-01T07:50:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
    *(f'"{n}"^^<{XSD}{t}>' for t in TYPES for n in NUMBERS),
]
GPMS = {"A": "?a :x ?x ; :v ?v . OPTIONAL { ?a :n ?n }", "B": "?b :y ?y ; :x ?x", "C": "?c :z ?z"}
FREE = GPMS | {"B": "?b :y ?y"}
SMALLER = GPMS | {"B": "?b :y ?y ; :w ?w FILTER (?w > ?v)"}
QUERIES = {
    "compiled-chain": (query("A: B", GPMS, select="?n ?x ?y ?n"),),
    "compiled-compact": (
        query("A; B+; C", FREE, "6 SECONDS", select="?y ?n ?z ?a"),
        query("(A & B): C", FREE, "4 SECONDS"),
        query("B+", GPMS, "3 SECONDS", select="?x ?y"),
        query("B?: C", GPMS, "4 SECONDS"),
        query("A, C", GPMS, select="STRICT ?n ?none ?c"),
    ),
    "compiled-registers": (
        query("A; B; C", SMALLER, "7 SECONDS", select="?z ?y ?n"),
        query("A; B+; C", SMALLER, "7 SECONDS", select="?z ?y ?n"),
        query("C!; A: B", SMALLER, "7 SECONDS"),
    ),
}


def stream(number: int) -> list[Event]:
    """Events of two streams, two at each instant, with solutions of A, B and C."""
    random, events = Random(number), list[Event]()
    for i in range(40):
        found: dict[str, list[Values]] = {}
        x = f"<http://e/x{random.randrange(3)}>"
        v, w = (f'"{random.randrange(9)}"^^<{XSD}integer>' for _ in "vw")
        if random.random() < 0.6:
            ns = [random.choice([None, *TERMS]) for _ in range(random.choice([1, 1, 2]))]
            found["A"] = [{"a": f"_:a{i}", "x": x, "v": v, "n": n} for n in ns]
        if random.random() < 0.5:
            found["B"] = [{"b": f"<urn:{i}>", "y": random.choice(TERMS), "x": x, "w": w}]
        if random.random() < 0.4:
            found["C"] = [{"c": random.choice(TERMS), "z": random.choice(TERMS)}]
        events.append(Event(-5000 + i // 2 * 500, 0, i % 2, found))
    return events


def found_by(plan: QueryPlan, events: Sequence[Event], few: int) -> list[Sequence[Answer]]:
    """The answers of two batches; as columns if they are not few."""
    stage, found = SequenceStage(plan), list[Sequence[Answer]]()
    with forced(f"columnar_matches={few}"):
        for some in (events[:25], events[25:]):
            stage.push(batch(plan, some))
            found.append(stage.advance(some[-1].time - 1))
        found.append(stage.close())
    return found


def written(form: str, batches: Sequence[Sequence[Answer]], path: Path, plan: QueryPlan) -> bytes:
    columns = [item.name for item in plan.answers.projection] + ["none"]
    if issubclass(SINKS[form], TableSink):
        columns += ["+start", "+end"]
    with open_lines(str(path)) as out, open_sink(form, out, columns) as sink:
        for answers in batches:
            sink.write_all('a "query"', answers)
    if form == "arrow":  # its bytes say which columns might have had null
        table = feather.read_table(path)
        return f"{table.schema} {table.to_pylist()}".encode()
    return path.read_bytes()


@pytest.mark.parametrize(
    ("evaluator", "text"), [(name, text) for name, texts in QUERIES.items() for text in texts]
)
@sizes(1, 6)
def test_all_formats(
    evaluator: EvaluatorName,
    text: str,
    examples: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arrow_files, "_ROWS", 7)
    plan = compile_query(text, options=CompileOptions(evaluator=evaluator))
    made = 0
    for number in range(examples):
        events = stream(number)
        singly, columns = found_by(plan, events, 10**9), found_by(plan, events, 1)
        assert any(isinstance(answers, AnswerBatch) for answers in columns)
        assert [[*answers] for answers in columns] == singly
        made += sum(map(len, singly))
        for form in FORMATS:
            if SINKS[form].holds == "graphs":
                continue
            both = [written(form, found, tmp_path / form, plan) for found in (singly, columns)]
            assert both[0] == both[1], form
    assert made > 15 * examples


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.sampled_from(["http://e/a", "http://e/é", "urn:x"]),
            st.builds(extent_text, st.integers(-(10**13), 10**13), st.integers(0, 10**6)),
        ),
        min_size=5,
        max_size=5,
    )
)
def test_names_of_graphs_beside_extents_of_windows(names: list[str | None]) -> None:
    _, _, columns = numbered()
    rows = columns.rows
    own = EventNames.of([names[number % 5] for number in range(len(rows))])
    answers = replace(columns, rows=replace(rows, event=own))
    lines = json_lines("q", answers).to_pylist()
    assert lines == [answer_json("q", answer) + "\n" for answer in answers]
    singly, made = AnswerColumns(["n"]), AnswerColumns(["n"])
    assert (
        made.raw_of("q", answers).to_pylist()
        == singly.raw([("q", answer) for answer in answers]).to_pylist()
    )


def in_encodings(answers: AnswerBatch, names: str, terms: str) -> AnswerBatch:
    """The same answers over rows in some encodings."""
    rows = answers.rows
    return replace(answers, rows=rows_encoded(rows, names, terms))


@cache
def numbered() -> tuple[QueryPlan, list[Answer], AnswerBatch]:
    """A plan, and its answers on events that have the names `http://example/NUMBER#it`."""
    plan = compile_query(query("A: B", GPMS, select="?n ?x ?v ?y"))
    events = stream(1)
    stage = SequenceStage(plan)
    rows = batch(plan, events)
    own = EventNames.of([f"http://example/{t}#it" for t in rows.time.tolist()])
    stage.push(replace(rows, event=own))
    with forced("columnar_matches=1"):
        answers = stage.close()
    assert isinstance(answers, AnswerBatch) and len(answers) > 10
    for answer in answers:
        assert all(item.event == f"http://example/{item.time}#it" for item in answer.trace)
    return plan, [*answers], answers


@pytest.mark.parametrize(("names", "terms"), PAIRS)
def test_every_reader_of_every_encoding(names: str, terms: str, tmp_path: Path) -> None:
    plan, singly, columns = numbered()
    answers = in_encodings(columns, names, terms)
    assert [*answers] == singly
    assert [*AnswerBatch.concat([answers, columns])] == singly * 2
    assert [answer for part in answers.parts(4) for answer in part] == singly
    sent = [answer for _, block in blocks(answers) for answer in answers_of(block)]
    assert sent == singly
    assert [*pickle.loads(pickle.dumps(answers))] == singly
    for form in FORMATS:
        if SINKS[form].holds != "graphs":
            both = [written(form, [found], tmp_path / form, plan) for found in (singly, answers)]
            assert both[0] == both[1], form


@pytest.mark.parametrize(("names", "terms"), PAIRS)
def test_every_store_of_every_encoding(names: str, terms: str, tmp_path: Path) -> None:
    plan = numbered()[0]
    columns = plan.patterns.columns
    whole = replace(
        rows := batch(plan, stream(2)),
        event=EventNames.of([f"http://example/{t}#it" for t in rows.time.tolist()]),
    )

    def seen(rows: SolutionBatch) -> list[object]:
        return [rows.time.tolist(), rows.event.texts(), *map(rows.texts, columns.variables)]

    given = rows_encoded(whole, names, terms)
    assert seen(given) == seen(whole)
    assert seen(SolutionCodec(columns).decode(SolutionCodec(columns).encode(given))) == seen(whole)
    assert seen(pickle.loads(pickle.dumps(given))) == seen(whole)
    assert seen(given.compact()) == seen(whole)
    sorter = RowSorter(columns, memory_rows=3)
    for first in range(0, len(given), 5):
        sorter.add(given.take(slice(first, first + 5)))
    parts = [part for part, _ in sorter.batches()]
    assert seen(SolutionBatch.concat(parts, columns)) == seen(whole)
    stage = SequenceStage(plan)
    stage.push(given)
    stage.advance(-2000)
    again = SequenceStage(plan)
    again.restore(stage.snapshot())
    assert [*again.close()] == [*stage.close()] != []


def test_parts_and_single_answers() -> None:
    plan = compile_query(QUERIES["compiled-chain"][0])
    answers = found_by(plan, stream(1), 1)[-1]
    everything = [*answers]
    assert isinstance(answers, AnswerBatch) and len(answers) == len(everything) > 10
    assert [answers[i] for i in range(-3, 3)] == everything[-3:] + everything[:3]
    assert answers[5:1:-2] == everything[5:1:-2]
    assert [a for part in answers.parts(4) for a in part] == everything
    assert everything[:0] + answers == everything
    with pytest.raises(IndexError):
        answers[len(answers)]


@given(st.lists(st.sampled_from(TERMS), min_size=17, max_size=60))
def test_terms(terms: list[str]) -> None:
    column = text_array(terms)
    assert JSON_SYNTAX.of_terms(column).to_pylist() == [*map(term_json, terms)]
    assert csv_syntax().of_terms(column).to_pylist() == [*map(csv_term, terms)]


@given(
    st.lists(st.sampled_from(TERMS[-len(TYPES) * len(NUMBERS) :]), min_size=1, max_size=9),
    st.booleans(),
)
def test_types_of_columns(terms: list[str], one_datatype: bool) -> None:
    if one_datatype:
        ending = terms[0][terms[0].rindex('"') :]
        terms = [term[: term.rindex('"')] + ending for term in terms]
    singly, column = ColumnType(), ColumnType()
    singly.see(terms)
    column.see_column(TermColumn.of([None, *terms]))
    assert singly.arrow == column.arrow
    expected = pa.array([None] + [value_of(singly.arrow)(t) for t in terms], singly.arrow)
    found = column.column(pa.array([None, *terms]))
    assert (str(found.to_pylist()), found.type) == (str(expected.to_pylist()), expected.type)


@given(st.lists(st.integers(-(2**45), 2**47), max_size=9), st.sampled_from([1, 7, 1000]))
def test_times(times: list[int], step: int) -> None:
    times = [time // step * step for time in times]
    expected = [format_time(time) for time in times]
    assert time_texts(np.array(times, np.int64)).to_pylist() == expected


def test_fields_that_are_all_unbound() -> None:
    rows = ["a", None, None, "d"], [None, None, "b", "e"]
    fields = [
        (lead, PlacedTexts.of(TermColumn.of(own))) for lead, own in zip("xy", rows, strict=True)
    ]
    lines = joined([*joined_where_bound(fields, ", ", 4), "."], 4)
    assert lines.to_pylist() == ["xa.", ".", "yb.", "xd, ye."]


def test_text_that_utf8_cannot_write() -> None:
    assert encoded(["\ud800", None, "é"]).to_pylist() == ["\\ud800", None, "é"]
