"""Random lifts over random rows against the brute-force oracle."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted_source import LiftedFiles
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.rdf.terms.term import kind_of, split_literal
from spaseq.rdf.terms.times import parse_time
from tests.lift import lift_oracle as oracle

FIELDS = ("a", "b", "größe", "t")
BOUND = ("x", "y", "z")
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " ",
            "7",
            "07",
            "-3",
            "1.50",
            "x",
            'q"q',
            "a,b",
            "l\nl",
            "\r\n",
            "ä😀",
            "\\",
            "\t",
            "NULL",
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
)
SMALL = st.integers(-3, 3)
TERMS = st.one_of(
    TEXTS.map(oracle.plain), SMALL.map(oracle.number), st.just(oracle.iri("http://e/i"))
)


def variables(names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(names).map(lambda name: ("var", name))


def expressions(names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    leaf = st.one_of(variables(names), TERMS.map(lambda term: ("const", term)))

    def larger(inner: Any) -> Any:
        comparison = st.tuples(st.sampled_from(["<", "="]), inner, inner)
        bound = st.tuples(st.just("bound"), st.sampled_from(names))
        return st.one_of(
            st.tuples(st.just("str"), inner),
            st.tuples(st.just("concat"), inner, inner),
            st.tuples(st.just("cast"), st.sampled_from(["integer", "decimal"]), inner),
            st.tuples(st.just("+"), inner, inner),
            st.tuples(st.just("coalesce"), inner, inner),
            st.tuples(st.just("if"), st.one_of(comparison, bound), inner, inner),
            inner.map(
                lambda e: ("iri", ("concat", ("const", oracle.plain("http://e/")), ("str", e)))
            ),
        )

    return st.recursive(leaf, larger, max_leaves=5)


@st.composite
def lifts(draw: Any, lists: bool) -> Any:
    elements: list[Any] = []
    known = FIELDS
    if lists and draw(st.booleans()):
        elements.append(("unnest", "l", "i"))
        known = (*known, "i")
    for name in BOUND[: draw(st.integers(0, 3))]:
        elements.append(("bind", draw(expressions(known)), name))
        known = (*known, name)
    if draw(st.booleans()):
        test = st.tuples(st.sampled_from(["<", "="]), expressions(known), expressions(known))
        test = st.one_of(test, st.tuples(st.just("bound"), st.sampled_from(known)))
        test = st.one_of(test, test.map(lambda inner: ("not", inner)))
        elements.insert(draw(st.integers(0, len(elements))), ("filter", draw(test)))
    if draw(st.booleans()):
        names = draw(
            st.lists(st.sampled_from(("a", "b", "v")), min_size=1, max_size=2, unique=True)
        )
        row = st.lists(st.one_of(TERMS, st.none()), min_size=len(names), max_size=len(names))
        elements.append(("values", tuple(names), draw(st.lists(row, min_size=1, max_size=3))))
        known = (*known, *names)
    subject = st.one_of(
        variables(known), st.just(("const", oracle.iri("http://e/s"))), st.just(("blank",))
    )
    item = st.one_of(subject, TERMS.map(lambda term: ("const", term)))
    triple = st.tuples(subject, st.sampled_from(["p", "q"]), item)
    template = draw(st.lists(triple, min_size=1, max_size=3))
    time = draw(st.sampled_from([("const", oracle.number(5)), ("var", "time"), ("var", "t")]))
    if time == ("var", "time"):
        elements.append(("bind", ("cast", "integer", ("var", "t")), "time"))
    template.append((("const", oracle.iri("http://e/s")), "time", time))
    graph = None
    if draw(st.booleans()):
        graph = "g"
        expr = (
            "concat",
            ("const", oracle.plain("http://e/")),
            ("str", ("var", draw(st.sampled_from(known)))),
        )
        elements.append(("bind", ("iri", expr), "g"))
    return elements, graph, template


def term_of(text: str, labels: dict[str, str]) -> Any:
    if kind_of(text) == "iri":
        return oracle.iri(text[1:-1])
    if kind_of(text) == "bnode":
        return "blank", labels.setdefault(text, str(len(labels))), ""
    lexical, datatype, _ = split_literal(text)
    return "literal", lexical, datatype.removeprefix(oracle.XSD)


def events(path: Path, lift: Any) -> tuple[list[Any], set[int | None]]:
    bad: list[BadInput] = []
    plan = compiled_lift(oracle.text_of(lift), time_predicate="http://e/time")
    options = StreamOptions("http://e/s", (str(path),), time_predicate="http://e/time")
    found = []
    for batch in LiftedFiles(options, plan, ()).lifted(bad.append):
        batch_events = batch.events
        for i, time in enumerate(batch.time_texts()):
            assert parse_time(time) == batch_events.time[i]
            triples = set()
            labels: dict[str, str] = {}
            for j in range(int(batch_events.start[i]), int(batch_events.start[i + 1])):
                s, p, o = (
                    batch_events.terms[c[j]]
                    for c in (batch_events.s, batch_events.p, batch_events.o)
                )
                triples.add((term_of(s, labels), p[len("<http://e/") : -1], term_of(o, labels)))
            found.append((batch_events.graph[i], int(batch_events.time[i]), shape(triples)))
    return found, {b.line for b in bad if b.lost is None}  # a lost value costs no row


def shape(triples: Any) -> Any:
    """The triples with their blank nodes counted: what they say of each node, as a multiset."""
    nodes: dict[str, list[Any]] = {}
    rest = set()
    for s, p, o in triples:
        blanks = {t[1] for t in (s, o) if t[0] == "blank"}
        hidden = tuple(("blank", "", "") if t[0] == "blank" else t for t in (s, o))
        for label in blanks:
            nodes.setdefault(label, []).append((p, hidden))
        if not blanks:
            rest.add((s, p, o))
    return rest, sorted(sorted(map(repr, said)) for said in nodes.values())


def check(path: Path, lift: Any, rows: list[dict[str, Any]], lines: list[int]) -> None:
    expected: list[Any] = []
    bad = set()
    for line, row in zip(lines, rows, strict=True):
        try:
            event = oracle.event_of(lift, row)
        except oracle.BadRow:
            bad.add(line)
            continue
        if event is not None:
            expected.append((event[0], event[1], shape(event[2])))
    assert events(path, lift) == (expected, bad)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    lifts(lists=False),
    st.lists(st.tuples(*[st.one_of(st.none(), TEXTS)] * 4), max_size=5),
    st.booleans(),
)
def test_delimited(lift: Any, cells: list[Any], tabs: bool) -> None:
    out = io.StringIO()
    delimiter = "\t" if tabs else ","
    lines, line = [], 2
    out.write(delimiter.join(FIELDS) + "\n")
    for row in cells:
        quoted = ['"' + c.replace('"', '""') + '"' if c is not None else "" for c in row]
        text = delimiter.join(quoted) + "\r\n"
        lines.append(line)
        line += text.count("\n")
        out.write(text)
    rows = [
        {f: None if c is None else oracle.plain(c) for f, c in zip(FIELDS, row, strict=True)}
        for row in cells
    ]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / ("t.tsv" if tabs else "t.csv")
        path.write_bytes(out.getvalue().encode())
        check(path, lift, rows, lines)


def test_the_csv_module_agrees_on_cells_that_are_not_empty() -> None:
    """Python's reader cannot tell an empty cell from a quoted empty one."""
    from spaseq.lift.delimited_rows import DelimitedRows
    from spaseq.limits import DEFAULT_LIMITS
    from spaseq.rdf.inputs.csv_dialect import CsvDialect

    text = 'a,b\n"x ""y""\n,",z\nü," "\n'
    rows = DelimitedRows(io.BytesIO(text.encode()), CsvDialect(","), DEFAULT_LIMITS, "t.csv")
    (block,) = rows.blocks(frozenset({"a", "b"}), lambda *_: None)
    found = [
        [split_literal(c)[0] for c in column] for column in (block.columns["a"], block.columns["b"])
    ]
    _, *theirs = csv.reader(io.StringIO(text))
    assert [list(row) for row in zip(*found, strict=True)] == theirs


