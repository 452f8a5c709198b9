"""The input of a stream becomes a source, and every source keeps the contract."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from spaseq.errors import InputError, UsageError
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.sources import source_of
from spaseq.sources.base import Source
from spaseq.sources.files import FileSource, GrowingFiles, StdinSource
from spaseq.sources.iterables import Event, EventSource
from tests.runtime.machines import NORTH, nquads

IRI = "http://m.example/north"
OPTIONS = StreamOptions(IRI, ())
TRIPLE = '<http://m.example/m1> <http://m.example/starts> "1" .\n'
EVENTS = [Event(TRIPLE, 1000), Event(TRIPLE, 1000, "http://m.example/e"), Event(TRIPLE, 2000)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "north.nq"
    path.write_text(nquads(NORTH))
    return path


def instants(source: Source) -> list[tuple[int, int]]:
    """(ms, k) of each event."""
    found = []
    for batch in source.open(pytest.fail):
        found += list(zip(batch.time.tolist(), batch.k.tolist(), strict=True))
    return found


@pytest.mark.parametrize(
    ("given", "kind", "name"),
    [
        ("a.nq", FileSource, "a.nq"),
        (Path("a.nq"), FileSource, "a.nq"),
        (["a.nq", Path("b.nq")], FileSource, "a.nq, b.nq"),
        ("-", StdinSource, "standard input"),
        (["a.nq", "-"], StdinSource, "standard input"),
        (EVENTS, EventSource, "events of the program"),
        (iter(EVENTS), EventSource, "events of the program"),
        ([], EventSource, "events of the program"),
    ],
)
def test_the_first_kind_that_takes_the_input_is_the_source(
    given: object, kind: type[Source], name: str
) -> None:
    source = source_of(given, OPTIONS)
    assert type(source) is kind
    assert (source.iri, source.describe()) == (IRI, name)


def test_other_input_is_refused() -> None:
    with pytest.raises(UsageError, match=r"paths or spaseq\.Event objects, not int"):
        source_of(5, OPTIONS)
    bad: list[BadInput] = []
    assert not [*source_of([5], OPTIONS).open(bad.append)]
    assert "paths or spaseq.Event objects, not int" in bad[0].reason


def test_a_missing_file_is_found_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"stream <{IRI}>: no such file"):
        source_of(tmp_path / "none.nq", OPTIONS).check()


def test_the_splits_of_files_have_the_events_of_the_whole(file: Path) -> None:
    source = source_of(file, OPTIONS)
    with ThreadPoolExecutor(1) as pool:
        splits = list(source.splits(pool, split_bytes=file.stat().st_size // 3) or ())
    assert len(splits) > 1
    copies = pickle.loads(pickle.dumps((source, splits)))
    parts = [batch for split in copies[1] for batch in copies[0].open(pytest.fail, split)]
    found = [pair for b in parts for pair in zip(b.time.tolist(), b.k.tolist(), strict=True)]
    assert found == instants(source)


def test_events_of_the_program_are_shared_through_a_file(tmp_path: Path) -> None:
    source = source_of(iter(EVENTS), OPTIONS)
    with ThreadPoolExecutor(1) as pool:
        assert source.splits(pool) is None
    shared: Source = pickle.loads(pickle.dumps(source.shared(tmp_path)))
    assert instants(shared) == [(1000, 0), (1000, 1), (2000, 0)]
    assert (shared.iri, shared.shared(tmp_path)) == (IRI, shared)


def test_standard_input_is_shared_through_a_file(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = instants(source_of(file, OPTIONS))
    given = SimpleNamespace(buffer=io.BytesIO(file.read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    shared = source_of("-", OPTIONS).shared(tmp_path)
    assert type(shared) is FileSource
    assert instants(shared) == whole


def test_only_files_are_followed(tmp_path: Path) -> None:
    growing = source_of(tmp_path, OPTIONS).followed()
    assert type(growing) is GrowingFiles
    for given, name in (("-", "standard input"), (EVENTS, "events of the program")):
        with pytest.raises(UsageError, match=f"<{IRI}>: {name} cannot be followed"):
            source_of(given, OPTIONS).followed()


@pytest.mark.parametrize("unfinished", [(".a.nq", "_b.nq", "c.txt")])
def test_growing_files_are_those_that_are_there_and_finished(
    file: Path, unfinished: Sequence[str]
) -> None:
    growing = source_of(file.parent, OPTIONS).followed()
    for name in unfinished:
        (file.parent / name).write_text(nquads(NORTH))
    assert growing.sizes() == {str(file): file.stat().st_size}
    assert [p.path for p in growing.pending({})] == [str(file)]
    assert instants(growing) == instants(source_of(file, OPTIONS))


def test_readers_that_look_at_no_predicate_still_get_all_events(file: Path) -> None:
    source = source_of(file, OPTIONS).keeping(())
    assert instants(source) == instants(source_of(file, OPTIONS))
    assert sum(batch.triples for batch in source.open(pytest.fail)) > 0
