"""CSV as spreadsheets write it, JSON arrays, formats of times, and casts that fail."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from spaseq.cli.main import main
from spaseq.errors import InputError, UsageError
from spaseq.lift.cells import field_types
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted_source import LiftedFiles
from spaseq.rdf.inputs.csv_dialect import CsvDialect, csv_dialect
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from tests.lift.lifting import PREFIXES, lift_of, typed

VALUE = lift_of(":r :v ?v", "BIND (xsd:decimal(?value) AS ?v)")


def read(path: Path, lift: str, csv: str = "", types: str = "") -> tuple[list[str], list[BadInput]]:
    """The objects of `:v`, in order, and what is reported."""
    found: list[BadInput] = []
    dialect = csv_dialect(csv) if csv else CsvDialect()
    options = StreamOptions("http://e/s", (str(path),), csv=dialect)
    source = LiftedFiles(options, compiled_lift(lift), field_types(types))
    source.check()
    objects = []
    for batch in source.lifted(found.append):
        events = batch.events
        objects += [
            str(events.terms[events.o[i]])
            for i in range(len(events.o))
            if events.terms[events.p[i]] == "<http://e/v>"
        ]
    return objects, found


def decimals(*texts: str) -> list[str]:
    return [typed(text, "decimal") for text in texts]


@pytest.mark.parametrize("many", [1, 5_000])  # one by one, and as columns
@pytest.mark.parametrize(
    ("csv", "text"),
    [
        ("", "id,value\n1,7.5\n"),
        ("", "id;value\n1;7.5\n"),
        ("", "id\tvalue\n1\t7.5\n"),
        ("", "id|value\n1|7.5\n"),
        ("", '"id, with a comma";value\n1;7.5\n'),
        ("delimiter=:", "id:value\n1:7.5\n"),
        ("quote='", "id,value\n1,'7.5'\n"),
        ("decimal=,", 'id,value\n1,"7,5"\n'),
        ("decimal=,", "id;value\n1;7,5\n"),
        ("header=id,value", "1,7.5\n"),
        ("header=id|value,delimiter=;", "1;7.5\n"),
    ],
)
def test_dialects(csv: str, text: str, many: int, tmp_path: Path) -> None:
    header, _, row = text.rpartition("\n")[0].rpartition("\n")
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n" * bool(header) + f"{row}\n" * many)
    assert read(path, VALUE, csv) == (decimals("7.5") * many, [])


def test_a_file_without_header_has_numbered_fields(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,a\n2,b\n")
    assert read(tmp_path / "t.csv", lift_of(":r :v ?_2"), "header=false")[0] == ['"a"', '"b"']


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1252"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("näme\nGrün\n".encode(encoding))
    assert read(tmp_path / "t.csv", lift_of(":r :v ?näme"), f"encoding={encoding}") == (
        ['"Grün"'],
        [],
    )


def test_bytes_that_are_not_in_the_encoding_cost_one_row(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a\n\x81\nx\n")
    objects, found = read(tmp_path / "t.csv", lift_of(":r :v ?a"), "encoding=cp1252")
    assert (objects, [(b.line, b.reason) for b in found]) == (['"x"'], [(2, "not cp1252")])


@pytest.mark.parametrize(
    "text",
    ["delimiter=ab", "delimeter=;", "decimal=x", "encoding=nope", "quote=ab", ";"],
)
def test_unknown_dialects(text: str) -> None:
    with pytest.raises(UsageError, match="--csv"):
        csv_dialect(text)


@pytest.mark.parametrize("many", [1, 5_000])
def test_formats_of_times(many: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("at\n" + "05.01.2026 09:30\n" * many + "5. Jan\n")
    lift = f"{PREFIXES}CONSTRUCT {{ :r :v ?at ; prov:generatedAtTime ?at }} WHERE {{ }}"
    objects, found = read(tmp_path / "t.csv", lift, types="at=dateTime(%d.%m.%Y %H:%M)")
    assert objects == [typed("2026-01-05T09:30:00Z", "dateTime")] * many
    assert [b.line for b in found] == [many + 2]
    assert '"5. Jan" is no time in the format %d.%m.%Y %H:%M' in found[0].reason


def test_a_zone_in_a_format_is_turned_into_utc(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("at\n2026-01-05 09:30:00.250 +0100\n")
    objects, _ = read(
        tmp_path / "t.csv", lift_of(":r :v ?at"), types="at=dateTime(%Y-%m-%d %H:%M:%S.%f %z)"
    )
    assert objects == [typed("2026-01-05T08:30:00.25Z", "dateTime")]


@pytest.mark.parametrize("many", [1, 5_000])
def test_casts_that_fail_are_counted(many: int, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('value\n7.5\n"7,5"\n' + "n/a\n" * many)
    lift = lift_of(":r :v ?v ; :w 1", "BIND (xsd:decimal(?value) AS ?v)")
    objects, found = read(tmp_path / "t.csv", lift)
    assert objects == decimals("7.5")
    assert sum(b.lost[1] for b in found if b.lost is not None) == many + 1
    assert found[0].lost is not None
    assert found[0].lost[0] == "value"
    assert (found[0].line, '"7,5" is no xsd:decimal' in found[0].reason) == (3, True)


def test_a_cast_in_a_filter_that_fails_is_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("value\n7\nx\n1\n")
    lift = lift_of(":r :v ?value", "FILTER (xsd:integer(?value) > 5)")
    objects, found = read(tmp_path / "t.csv", lift)
    assert (objects, [b.lost for b in found]) == (['"7"'], [("value", 1)])


def test_a_cast_that_may_fail_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("value\n7\nx\n")
    lift = lift_of(":r :v ?v", "BIND (COALESCE(xsd:integer(?value), 0) AS ?v)")
    assert [len(each) for each in read(tmp_path / "t.csv", lift)] == [2, 0]


@pytest.mark.parametrize(
    ("text", "values", "bad"),
    [
        ('[{"v": 1},\n {"v": 2}]', [1, 2], []),
        ("\ufeff [\n]", [], []),
        ('{\n "v": 3\n}', [3], []),
        ('{"v": 1}\n{"v": 2}\n', [1, 2], []),
        ('[{"v": 1},\n 5,\n{"v": 2}]', [1, 2], [2]),
        ('[{"v": 1},\n {"v": 2},\n {"v" 3}]', [1, 2], [3]),
        ('[{"v": 1}', [1], [1]),
        ('[{"v": 1}] x', [1], [1]),
    ],
)
def test_json_documents(text: str, values: list[int], bad: list[int], tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    objects, found = read(tmp_path / "t.json", lift_of(":r :v ?v"))
    assert objects == [typed(str(v), "integer") for v in values]
    assert [b.line for b in found] == bad


QUERY = """SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/v> ?v } }"""


def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(QUERY)
    Path("t.csv").write_text("value;at\n7,5;05.01.2026 09:30\nx;05.01.2026 09:31\n")
    Path("t.lift.rq").write_text(
        f"{PREFIXES}CONSTRUCT {{ :r :v ?v ; :w 1 ; prov:generatedAtTime ?at }} "
        "WHERE { BIND (xsd:decimal(?value) AS ?v) }"
    )
    given = ["--stream", "S=t.csv", "--types", "at=dateTime(%d.%m.%Y %H:%M)", "--csv", "decimal=,"]
    run = ["run", "q.rq", *given, "--lift", "t.lift.rq", "--runtime", "local", "--format", "csv"]
    with pytest.raises(SystemExit):
        main([*run, "--stats", "s.json"])
    found = capsys.readouterr()
    assert found.out.split() == ["v", "7.5"]
    assert "1 value of field value lost by a cast" in found.err
    assert 't.csv:3: field value: "x" is no xsd:decimal' in found.err
    stats = json.loads(Path("s.json").read_text())
    assert (stats["lost"], stats["bad"]) == ({"value": 1}, 0)
    with pytest.raises(SystemExit) as done:
        main([*run, "--strict", "--bad", "bad.jsonl"])
    assert done.value.code == 3
    assert json.loads(Path("bad.jsonl").read_text())["line"] == 3
    with pytest.raises(SystemExit):
        main(["check", "t.lift.rq", *given])
    assert "1 of the first 2 rows lose ?value by a cast" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        (b"\xff\xfea\x00\n\x00", "not UTF-8; --csv encoding=utf-16 may be right"),
        ("größe\n".encode("latin-1"), "not UTF-8; --csv encoding=cp1252 may be right"),
        (b"\x1f\x8b\x08\x00", "packed: give the file a name that ends in .gz"),
    ],
)
def test_a_header_that_is_no_text_says_what_to_write(
    tmp_path: Path, start: bytes, reason: str
) -> None:
    (tmp_path / "t.csv").write_bytes(start)
    with pytest.raises(InputError, match=f"the header is {reason}"):
        read(tmp_path / "t.csv", lift_of(":r :v ?a"))


def test_a_torn_gz_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n")[:12])
    with pytest.raises(InputError, match=r"cannot read .*t\.csv\.gz: the \.gz ends at byte 12"):
        read(path, lift_of(":r :v ?a"))
