"""Paths of a stream: files, directories, globs, standard input, and their errors."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from spaseq.errors import InputError
from spaseq.rdf.inputs.files import resolve_paths
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import read_stream
from tests.rdf.streams import STREAM, TIME, at, read, write

EVENT = f"<http://e/s> <http://e/p> <http://e/o> <http://e/g> .\n<http://e/g> {TIME} {at(1)} .\n"


def resolved(*paths: str | Path, **options: object) -> list[tuple[str, Format]]:
    files = resolve_paths(StreamOptions(STREAM, tuple(map(str, paths)), **options))  # type: ignore[arg-type]
    return [(Path(f.path).name, f.format) for f in files]


def refusal(*paths: str | Path, **options: object) -> str:
    with pytest.raises(InputError) as error:
        resolved(*paths, **options)
    return str(error.value)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("s.nq", Format.NQUADS),
        ("s.NQ.gz", Format.NQUADS),
        ("s.trig", Format.TRIG),
        ("s.jsonld", Format.JSONLD),
        ("s.json.gz", Format.JSONLD),
        ("s.nt", Format.NTRIPLES),
        ("s.ttl.gz", Format.TURTLE),
        ("s.rdf", Format.RDFXML),
    ],
)
def test_the_name_tells_the_format(tmp_path: Path, name: str, form: Format) -> None:
    write(tmp_path / name, "")
    assert resolved(tmp_path / name, triples_per_event=1) == [(name, form)]


def test_a_directory_in_order_of_names(tmp_path: Path) -> None:
    for name in ("b.nq", "a.trig", "c.nq.gz", "README", ".hidden.nq", "_SUCCESS"):
        write(tmp_path / name, "")
    assert [name for name, _ in resolved(tmp_path)] == ["a.trig", "b.nq", "c.nq.gz"]


def test_an_empty_directory_is_an_empty_stream(tmp_path: Path) -> None:
    assert read(tmp_path) == ([], [])


def test_an_empty_file_is_an_empty_stream(tmp_path: Path) -> None:
    assert read(write(tmp_path / "s.nq", "")) == ([], [])


def test_a_glob_in_order_of_names(tmp_path: Path) -> None:
    for name in ("s2.nq", "s1.nq", "t1.nq"):
        write(tmp_path / name, "")
    assert [name for name, _ in resolved(tmp_path / "s*.nq")] == ["s1.nq", "s2.nq"]


def test_a_name_with_brackets_is_not_a_glob_if_it_exists(tmp_path: Path) -> None:
    write(tmp_path / "s[1].nq", "")
    assert [name for name, _ in resolved(tmp_path / "s[1].nq")] == ["s[1].nq"]


def test_paths_are_read_in_the_order_given(tmp_path: Path) -> None:
    first, second = write(tmp_path / "b.nq", ""), write(tmp_path / "a.nq", "")
    assert [name for name, _ in resolved(first, second)] == ["b.nq", "a.nq"]


def test_standard_input_is_nquads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EVENT.encode())))
    events, bad = read("-")
    assert [e.graph for e in events] == ["http://e/g"]
    assert bad == []
    assert not sys.stdin.closed


def test_a_format_by_name_goes_before_the_extension(tmp_path: Path) -> None:
    events, _ = read(write(tmp_path / "s.dat", EVENT), format="nquads")
    assert [e.graph for e in events] == ["http://e/g"]
    assert resolved(tmp_path / "s.dat", format=".trig") == [("s.dat", Format.TRIG)]


def test_a_missing_file_with_the_nearest_name(tmp_path: Path) -> None:
    write(tmp_path / "traffic.nq", "")
    text = refusal(tmp_path / "trafic.nq")
    assert text.startswith(f"stream <{STREAM}>: no such file or directory")
    assert text.endswith(f"did you mean {tmp_path / 'traffic.nq'}?")


def test_a_missing_directory_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "streams").mkdir()
    assert refusal(tmp_path / "stream" / "s.nq").endswith(f"did you mean {tmp_path / 'streams'}?")


def test_a_missing_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_stream(StreamOptions(STREAM, (str(tmp_path / "s.nq"),)), print)


def test_a_glob_without_a_match(tmp_path: Path) -> None:
    assert f"no file matches {tmp_path}" in refusal(tmp_path / "*.nq")


def test_an_unknown_extension(tmp_path: Path) -> None:
    write(tmp_path / "s.dat", "")
    assert "unknown format; a name ends in one of .nq" in refusal(tmp_path / "s.dat")


def test_an_unknown_format_name(tmp_path: Path) -> None:
    write(tmp_path / "s.nq", "")
    assert "unknown format 'nquad', did you mean 'nquads'?" in refusal(tmp_path, format="nquad")


def test_triples_without_a_number_per_event(tmp_path: Path) -> None:
    write(tmp_path / "s.nt", "")
    assert "--triples-per-event" in refusal(tmp_path / "s.nt")


def test_a_number_per_event_below_one(tmp_path: Path) -> None:
    write(tmp_path / "s.nt", "")
    assert "at least 1" in refusal(tmp_path / "s.nt", triples_per_event=0)