JSON_VALUES = st.one_of(st.none(), TEXTS, SMALL, st.booleans())


def json_term(value: Any) -> Any:
    match value:
        case None:
            return None
        case bool():
            return "literal", str(value).lower(), "boolean"
        case int():
            return oracle.number(value)
        case str():
            return oracle.plain(value)
        case list():
            return [json_term(item) for item in value]


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    lifts(lists=True),
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(FIELDS, JSON_VALUES),
                "l": st.one_of(SMALL, st.lists(JSON_VALUES, max_size=3)),
            },
        ),
        max_size=5,
    ),
)
def test_json_lines(lift: Any, given_rows: list[dict[str, Any]]) -> None:
    rows = [{f: json_term(v) for f, v in row.items()} for row in given_rows]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "t.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in given_rows), encoding="utf-8")
        check(path, lift, rows, [*range(1, len(rows) + 1)])


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(
    lifts(lists=True),
    st.lists(
        st.tuples(
            st.one_of(st.none(), SMALL),
            st.one_of(st.none(), TEXTS),
            st.one_of(st.none(), st.decimals(-9, 9, places=2)),
            st.one_of(st.none(), SMALL),
            st.one_of(st.none(), st.lists(st.one_of(st.none(), SMALL), max_size=3)),
        ),
        max_size=5,
    ),
)
def test_parquet(lift: Any, cells: list[Any]) -> None:
    kinds = (pa.int32(), pa.string(), pa.decimal128(9, 2), pa.int64(), pa.list_(pa.int16()))
    names = (*FIELDS, "l")
    columns = [*zip(*cells, strict=True)] or [[]] * 5
    table = pa.table({n: pa.array(c, k) for n, c, k in zip(names, columns, kinds, strict=True)})

    def term(value: Any) -> Any:
        if isinstance(value, list):
            return [term(item) for item in value]
        return oracle.number(value) if isinstance(value, Decimal) else json_term(value)

    rows = [{n: term(v) for n, v in zip(names, row, strict=True)} for row in cells]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "t.parquet"
        pq.write_table(table, path)
        check(path, lift, rows, [*range(1, len(rows) + 1)])
