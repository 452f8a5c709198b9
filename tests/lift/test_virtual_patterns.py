"""Graph patterns over lifted columns give what they give over the triples, and over single rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, event, given, settings

import spaseq
from spaseq.errors import InputError, QueryError
from spaseq.lift.lifted_events import EventMaker
from tests.lift import lifted_queries


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
    30,
    pytest.param(300, marks=pytest.mark.thorough),
    pytest.param(3000, marks=pytest.mark.slow),
]


@pytest.mark.parametrize("examples", SIZES)
def test_columns_triples_and_rows_give_equal_answers(
    examples: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @settings(max_examples=examples, deadline=None, database=None)
    @given(lifted_queries.cases())
    def check(case: tuple[str, Any, str]) -> None:
        lift, rows, query = case
        table = pa.Table.from_batches([rows])
        try:
            virtual = answers(query, table, lift, place)
        except (QueryError, InputError):
            assume(False)
        event(f"{min(len(virtual[0]), 3)} answers, {min(len(virtual[1]), 1)} bad")
        assert virtual == answers(query, table, lift, place, disable=["virtual-triples"])
        with monkeypatch.context() as patched:
            patched.setattr(EventMaker, "_columns", lambda _: None)
            assert virtual == answers(query, table, lift, place)

    check()
