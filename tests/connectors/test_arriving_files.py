"""Files as a source: what arrives, what grows, what waits, and where a later run goes on."""

from __future__ import annotations

import gzip
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spaseq.connectors import arriving_files
from spaseq.connectors.arriving_files import ArrivingFiles
from spaseq.errors import InputError
from spaseq.rdf.inputs.formats import part_of_file
from spaseq.rdf.inputs.stream_options import MessageOptions, StreamOptions
from tests.connectors.intake import ListIntake


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arriving_files, "SETTLED_S", 0.6)
    monkeypatch.setattr(arriving_files, "LINE_SETTLED_S", 1.5)


def started(path: Path, of_rows: bool = False, **given: Any) -> ListIntake:
    options = StreamOptions("http://e/s", (), live=True, **given.pop("options", {}))
    return ListIntake(ArrivingFiles(str(path), options, of_rows), **given)


def text_of(intake: ListIntake) -> bytes:
    return b"".join(message.payload for message in intake.messages)


def until(done: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def quad(event: int, value: int = 0) -> bytes:
    return b'<http://e/x> <http://e/p> "%d" <http://e/g%d> .\n' % (value, event)


def test_an_event_waits_for_what_follows_it_and_a_line_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(quad(1) + quad(1, 1) + quad(2)[:20])
    intake = started(path)
    time.sleep(0.4)
    assert intake.messages == []  # the second line may go on with the first event
    with path.open("ab") as file:
        file.write(quad(2)[20:] + quad(3)[:9])
        file.flush()
        until(lambda: bool(intake.messages))
        assert text_of(intake) == quad(1) + quad(1, 1)
        file.write(quad(3)[9:])
    until(lambda: len(text_of(intake)) == 2 * len(quad(1)) + 2 * len(quad(2)))
    intake.stop()
    parts = [part_of_file(m.media_type) for m in intake.messages]
    assert [part.line for part in parts if part] == [1, 3, 4][: len(parts)]
    assert {m.topic for m in intake.messages} == {str(path)}


def test_files_come_in_the_order_of_their_times_and_names(tmp_path: Path) -> None:
    for name, event, at in (("b.nq", 2, 5), ("a.nq", 3, 5), ("c.nq", 1, 3), ("_d.nq", 9, 1)):
        (tmp_path / name).write_bytes(quad(event))
        os.utime(tmp_path / name, (at, at))
    (tmp_path / "README.md").write_text("no events")
    intake = started(tmp_path)
    intake.wait(3)
    assert text_of(intake) == quad(1) + quad(3) + quad(2)
    (tmp_path / "e.tmp").write_bytes(quad(4))
    (tmp_path / "e.tmp").rename(tmp_path / "e.nq")
    (tmp_path / "f.nq.gz").write_bytes(gzip.compress(quad(5)))
    intake.wait(5)
    intake.stop()
    assert text_of(intake) == quad(1) + quad(3) + quad(2) + quad(4) + quad(5)


@pytest.mark.parametrize("seed", range(3))
def test_a_later_run_goes_on_behind_the_logged_place(tmp_path: Path, seed: int) -> None:
    chance, path = random.Random(seed), tmp_path / "s.nq"
    whole = b"".join(quad(n, value) for n in range(300) for value in range(chance.randrange(1, 4)))
    marks: dict[str, str] = {}
    found, at = b"", 0
    while at < len(whole):
        end = min(len(whole), at + chance.randrange(3000, 9000))
        with path.open("ab") as file:
            file.write(whole[at:end])
        at = end
        intake = started(path, marks=marks)
        until(lambda: bool(intake.messages))  # noqa: B023
        intake.stop()
        found += text_of(intake)
        marks = intake.marks
    intake = started(path, marks=marks)
    until(lambda: len(found + text_of(intake)) == len(whole))
    intake.stop()
    assert found + text_of(intake) == whole
    last = part_of_file(intake.messages[-1].media_type)
    assert last is not None
    assert last.line == 1 + whole[: -len(intake.messages[-1].payload)].count(b"\n")


def test_each_part_has_whole_events_and_none_is_much_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arriving_files, "_PART_BYTES", 1000)
    path = tmp_path / "s.nq"
    sizes = [1, 5, 200, 3, 1, 1, 40]
    path.write_bytes(b"".join(quad(n, v) for n, size in enumerate(sizes) for v in range(size)))
    intake = started(path)
    until(lambda: text_of(intake) == path.read_bytes())
    intake.stop()
    graphs = [{line.split()[3] for line in m.payload.splitlines()} for m in intake.messages]
    assert sum(map(len, graphs)) == len(sizes)
    assert len(graphs) >= 3


