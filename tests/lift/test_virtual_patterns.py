"""Graph patterns over lifted columns give what they give over the triples, and over single rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

import spaseq
from spaseq.errors import InputError, QueryError
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted_events import EventMaker
from spaseq.lift.pruned_lifts import KnownFields, pruned
from spaseq.lift.row_blocks import RowBlock
from spaseq.lift.table_files import TableFile, TableFormat, _OpenTable
from tests.lift import lifted_queries
from tests.lift.lifting import PREFIXES, as_lists


def answers(query: str, table: Any, lift: str, place: Path, **more: Any) -> list[Any]:
    """The answers of a query: bindings and events; and the bad rows."""
    bad: list[Any] = []
    streams: dict[str, Any] = {"http://e/s": spaseq.Lifted(table, lift)}
    if "<http://e/t>" in query:
        streams["http://e/t"] = place / "t.nq"
    found = spaseq.run(
        query,
        streams,
        {"http://e/kb": place / "kb.ttl"},
        "local",
        on_bad=bad.append,
        **more,
    )
    rows = [
        (
            sorted((name, value.n3()) for name, value in match.bindings.items() if value),
            [(entry.gpm, entry.event, entry.time) for entry in match.trace],
        )
        for match in found
    ]
    return [rows, sorted((b.line, b.reason) for b in bad)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("virtual")
    (directory / "kb.ttl").write_text(lifted_queries.KB)
    (directory / "onto.ttl").write_text(lifted_queries.ONTOLOGY)
    (directory / "t.nq").write_text(lifted_queries.RDF_STREAM)
    return directory


SIZES = [
    12,
    pytest.param(120, marks=pytest.mark.thorough),
    pytest.param(3000, marks=pytest.mark.slow),
]


_lifted = EventMaker.lifted


def lifted_as_lists(maker: EventMaker, block: RowBlock, *others: Any) -> Any:
    return _lifted(maker, as_lists(block), *others)


@pytest.mark.parametrize("examples", SIZES)
def test_columns_triples_and_rows_give_equal_answers(
    examples: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(lifted_queries.cases(), st.integers(0, 3))
    def check(case: tuple[str, Any, str], entailed: int) -> None:
        lift, rows, query = case
        more: dict[str, Any] = {}
        if not entailed:
            more = {"ontology": [place / "onto.ttl"], "entailment": "rdfs"}
        table = pa.Table.from_batches([rows])
        try:
            virtual = answers(query, table, lift, place, **more)
        except (QueryError, InputError):
            assume(False)
        event(f"{min(len(virtual[0]), 3)} answers, {min(len(virtual[1]), 1)} bad")
        off = ["virtual-triples"]
        assert virtual == answers(query, table, lift, place, disable=off, **more)
        path = place / "t.parquet"
        pq.write_table(table, path, row_group_size=2)
        assert virtual == answers(query, path, lift, place, **more)
        with monkeypatch.context() as patched:
            patched.setattr(EventMaker, "lifted", lifted_as_lists)
            assert virtual == answers(query, table, lift, place, **more)

    check()


def test_a_column_of_few_texts_is_read_as_a_dictionary(tmp_path: Path) -> None:
    rows = 20_000
    kinds = pa.array([f"T{n % 4}" if n % 7 else None for n in range(rows)])
    table = pa.table({"id": range(rows), "kind": kinds, "word": [f"w{n}" for n in range(rows)]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=3000)
    with closing(_OpenTable(TableFile(str(tmp_path / "t.parquet"), TableFormat.PARQUET))) as opened:
        assert pa.types.is_dictionary(opened.schema.field("kind").type)
        assert not pa.types.is_dictionary(opened.schema.field("word").type)
    lift = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?e a ?k ; :word ?word }}
      ?e prov:generatedAtTime ?id }}
    WHERE {{ BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e)
             BIND(IRI(CONCAT("http://e/", ?kind)) AS ?k) }}"""
    query = f"""{PREFIXES}SELECT ?w WITHIN 1 SECONDS FROM STREAM S <http://e/s> WHERE {{ SEQ(A)
      DEFINE GPM A ON S {{ ?e a :T2 ; :word ?w }} }}"""
    given = spaseq.Lifted(tmp_path / "t.parquet", lift)
    found = [
        (m.bindings["w"].to_python(), m.trace[0].event)
        for m in spaseq.run(query, {"S": given}, runtime="local")
    ]
    assert found == [(f"w{n}", f"http://e/n/{n}") for n in range(2, rows, 4) if n % 7]


