"""Tables lifted as columns give what the same rows give one by one."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.expr.compile import Options
from spaseq.lang import ast
from spaseq.lift.lane_forms import cast_of_strings, lane_form
from spaseq.lift.lane_terms import LaneTerms, SharedTexts
from spaseq.lift.lanes import Lane, LaneForm
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lift_plan import LostValue
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.lifted_graphs import LiftedEvents
from spaseq.lift.row_blocks import table_block
from spaseq.lift.solutions import checked_term
from spaseq.rdf.columns.term_tables import term_table
from spaseq.rdf.terms.number_kinds import EXACT, OTHER, SHORT, UNKNOWN
from spaseq.rdf.terms.term import XSD
from tests.lift.lifting import PREFIXES, as_lists, integer, lift_of
from tests.sizes import sizes

WORDS = ("a", "b-1", "x.y", "..", "", "ä", "é/1", 'q"', "\\", "\x7f", "\n", "7", "07", "-3", "a b")
TEXTS = st.sampled_from(WORDS)
SMALL = st.integers(-3, 3)
INTEGERS = st.one_of(SMALL, st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1]))
DOUBLES = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 0.1, 3.0, -3.0, 1e300, math.nan, math.inf, -math.inf]),
    st.floats(),
)
MOMENTS = st.one_of(
    st.integers(-3, 3), st.sampled_from([1_767_603_600_123, -62_135_596_800_000, 10**15])
)
FIELDS: dict[str, tuple[Any, ...]] = {
    "s": (TEXTS, pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())),
    "u": (TEXTS, pa.string()),
    "i": (SMALL, pa.int8(), pa.int32(), pa.int64()),
    "j": (INTEGERS, pa.int64()),
    "d": (DOUBLES, pa.float64()),
    "c": (st.decimals(-9, 9, places=2), pa.decimal128(9, 2)),
    "b": (st.booleans(), pa.bool_()),
    "m": (MOMENTS, pa.timestamp("ms"), pa.timestamp("s"), pa.timestamp("ns")),
    "f": (SMALL.map(float), pa.float32()),
}
BINDS = (
    "IRI(CONCAT('http://e/', ?s))",
    "IRI(CONCAT('http://e/a', STR(?s)))",
    "IRI(CONCAT('http://e/', STR(?i)))",
    "IRI(CONCAT('http://e/', STR(?j), '/x'))",
    "IRI(CONCAT('http://e/', ?i))",
    "IRI(?u)",
    "STR(?d)",
    "?s",
    "xsd:decimal(?d)",
    "xsd:double(?d)",
    "xsd:integer(?i)",
    "xsd:integer(?s)",
    "xsd:dateTime(?m)",
    "xsd:decimal(?c)",
    "?i + ?c",
    "?i / ?j",
    "UCASE(?s)",
    "CONCAT(?s, ?u)",
    "COALESCE(?i, ?s)",
    "IF(?b, ?i, ?d)",
)
TESTS = (
    "?i > 0",
    "?d >= 0",
    "0 != ?d",
    "?j < 9007199254740992",
    "?c > 0.5",
    "?s = 'a'",
    "BOUND(?u)",
    "?b",
    "?i > 0 && ?d < 3",
    "?i < ?c || ?b",
    "?x = ?y",
    "isIRI(?x)",
)


@st.composite
def lifts(draw: Any) -> str:
    bound = [
        f"BIND({draw(st.sampled_from(BINDS))} AS ?{v})" for v in "xy"[: draw(st.integers(0, 2))]
    ]
    elements = [
        *bound,
        *(f"FILTER({t})" for t in draw(st.lists(st.sampled_from(TESTS), max_size=2))),
    ]
    elements.append("BIND(IRI(CONCAT('http://e/n/', STR(?i))) AS ?name)")
    known = [f"?{name}" for name in (*FIELDS, *"xy"[: len(bound)], "_line")]
    subject = st.sampled_from([*[":s", "?name", ":a"] * 3, "?x" if bound else ":a", "[]"])
    thing = st.sampled_from([*known, *known, "?name", ":s", "<http://e/a>", "1", "'a'", "true"])
    triple = st.tuples(subject, st.sampled_from([":p", ":q", "a"]), thing).map(" ".join)
    inside = " . ".join(draw(st.lists(triple, min_size=1, max_size=3)))
    time = draw(st.sampled_from([*["?m"] * 9, "?i", "5", "?s"]))
    timed = f"prov:generatedAtTime {time}"
    named = draw(st.booleans())
    template = f"GRAPH ?name {{ {inside} }} ?name {timed}" if named else f"{inside} . :t {timed}"
    return f"{PREFIXES}CONSTRUCT {{ {template} }} WHERE {{ {' '.join(elements)} }}"


@st.composite
def tables(draw: Any) -> Any:
    size = draw(st.integers(1, 6))
    columns = {}
    for name, (values, *kinds) in FIELDS.items():
        certain = draw(st.integers(0, 9)) < (9 if name in "im" else 6)
        optional = values if certain else st.one_of(st.none(), values)
        cells = draw(st.lists(optional, min_size=size, max_size=size))
        kind = draw(st.sampled_from(kinds))
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            cells = [None if c is None else c % 10**9 for c in cells]
        columns[name] = pa.array(cells, kind)
    return pa.record_batch(columns)


def lifted(
    lift: str, table: Any, columns: bool, types: dict[str, str] | None = None
) -> tuple[list[Any], list[Any], int]:
    """(events, bad rows and what casts lose by field, rows without a solution) of a table."""
    bad: list[Any] = []
    losses: Counter[str] = Counter()

    def on_bad(row: int, reason: str, lost: LostValue | None) -> None:
        if lost is None:
            bad.append((row, reason))
        else:
            losses[lost.field] += lost.count

    plan = compiled_lift(lift)
    maker = EventMaker(plan, "http://e/s", types)
    block = table_block(table, plan.fields.wanted, 0)
    batch = maker.lifted(block if columns else as_lists(block), on_bad)
    found = batch.events
    terms = term_table(found.terms)
    used = np.unique(np.concatenate([found.s, found.p, found.o]))
    assert [terms.code(text) for text in terms.take(used)] == used.tolist()
    assert terms.find([*terms.take(used)] * 9).tolist() == used.tolist() * 9
    s, p, o = (terms.take(column) for column in (found.s, found.p, found.o))
    triples = [*zip(s, p, o, strict=True)]
    events = []
    for i, text in enumerate(batch.time_texts()):
        rows = slice(int(found.start[i]), int(found.start[i + 1]))
        one = (found.graph[i], int(found.time[i]), int(found.k[i]), text)
        events.append((*one, sorted(triples[rows])))
    return events, [*bad, *sorted(losses.items())], maker.filtered


@sizes(25, 60, 3000)
def test_columns_give_what_rows_give(examples: int) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(lifts(), tables())
    def check(lift: str, table: Any) -> None:
        assert lifted(lift, table, columns=True) == lifted(lift, table, columns=False)

    check()


CASTS = ("integer", "decimal", "double", "dateTime")
NUMBERS = st.from_regex(r"-?[0-9]{1,3}([.][0-9]{1,3})?([eE]-?[0-9]{1,2})?", fullmatch=True)
MOMENT = r"[12][0-9]{3}-[01][0-9]-[0-3][0-9]T2[0-5]:0[0-9]:59([.][0-9]{1,7})?Z?"
LEXICAL = st.one_of(
    NUMBERS,
    st.from_regex(MOMENT, fullmatch=True),
    st.sampled_from(
        ["", " 7", "+7", "-0", "007", "1.", ".5", "INF", "9" * 19, "0.10", "-0.0", "x"]
    ),
)


@sizes(25, 60, 3000)
def test_casts_of_strings(examples: int) -> None:
    lift = lift_of(
        ":s " + " ; ".join(f":{name} ?{name}" for name in CASTS),
        " ".join(f"BIND(xsd:{name}(?x) AS ?{name})" for name in CASTS)
        + " FILTER(xsd:integer(?y) > 1)",
    )

    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.data())
    def check(data: Any) -> None:
        size = data.draw(st.integers(1, 4))
        texts = st.lists(st.one_of(st.none(), LEXICAL), min_size=size, max_size=size)
        cells = pa.array(data.draw(texts), pa.string())
        table = pa.record_batch({"x": cells, "y": pa.array(["7"] * size)})
        assert lifted(lift, table, columns=True) == lifted(lift, table, columns=False)

    check()


TYPES = (*CASTS, "string", "boolean", "float", "date")


@sizes(25, 60, 3000)
def test_types_of_fields(examples: int) -> None:
    lift = lift_of(":s :p ?x ; :q 1", "FILTER(BOUND(?y))")

    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.sampled_from(TYPES), st.sampled_from(TYPES), st.data())
    def check(x: str, y: str, data: Any) -> None:
        size = data.draw(st.integers(1, 4))
        usual = st.sampled_from(["1", "-7", "2.50", "1e3", "true", "2026-01-05"])
        texts = st.lists(st.one_of(st.none(), usual, LEXICAL), min_size=size, max_size=size)
        table = pa.record_batch(
            {name: pa.array(data.draw(texts), pa.string()) for name in ("x", "y")}
        )
        types = {"x": x, "y": y, "unread": "integer"}
        expected = lifted(lift, table, columns=False, types=types)
        assert lifted(lift, table, columns=True, types=types) == expected

    check()


def test_typed_fields_are_columns() -> None:
    maker = EventMaker(compiled_lift(lift_of(":s :p ?x ; :q 1")), "http://e/s", {"x": "integer"})
    table = pa.record_batch({"x": pa.array(["7", None, "-3"])})
    batch = maker.lifted(table_block(table, frozenset("x"), 1), lambda *_: None)
    assert isinstance(batch.events, LiftedEvents)
    assert {*term_table(batch.events.terms)} >= {integer(7), integer(-3)}


def test_a_cast_of_usual_texts_is_a_column() -> None:
    moment = "2026-01-05T09:00:02Z"
    usual = {"integer": "-7", "decimal": "1.50", "double": "1e3", "dateTime": moment}
    for name, text in usual.items():
        lane = cast_of_strings(Lane(LaneForm.STRING, pa.array([text, None], pa.string())), name)
        assert lane is not None
        assert lane.values.null_count == 1
        for other in ("x", ""):
            both = Lane(LaneForm.STRING, pa.array([text, other], pa.string()))
            assert cast_of_strings(both, name) is None


@pytest.mark.parametrize("column", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_a_few_unusual_texts_leave_a_column_one(column: pa.DataType) -> None:
    """They are evaluated one by one: an error is unbound, another term needs a list of texts."""
    options = Options()

    def values(text: str, *texts: str | None) -> list[Any] | None:
        expr: ast.Expr = ast.FunctionCall(ast.Iri(XSD + text), (ast.Var("x"),))
        if text == "IRI":
            parts = ast.Literal("http://e/"), ast.Var("x")
            expr = ast.Call("IRI", (ast.Call("CONCAT", parts),))
        form = lane_form(expr, checked_term(expr, options))
        assert form is not None
        lane = form({"x": Lane(LaneForm.STRING, pa.array(texts, column))})
        return None if lane is None else lane.row_texts()

    assert values("integer", "7", None, "x", "-3") == [integer(7), None, None, integer(-3)]
    assert values("decimal", "oops", "1.5") == [None, f'"1.5"^^<{XSD}decimal>']
    moment = "2026-01-05T09:00:02Z"
    assert values("dateTime", moment, "never") == [f'"{moment}"^^<{XSD}dateTime>', None]
    assert values("IRI", "a", "b c", "s\u00e3o") == ["<http://e/a>", None, "<http://e/s\u00e3o>"]
    assert values("integer", "7", "+8") is None  # "+8" has a value
    assert values("IRI", "a", "b/c") is None


def test_the_greatest_integer_has_a_code() -> None:
    lift = (
        "PREFIX prov: <http://www.w3.org/ns/prov#>\n"
        "CONSTRUCT { <http://e/s> <http://e/p> ?j . <http://e/t> prov:generatedAtTime ?m } WHERE {}"
    )
    batch = pa.record_batch(
        {"j": pa.array([2**63 - 1], pa.int64()), "m": pa.array([0], pa.timestamp("ms"))}
    )
    assert lifted(lift, batch, columns=True) == lifted(lift, batch, columns=False)


def test_triples_that_nobody_asks_for_are_counted() -> None:
    lift = lift_of(":s :i ?i ; :m ?m ; :c :d")
    table = pa.record_batch({"i": [1, None, 3], "m": [7, 8, None]})
    counts = []
    for asked in (None, ("http://e/i",), ("http://e/none",)):
        maker = EventMaker(compiled_lift(lift), "http://e/s", asked=asked)
        batch = maker.lifted(table_block(table, frozenset("imc"), 1), lambda *_: None)
        events = batch.events
        assert events.triples == 7 + 3  # and the times'
        counts.append(np.diff(events.start).tolist())
        predicates = {*term_table(events.terms).take(events.p)}
        assert asked is None or predicates <= {f"<{iri}>" for iri in asked}
    assert counts == [[4, 3, 3], [1, 0, 1], [0, 0, 0]]


def test_one_bad_row_among_many() -> None:
    lift = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?g {{ :s :v ?v }} ?g prov:generatedAtTime ?t }}
    WHERE {{ BIND(IRI(CONCAT("http://e/", ?id)) AS ?g) FILTER(?v != 3) }}"""
    ids = [f"n{n}" if n != 2345 else None for n in range(5000)]
    values = {"id": ids, "v": [n % 7 for n in range(5000)], "t": range(5000)}
    table = pa.RecordBatch.from_pydict(values)
    events, bad, filtered = lifted(lift, table, columns=True)
    assert (events, bad, filtered) == lifted(lift, table, columns=False)
    assert [row for row, _ in bad] == [2345 if 2345 % 7 != 3 else -1][: len(bad)]
    assert len(events) + len(bad) + filtered == 5000