def test_documents_are_read_when_they_have_settled(tmp_path: Path) -> None:
    path = tmp_path / "s.trig"
    path.write_bytes(b"<http://e/g> { <http://e/x> a ")
    intake = started(path)
    time.sleep(0.3)
    with path.open("ab") as file:
        file.write(b"<http://e/C> }")
    (message,) = intake.wait(1)
    assert message.payload == path.read_bytes()
    assert message.media_type.startswith("application/trig")
    with path.open("ab") as file:
        file.write(b"<http://e/h> { <http://e/x> a <http://e/C> }")
    until(lambda: bool(intake.notes))
    intake.stop()
    assert "has changed since it was read" in intake.notes[0]


def test_a_last_line_without_an_end_is_read_late(tmp_path: Path) -> None:
    (tmp_path / "s.nq").write_bytes(quad(1) + quad(2).rstrip())
    begin = time.monotonic()
    intake = started(tmp_path)
    until(lambda: len(text_of(intake)) == len(quad(1) + quad(2)) - 1)
    intake.stop()
    assert time.monotonic() - begin > 1.0


def test_a_file_that_is_made_anew_is_read_from_its_begin(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    path.write_bytes(quad(1) + quad(2))
    intake = started(path)
    until(lambda: text_of(intake) == quad(1) + quad(2))
    path.write_bytes(quad(3))
    until(lambda: text_of(intake).endswith(quad(3)))
    intake.stop()
    assert "has become shorter" in intake.notes[0]


def test_places_of_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "a.nq").write_bytes(quad(1))
    intake = started(tmp_path)
    intake.wait(1)
    (tmp_path / "a.nq").unlink()
    (tmp_path / "b.nq").write_bytes(quad(2))
    intake.wait(2)
    intake.stop()
    assert [name for name, text in intake.marks.items() if text] == [str(tmp_path / "b.nq")]


def test_rows_of_csv_may_have_line_ends_between_quotes(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_bytes(b'a,b\n1,"x\n')
    intake = started(path, of_rows=True)
    time.sleep(0.9)
    assert intake.messages == []
    with path.open("ab") as file:
        file.write(b'y"\n2,z\n3')
    (message,) = intake.wait(1)
    assert message.payload == b'a,b\n1,"x\ny"\n2,z\n'
    with path.open("ab") as file:
        file.write(b",u\n")
    (_, message) = intake.wait(2)
    intake.stop()
    assert message.payload == b"a,b\n3,u\n"
    part = part_of_file(message.media_type)
    assert part is not None
    assert (part.line, part.row) == (4, 3)  # its second line is the file's fifth


def test_what_cannot_be_followed_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or directory"):
        started(tmp_path / "nowhere").wait(1)
    (tmp_path / "s.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="none of the tables and JSON lines"):
        started(tmp_path / "s.parquet", of_rows=True).wait(1)
    with pytest.raises(InputError, match="none of the RDF formats"):
        started(tmp_path / "s.parquet").wait(1)
    (tmp_path / "s.nt").write_bytes(b"<http://e/x> a <http://e/C> .\n" * 2)
    intake = started(tmp_path)
    until(lambda: bool(intake.notes))
    intake.stop()
    assert "--triples-per-event" in intake.notes[0]
    options = {"messages": MessageOptions(format="trig")}
    intake = started(tmp_path / "s.parquet", options=options)
    assert intake.wait(1)[0].media_type.startswith("application/trig")
    intake.stop()


def test_a_file_whose_name_is_no_utf_8_is_reported(tmp_path: Path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff.nq", "wb") as file:
        file.write(b"<s:> <p:> <o:> <g:> .\n")
    (tmp_path / "a.csv").write_text("a\n1\n")
    intake = ListIntake(
        ArrivingFiles(str(tmp_path), StreamOptions("http://e/s", (), live=True), True)
    )
    assert len(intake.wait(1)) == 1
    intake.stop()
    (note,) = intake.notes
    assert "its name is no UTF-8" in note


def test_a_later_file_waits_for_the_last_event_of_the_one_before(tmp_path: Path) -> None:
    intake = started(tmp_path)
    for number in range(6):
        hidden = tmp_path / f".{number}.nq"
        hidden.write_bytes(quad(2 * number) + quad(2 * number + 1))
        hidden.rename(tmp_path / f"{number}.nq")
        time.sleep(0.1)
    until(lambda: text_of(intake).count(b"\n") == 12)
    intake.stop()
    assert text_of(intake) == b"".join(quad(event) for event in range(12))


def test_files_that_grow_together_are_all_read(tmp_path: Path) -> None:
    intake = started(tmp_path)
    for event in range(20):
        with (tmp_path / f"{event % 2}.nq").open("ab") as file:
            file.write(quad(event))
        time.sleep(0.05)
        if event == 15:
            until(lambda: text_of(intake).count(b"\n") >= 8)
    until(lambda: text_of(intake).count(b"\n") == 20)
    intake.stop()