def test_different_queries_read_constants_of_lifted_events(tmp_path: Path) -> None:
    table = pa.table({"id": range(200), "n": [n % 7 for n in range(200)]})
    lift = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?e :n ?n ; :id ?id }}
      ?e prov:generatedAtTime ?id }} WHERE {{ BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e) }}"""
    queries = [
        f"""{PREFIXES}SELECT ?i{n} WITHIN {n + 1} SECONDS FROM STREAM S <http://e/s> WHERE {{ SEQ(A)
          DEFINE GPM A ON S {{ ?e{n} :n {n} ; :id ?i{n} FILTER (?i{n} > {n}) }} }}"""
        for n in range(9)
    ]
    off = ["query-families"]
    given = {"S": spaseq.Lifted(table, lift)}
    found: list[list[object]] = [[] for _ in queries]
    for match in spaseq.run(queries, given, runtime="local", disable=off):
        found[int(match.query.removeprefix("query")) - 1].append(match.bindings)
    alone = [[m.bindings for m in spaseq.run(q, given, runtime="local")] for q in queries]
    assert found == alone
    assert [len(own) > 0 for own in alone] == [n < 7 for n in range(9)]


def known(*whole: str, harmless: str = "") -> KnownFields:
    return KnownFields(frozenset(whole), frozenset([*whole, *harmless.split()]))


WIDE = f"""{PREFIXES}CONSTRUCT {{ GRAPH ?e {{ ?e a ?k ; :v ?v ; :w ?w }}
                        ?e prov:generatedAtTime ?t }}
WHERE {{ BIND(IRI(CONCAT("http://e/n/", STR(?id))) AS ?e)
         BIND(IRI(CONCAT("http://e/", ?kind)) AS ?k) FILTER(?x > 3) }}"""


@pytest.mark.parametrize(
    ("asked", "fields", "read"),
    [
        (None, known(*["id", "v", "w", "x", "t", "kind"]), "id kind t v w x"),
        (("http://e/v",), known("id", "v", harmless="kind w"), "id t v x"),
        # a kind may be beyond the limit
        (("http://e/v",), known("id", "v", harmless="w"), "id kind t v x"),
        # a row with a null in v has no other triple
        (("http://e/v",), known("id", harmless="kind v w"), "id kind t v w x"),
        (("http://e/v", "http://e/w"), known("id", "w", harmless="kind"), "id t v w x"),
    ],
)
def test_fields_that_no_query_reads(
    asked: tuple[str, ...] | None, fields: KnownFields, read: str
) -> None:
    assert " ".join(sorted(pruned(compiled_lift(WIDE), asked, fields).fields.wanted)) == read


def test_row_groups_that_no_row_passes_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 400
    kinds = ["a" if n % 3 else "b" for n in range(rows)]
    xs = [None if n < 100 else n // 100 + (n == 250) * 5 for n in range(rows)]
    table = pa.table({name: range(rows) for name in ("id", "v", "w", "t")})
    table = table.append_column("kind", pa.array(kinds)).append_column("x", pa.array(xs))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    read: list[int] = []
    batches = pq.ParquetFile.iter_batches

    def noted(self: Any, *given: Any, **more: Any) -> Any:
        read.extend(more["row_groups"])
        return batches(self, *given, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    query = f"""{PREFIXES}SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s> WHERE {{ SEQ(A)
      DEFINE GPM A ON S {{ ?e :v ?v }} }}"""
    stats = spaseq.Stats()
    given = spaseq.Lifted(tmp_path / "t.parquet", WIDE)
    found = spaseq.run(query, {"S": given}, runtime="local", stats=stats)
    assert [m.bindings["v"].to_python() for m in found] == [250]
    assert (read, stats.events, stats.filtered) == ([2], 1, 399)