@pytest.mark.parametrize("absent", ["g", "t", "v", "s"])
def test_a_field_that_is_no_column_is_unbound(absent: str) -> None:
    """Rows of a DataFrame may lack a field's column."""
    lift = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?g {{ ?s :v ?v }} ?g prov:generatedAtTime ?t }}
    WHERE {{ BIND(IRI(?s) AS ?unread) }}"""
    columns = {"g": ["http://e/g"] * 3, "t": [1, 2, 3], "v": [4, 5, 6], "s": ["http://e/s"] * 3}
    del columns[absent]
    table = pa.RecordBatch.from_pydict(columns)
    events, bad, _ = lifted(lift, table, columns=True)
    assert not events and len(bad) == 3
    assert lifted(lift, table, columns=True) == lifted(lift, table, columns=False)


def test_numbers_of_columns() -> None:
    lift = lift_of(":s :i ?i ; :c ?c")
    whole = [1, 2**53 + 1, -(2**63)]
    decimals = [Decimal("0.10"), Decimal("0.50"), Decimal("-2.00")]
    table = pa.record_batch(
        {"i": pa.array(whole, pa.int64()), "c": pa.array(decimals, pa.decimal128(9, 2))}
    )
    maker = EventMaker(compiled_lift(lift), "http://e/s")
    batch = maker.lifted(table_block(table, frozenset("ic"), 1), lambda *_: None)
    terms = term_table(batch.events.terms)
    texts = terms.take(batch.events.o)
    values, kinds = terms.numbers(batch.events.o)
    found = {t.split('"')[1]: (v, k) for t, v, k in zip(texts, values, kinds, strict=True)}
    assert found["0.1"] == (0.1, SHORT)
    assert found["0.5"] == (0.5, EXACT)
    assert found["-2"] == (-2.0, EXACT)
    assert found[str(2**53 + 1)] == (float(2**53), UNKNOWN)
    assert found[str(-(2**63))] == (-(2.0**63), UNKNOWN)


def test_batches_share_the_texts_of_few_values() -> None:
    texts = SharedTexts()
    found = []
    for values in ([700, 1, 9, 1], [999, 2, None, 5]):
        lane = Lane(LaneForm.INTEGER, pa.array(values, pa.int64()))
        far = Lane(LaneForm.IRI, pa.array([-(2**63), 0, 2**63 - 1, 4]), "http://e/")
        terms = LaneTerms(["<http://e/p>"], {"v": lane, "e": far}, texts)
        codes = np.append(terms.codes("v"), np.int32(-1))
        column = terms.shared(codes)
        assert column is not None
        expected = [None if v is None else integer(v) for v in [*values, None]]
        assert column.texts() == expected
        numbers, kinds = terms.numbers(codes)
        bound = [v for v in values if v is not None]
        assert numbers[~np.isnan(numbers)].tolist() == bound
        assert kinds.tolist() == [OTHER if t is None else EXACT for t in expected]
        mixed = np.concatenate([codes, terms.codes("e")]).astype(np.int32)
        assert terms.shared(mixed) is None
        iris = [f"<http://e/{value}>" for value in far.values.to_pylist()]
        assert terms.row_texts(mixed) == [*expected, *iris]
        assert terms.numbers(mixed)[1].tolist() == [*kinds.tolist(), *[UNKNOWN] * 4]
        found.append(column)
    assert found[0].terms is found[1].terms
    other = LaneTerms([], {"v": Lane(LaneForm.STRING, pa.array(["b", "a", "b"]))}, texts)
    words = other.shared(other.codes("v"))
    assert words is not None
    assert words.texts() == ['"b"', '"a"', '"b"']
