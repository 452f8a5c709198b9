"""`spaseq init`: all that it writes passes, and a plain loop gives the answers, too."""

from __future__ import annotations

import csv
import datetime
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.cli.main import main
from spaseq.first_steps.field_types import type_of

SHARED = Path(__file__).parents[3] / "shared"
XSD = {n: f"http://www.w3.org/2001/XMLSchema#{n}" for n in ("integer", "dateTime")}
MINUTE, DAY = 60_000, 86_400_000

Row = tuple[int, Any, Any]
"""(time in ms, key, value)."""


def moment(text: str, form: str | None = None) -> int:
    read = (
        datetime.datetime.fromisoformat(text)
        if form is None
        else (datetime.datetime.strptime(text, form))
    )
    aware = read if read.tzinfo else read.replace(tzinfo=datetime.UTC)
    return round(aware.timestamp() * 1000)


def growing(rows: Iterable[Row], window: int) -> Counter[tuple[Any, ...]]:
    """(key, before, after) for each row and the next one of its key with a greater value."""
    found: Counter[tuple[Any, ...]] = Counter()
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row[0]):
        groups[row[1]].append(row)
    for key, group in groups.items():
        for place, (time, _, value) in enumerate(group):
            for later, _, other in group[place + 1 :]:
                if later - time > window:
                    break
                if other > value:
                    found[key, value, other] += 1
                    break
    return found


def started(
    path: Path, directory: Path, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, str]]:
    """The answers of the first query over the file, once all that is written has passed."""

    def status(*words: str) -> tuple[object, str]:
        with pytest.raises(SystemExit) as done:
            main([*words])
        return done.value.code, capsys.readouterr().out

    code, said = status("init", str(directory), "--from", str(path))
    assert code == 0
    (run,) = [line.split() for line in said.splitlines() if line.startswith("  spaseq run")]
    lifts = [str(lift) for lift in directory.glob("*.lift.rq")]
    given = run[3 : run.index("--runtime")]
    code, said = status("check", run[2], *lifts, *given)
    assert (code, "error" in said) == (0, False), said
    code, said = status("test", str(directory / "queries"))
    assert code == 0, said
    code, said = status(*run[1:])
    assert code == 0
    answers = [*csv.DictReader(io.StringIO(said))]
    assert answers
    return answers


def answered(answers: list[dict[str, str]]) -> Counter[tuple[Any, ...]]:
    found = ((a.get("key"), Decimal(a["before"]), Decimal(a["after"])) for a in answers)
    return Counter(found)


SHEET = [
    (f"{day:02}.03.2026", f"K{day % 3}", f"{day * 7 % 11},{day % 10}0") for day in range(1, 28)
]
ORDERS = [
    (f"03/{i % 27 + 1:02}/2026 {i % 24:02}:15", f"Smith, {i % 4}", i * 7 % 30) for i in range(40)
]
READINGS = [(1_767_600_000 + 30 * i, f"d{i % 3}", i * 5 % 7 + 0.5) for i in range(60)]
SALES = [(f"2026-02-{i % 9 + 1:02}T10:{i:02}:00+01:00", f"c{i % 5}", i * 3 % 8) for i in range(30)]
PRICES = [(datetime.datetime(2026, 1, 1, 10, i), "AB"[i % 2], float(i * 5 % 9)) for i in range(40)]


def sheet(path: Path) -> list[Row]:
    text = "".join(f"{at};{key};{value}\n" for at, key, value in SHEET)
    path.write_text(f"Datum;Konto;Betrag\n{text}", "utf-8-sig")
    return [(moment(a, "%d.%m.%Y"), k, Decimal(v.replace(",", "."))) for a, k, v in SHEET]


def orders(path: Path) -> list[Row]:
    text = "".join(f'{at},"{key}",{value}.50\n' for at, key, value in ORDERS)
    path.write_text(f"Order Date,Customer,Total\n{text}")
    return [(moment(a, "%m/%d/%Y %H:%M"), k, Decimal(f"{v}.5")) for a, k, v in ORDERS]


def readings(path: Path) -> list[Row]:
    rows = ({"device": {"id": k}, "ts": a, "temperature": v, "tags": [1]} for a, k, v in READINGS)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [(a * 1000, k, Decimal(str(v))) for a, k, v in READINGS]


def sales(path: Path) -> list[Row]:
    rows = [{"createdAt": a, "customer": {"name": k}, "total": v / 2} for a, k, v in SALES]
    path.write_text(json.dumps(rows, indent=1))
    return [(moment(a), k, Decimal(str(v / 2))) for a, k, v in SALES]


def prices(path: Path) -> list[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    at, symbol, price = zip(*PRICES, strict=True)
    pq.write_table(pa.table({"symbol": symbol, "at": at, "price": price}), path)
    return [(moment(a.isoformat()), k, Decimal(str(v))) for a, k, v in PRICES]


def shop(path: Path) -> list[Row]:
    """As a till in Germany writes it: day and hour apart, thousands with points, not UTF-8."""
    sold = [(datetime.datetime(2026, 1, 5, 8, i * 3 % 60), "ÄB"[i % 2], i * 977 % 4000 + 0.5)
            for i in range(50)]  # fmt: skip
    text = "".join(f"{k};{a:%d.%m.%Y};{a:%H:%M};{_german(v)} €\n" for a, k, v in sold)
    path.write_text(f"Kasse;Datum;Uhrzeit;Umsatz brutto\n{text}", "cp1252")
    return [(moment(a.isoformat()), k, Decimal(str(v))) for a, k, v in sold]


def _german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def american(path: Path) -> list[Row]:
    """As a spreadsheet in the USA writes it: days and months of one digit, dollars."""
    days = [datetime.datetime(2026, 1 + i % 12, 1 + i % 28, i % 24, i) for i in range(50)]
    sold = [(day, "xy"[i % 2], i * 977 % 4000) for i, day in enumerate(days)]
    lines = (f'{a.month}/{a.day}/{a.year} {a.hour}:{a:%M},{k},"${v:,}.25"\n' for a, k, v in sold)
    path.write_text("Sold,Till,Total\n" + "".join(lines))
    return [(moment(a.isoformat()), k, Decimal(f"{v}.25")) for a, k, v in sold]


@pytest.mark.parametrize(
    ("name", "make", "window"),
    [
        ("kasse.csv", shop, 15 * MINUTE),
        ("american.csv", american, None),
        ("sheet.csv", sheet, 7 * DAY),
        ("orders.csv", orders, 7 * DAY),
        ("readings.jsonl", readings, 15 * MINUTE),
        ("sales.json", sales, None),
        ("prices.parquet", prices, 15 * MINUTE),
    ],
)
def test_made_files(
    name: str,
    make: Callable[[Path], list[Row]],
    window: int | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = make(tmp_path / name)
    found = answered(started(tmp_path / name, tmp_path / "first", capsys))
    written = re.search(r"WITHIN (\d+) (\w+)", (tmp_path / "first/queries/first.rq").read_text())
    assert written is not None
    unit = {"MINUTES": MINUTE, "HOURS": 60 * MINUTE, "DAYS": DAY}[written[2]]
    assert window in (None, int(written[1]) * unit)
    assert found == growing(rows, int(written[1]) * unit)


QUAD = re.compile(r"(\S+) <([^>]*)> (.*?) (?:<([^>]*)> )?\.$", re.MULTILINE)
STREAMS = [
    ("aarhus/traffic-182901.nq", "madeBySensor", "avgSpeed"),
    ("aarhus/traffic-182955.nq", "madeBySensor", "avgSpeed"),
    ("aarhus/traffic-183009.nq", "madeBySensor", "avgSpeed"),
    ("aarhus/traffic-183063.nq", "madeBySensor", "avgSpeed"),
    ("aarhus/traffic-183117.nq", "madeBySensor", "avgSpeed"),
    ("aarhus/traffic-195312.nq", "madeBySensor", "avgSpeed"),
    ("aarhus/weather.nq", "madeBySensor", "temperature"),
    ("aarhus/parking.nq", "madeBySensor", "parkedVehicles"),
    ("cards/transactions.nq", "id", "amount"),
    ("stocks/nasdaq.nq", "ticker", "open"),
]


def value_of(term: str) -> Any:
    found = re.match(r'"([^"]*)"(.*)$', term)
    if found is None:
        return term.strip("<>")
    return Decimal(found[1]) if "integer" in found[2] or "double" in found[2] else found[1]


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        pytest.param(*one, marks=() if number in (6, 8) else pytest.mark.thorough)
        for number, one in enumerate(STREAMS)
    ],
)
def test_real_streams(
    name: str, key: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = SHARED / "data" / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    found = answered(started(path, tmp_path / "first", capsys))
    events: dict[str, dict[str, Any]] = defaultdict(dict)
    for subject, predicate, term, graph in QUAD.findall(path.read_text()):
        local = re.split(r"[/#]", predicate)[-1]
        events[graph or subject.strip("<>")].setdefault(local, value_of(term))
    text = (tmp_path / "first/queries/first.rq").read_text()
    used = [
        re.split(r"[/#]", iri)[-1] for iri in re.findall(r"\?a <(\S*)> \?\w+ ; <(\S*)>", text)[0]
    ]
    assert used == [key, value]
    written = re.search(r"WITHIN (\d+) (\w+)", text)
    assert written is not None
    unit = {"MINUTES": MINUTE, "HOURS": 60 * MINUTE}[written[2]]
    rows = [
        (moment(e["generatedAtTime"]), e[key], e[value])
        for e in events.values()
        if key in e and value in e
    ]
    assert found == growing(rows, int(written[1]) * unit)


MESSAGES = [
    "cloudevents/batch.json",
    "cloudevents/structured.json",
    "cloudevents/structured-base64.json",
    "cloudevents/kafka-binary.json",
    "confluent-avro/expected.json",
    "debezium/topic.jsonl",
    "debezium/create.json",
    "debezium/delete.json",
    "debezium/snapshot-read.json",
    "debezium/update.json",
    "debezium/key-with-schema.json",
    "debezium/update-with-schema.json",
    "geojson/collection.json",
    "geojson/feature.json",
    "geojson/jsonfg.json",
    "ngsi-ld/notification-normalized.json",
    "ngsi-ld/notification-concise.json",
    "ngsi-ld/subscription.json",
    "ngsi-ld/notification-keyvalues.json",
    "ngsi-ld/notification-deletes.json",
    "sosa/observation.jsonld",
]
DEFAULT = {"debezium/topic.jsonl", "ngsi-ld/notification-normalized.json"}


def flat(value: Any, before: str = "") -> Iterable[tuple[str, Any]]:
    """(name, value) of the fields of an object, nested ones with the names around them."""
    for field, inner in value.items():
        own = f"{before}{'_' if before else ''}{re.sub(r'[^A-Za-z0-9_]', '_', field)}"
        if isinstance(inner, dict):
            yield from flat(inner, own)
        else:
            yield own, inner


def objects_of(path: Path) -> list[dict[str, Any]]:
    """The objects of a file: its lines, its list, or the one that it lists."""
    text = path.read_text("utf-8")
    try:
        whole = json.loads(text)
    except ValueError:
        return [v for line in text.splitlines() if isinstance(v := json.loads(line), dict)]
    if isinstance(whole, list):
        return whole
    lists = [v for v in whole.values() if isinstance(v, list) and len(v) > 1]
    lists = [v for v in lists if all(isinstance(each, dict) for each in v)]
    return lists[0] if len(lists) == 1 else [whole]


def looped(path: Path, directory: Path) -> Counter[tuple[Any, ...]]:
    """The answers of the first query by a plain loop: (key, before, after) or (key,).

    The names of fields are those that the query and the lift have.
    """
    query = (directory / "queries/first.rq").read_text()
    (lift,) = [lift.read_text() for lift in directory.glob("*.lift.rq")]
    key, value = (re.search(rf":(\w+) \?{name}\b", query) for name in ("key", "before"))
    times = re.findall(r"BIND \(.*?\?(\w+)\b.* AS \?\w*when_*\)", lift)
    rows: list[Row] = []
    for number, each in enumerate(objects_of(path), 1):
        fields = dict(flat(each))
        for time in times:
            own = [time.rpartition("_")[0], ""] if len(times) > 1 else None
            at = fields.get(time, number * 1000 if time == "_line" else None)
            read = [
                None
                if field is None
                or (own and "_" in field[1] and field[1].partition("_")[0] not in own)
                else fields.get(field[1])
                for field in (key, value)
            ]
            if at is None or any(v is None for v, f in zip(read, (key, value), strict=True) if f):
                continue
            rows.append((at if isinstance(at, int) else moment(at), *read))
    if "SEQ (A; B)" not in query:
        return Counter((str(row[1]),) for row in rows)
    length, unit = re.search(r"WITHIN (\d+) (\w+)", query).groups()  # type: ignore[union-attr]
    window = int(length) * {"MINUTES": MINUTE, "HOURS": 60 * MINUTE, "DAYS": DAY}[unit]
    if value is not None:
        return growing(rows, window)
    numbered = [(at, name, n) for n, (at, name, _) in enumerate(sorted(rows, key=lambda r: r[0]))]
    return Counter((name,) for name, _, _ in growing(numbered, window).elements())


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=() if m in DEFAULT else pytest.mark.thorough) for m in MESSAGES],
)
def test_real_messages(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = SHARED / "messages" / name
    if not path.exists():
        pytest.skip(f"{path} is not there")
    answers = started(path, tmp_path / "first", capsys)
    assert found_in(answers) == looped(path, tmp_path / "first")


def found_in(answers: list[dict[str, str]]) -> Counter[tuple[Any, ...]]:
    return answered(answers) if "before" in answers[0] else Counter((a["key"],) for a in answers)


ROOMS = [
    {
        "id": f"urn:ngsi-ld:Room:{n % 3}",
        "type": "Room" if n % 2 else ["Room", "Hall"],
        "temperature": {"value": 18 + n * 7 % 5 / 2, "observedAt": f"2026-03-02T10:{n:02}:00Z"},
        "humidity": {"value": 40 + n * 3 % 7, "observedAt": f"2026-03-02T10:{n * 3 % 60:02}:30Z"},
        "event": [1],
        "@context": {"@vocab": "http://example/"},
    }
    for n in range(30)
]


@pytest.mark.parametrize("name", ["rooms.jsonl", "rooms.json", "rooms.jsonld", "graph.jsonld"])
def test_entities_with_a_time_in_each_attribute(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    lines = "".join(json.dumps(room) + "\n" for room in ROOMS)
    whole = json.dumps({"@graph": ROOMS} if name == "graph.jsonld" else ROOMS)
    path.write_text(lines if name == "rooms.jsonl" else whole)
    answers = started(path, tmp_path / "first", capsys)
    rows = [
        (moment(room["temperature"]["observedAt"]), room["id"], room["temperature"]["value"])  # type: ignore[index]
        for room in ROOMS
    ]
    assert found_in(answers) == growing(rows, 15 * MINUTE)
    assert "2 events" in (tmp_path / f"first/{path.stem.title()}.lift.rq").read_text()


TIMED = {
    "result.trig": """@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
:g{n} {{ :o{n} :sensor :s{s} ; :result {v} ; :phenomenon "2026-01-01T08:00:00Z"^^xsd:dateTime ,
  "2026-01-01T09:00:00Z"^^xsd:dateTime  . :g{n} :resultTime "{t}"^^xsd:dateTime }}
""",
    "result.nq": """<http://e/o{n}> <http://e/sensor> <http://e/s{s}> <http://e/g{n}> .
<http://e/o{n}> <http://e/result> "{v}"^^<{integer}> <http://e/g{n}> .
<http://e/g{n}> <http://e/at> "{t}"^^<{dateTime}> .
""",
}


@pytest.mark.parametrize("name", [*TIMED, "result.jsonld"])
def test_rdf_with_another_time_predicate(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(MINUTE * n, n % 3, n * 5 % 7) for n in range(20)]
    times = [f"1970-01-01T00:{n:02}:00Z" for n in range(20)]
    if name in TIMED:
        texts = [
            TIMED[name].format(n=n, s=s, v=v, t=t, **XSD)
            for n, ((_, s, v), t) in enumerate(zip(rows, times, strict=True))
        ]
        (tmp_path / name).write_text("".join(texts))
    else:
        graphs = [
            {"@id": f"http://e/g{n}", "http://e/at": {"@value": t, "@type": XSD["dateTime"]},
             "@graph": {"http://e/sensor": {"@id": f"http://e/s{s}"}, "http://e/result": v}}
            for n, ((_, s, v), t) in enumerate(zip(rows, times, strict=True))
        ]  # fmt: skip
        (tmp_path / name).write_text(json.dumps(graphs))
    answers = started(tmp_path / name, tmp_path / "first", capsys)
    expected = growing([(t, f"http://e/s{s}", v) for t, s, v in rows], 15 * MINUTE)
    assert answered(answers) == expected
    assert 'time_predicate = "http://e/' in (tmp_path / "first/spaseq.toml").read_text()


def test_a_time_that_is_not_the_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = TIMED["result.trig"].replace(". :g{n} :resultTime", "; :resultTime")
    (tmp_path / "a.trig").write_text(text.format(n=1, s=1, v=1, t="2026-01-01T09:00:00Z"))
    with pytest.raises(SystemExit):
        main(["init", str(tmp_path / "first"), "--from", str(tmp_path / "a.trig")])
    said = capsys.readouterr().err
    assert "is a time of <http://e/o1>" in said
    assert "must be of its graph, <http://e/g1>" in said


def test_a_file_without_names_of_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(f"2026-01-05 10:{n:02}:00,s{n % 3},{n * 5 % 7}\n" for n in range(30))
    (tmp_path / "bare.csv").write_text(text)
    found = answered(started(tmp_path / "bare.csv", tmp_path / "first", capsys))
    rows = [(n * MINUTE, f"s{n % 3}", n * 5 % 7) for n in range(30)]
    assert found == growing(rows, 15 * MINUTE)


def test_a_line_for_excel_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("sep=;\nat;value\n05.01.2026;7\n")
    with pytest.raises(SystemExit):
        main(["init", str(tmp_path / "first"), "--from", str(tmp_path / "a.csv")])
    assert "begins with a line sep=" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["sheet.xlsx", "triples.ttl", "empty.jsonld", "list.json"])
def test_what_cannot_be_read_is_said(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("[]")
    with pytest.raises(SystemExit) as done:
        main(["init", str(tmp_path / "first"), "--from", str(tmp_path / name)])
    said = "has no rows" if "json" in name else "save a spreadsheet as CSV"
    assert (done.value.code, said in capsys.readouterr().err) == (3, True)
    assert not (tmp_path / "first").exists()


def test_without_files_there_is_an_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as done:
        main(["init", "first"])
    assert done.value.code == 0
    with pytest.raises(SystemExit) as done:
        main(["test", "first"])
    assert (done.value.code, "1 passed" in capsys.readouterr().out) == (0, True)
    with pytest.raises(SystemExit) as done:
        main(["init", "first"])
    assert (done.value.code, "is there already" in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.234.567.890,5", "1234567890.5"),
        ("1,234,567.25", "1234567.25"),
        ("-1.234,50 €", "-1234.50"),
        ("$1,234", "1234"),
        ("EUR 7,5", "7.5"),
        ("1e5", "1e5"),
    ],
)
def test_what_a_lift_casts_is_what_was_found(text: str, value: str, tmp_path: Path) -> None:
    kind = type_of("v", [text])
    assert kind.value(text) == Decimal(value)
    assert cast(f"{kind.term('v')}", text, tmp_path) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("5.1.2026 9:05", "2026-01-05T09:05:00Z"),
        ("05.01.26 09:05:06", "2026-01-05T09:05:06Z"),
        ("31.12.2026", "2026-12-31T00:00:00Z"),
        ("12/31/2026 23:59", "2026-12-31T23:59:00Z"),
        ("31/12/26", "2026-12-31T00:00:00Z"),
        ("1/5/2026", "2026-01-05T00:00:00Z"),
        ("2026/01/05 09:05", "2026-01-05T09:05:00Z"),
        ("2026-01-05", "2026-01-05T00:00:00Z"),
        ("2026-01-05 10:00:00 +0100", "2026-01-05T09:00:00Z"),
        ("2026-01-05T10:00:00.250+0100", "2026-01-05T09:00:00.250Z"),
        ("2026-01-05 10:00:00 UTC", "2026-01-05T10:00:00Z"),
        ("1767600000.25", "2026-01-05T08:00:00.250Z"),
    ],
)
def test_times_that_a_lift_makes_are_those_found(text: str, time: str, tmp_path: Path) -> None:
    kind = type_of("at", [text])
    assert kind.value(text) == moment(time)
    assert cast(kind.term("v"), text, tmp_path) == moment(time)


def cast(expression: str, text: str, directory: Path) -> Any:
    """What a lift makes of a text by an expression: a number, or a time in ms."""
    lift = f"""PREFIX : <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#>
        PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
        CONSTRUCT {{ GRAPH :g {{ :s :p ?cast }} :g prov:generatedAtTime 0 }}
        WHERE {{ BIND ({expression} AS ?cast) }}"""
    query = """PREFIX : <http://e/> SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
        WHERE { SEQ (A) DEFINE GPM A ON S { :s :p ?v } }"""
    (match,) = spaseq.run(query, {"S": spaseq.Lifted([{"v": text}], lift)}, runtime="local")
    found = match.bindings["v"].to_python()
    if isinstance(found, datetime.datetime):
        return moment(found.isoformat())
    return Decimal(str(found))


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("a", ["1", "2", "-7"], "integer"),
        ("a", ["007", "12"], "number"),
        ("a", ["1.5", "2"], "number"),
        ("a", ["1,5", "2,25"], "number"),
        ("a", ["x", "1", "y"], "text"),
        ("at", ["2026-01-05T09:00:00Z"], "time"),
        ("at", ["2026-01-05 09:00"], "time"),
        ("at", ["05.01.2026 09:00:01"], "time"),
        ("at", ["2026-13-05T09:00:00Z"], "text"),
        ("ts", [1_767_600_000], "time"),
        ("count", [1_767_600_000], "integer"),
        ("ts", [1_767_600_000.5], "time"),
        ("ts", [1_767_600_000_000], "time"),
        ("a", [1.5, 2.0], "number"),
        ("a", ["1", "2", "3", "4.5"], "number"),
        ("a", ["1.234,50", "7,25"], "number"),
        ("a", ["1,234,567", "12,000"], "number"),
        ("a", ["-7,5 €", "1.000,00 €"], "number"),
        ("a", ["1e5", "2"], "number"),
        ("a", ["1.2.10", "1.2.9"], "text"),
        ("at", ["5.1.2026", "15.11.2026"], "time"),
        ("at", ["05.01.26 9:00"], "text"),
        ("at", ["05.01.26", "31.12.25"], "time"),
        ("at", ["1/5/2026 9:05", "12/31/2026 23:59"], "time"),
        ("at", ["2026/01/05 09:00"], "time"),
        ("at", ["09:00", "23:59"], "clock"),
        ("at", ["9:05:07", "25:00"], "text"),
    ],
)
def test_types_that_are_found(name: str, values: list[Any], kind: str) -> None:
    assert type_of(name, values).name == kind


def test_observations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = [("a", 0, 3), ("b", 1, 9), ("a", 4, 5), ("b", 5, 2), ("a", 6, 4), ("b", 7, 8)]
    text = "PREFIX s: <http://www.w3.org/ns/sosa/>\n" + "\n".join(
        f"<urn:o:{number}> a s:Observation ; s:madeBySensor <urn:s:{sensor}> ; s:resultTime "
        f'"2026-01-05T09:00:{second:02}Z"^^<{XSD["dateTime"]}> ; s:hasSimpleResult {level} .'
        for number, (sensor, second, level) in enumerate(levels)
    )
    path = tmp_path / "levels.sosa.ttl"
    path.write_text(text)
    answers = started(path, tmp_path / "first", capsys)
    rows = [(1000 * second, f"urn:s:{thing}", Decimal(level)) for thing, second, level in levels]
    assert answered(answers) == growing(rows, MINUTE)
    assert 'format = "sosa"' in (tmp_path / "first/spaseq.toml").read_text()


def test_a_feed_of_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    levels = [("a", 0, 3), ("b", 1, 9), ("a", 4, 5), ("b", 5, 2), ("a", 6, 4), ("b", 7, 8)]
    head = """PREFIX ldes: <https://w3id.org/ldes#> PREFIX tree: <https://w3id.org/tree#>
PREFIX dct: <http://purl.org/dc/terms/> PREFIX : <http://w/>
:f tree:view <> ; ldes:timestampPath dct:created ; ldes:versionOfPath dct:isVersionOf .
"""
    path = tmp_path / "weirs.ttl"
    path.write_text(
        head
        + "\n".join(
            f":f tree:member :m{number} . :m{number} dct:isVersionOf :{weir} ; :level {level} ; "
            f'dct:created "2026-01-05T09:00:{second:02}Z"^^<{XSD["dateTime"]}> .'
            for number, (weir, second, level) in enumerate(levels)
        )
    )
    answers = started(Path(f"ldes+file:{path}"), tmp_path / "first", capsys)
    rows = [(1000 * second, f"http://w/{thing}", Decimal(level)) for thing, second, level in levels]
    assert answered(answers) == growing(rows, MINUTE)
    assert "ldes+https://" in (tmp_path / "first/spaseq.toml").read_text()


def test_notifications_in_a_file_of_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"id": "urn:w", "type": "Weir", "level": {"value": 1}}
    path = tmp_path / "n.json"
    path.write_text(
        json.dumps({"type": "Notification", "notifiedAt": "2026-01-05T09:00:00Z", "data": [data]})
    )
    with pytest.raises(SystemExit) as done:
        main(["init", str(tmp_path / "first"), "--from", str(path)])
    assert done.value.code == 0
    assert "ends in .ngsild each of their entities is an event" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["ngsild", "cloudevents"])
def test_messages_about_things(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    levels = [("a", 0, 3), ("b", 1, 9), ("a", 4, 5), ("b", 5, 2), ("a", 6, 4), ("b", 7, 8)]
    lines = []
    for number, (thing, second, level) in enumerate(levels):
        at = f"2026-01-05T09:00:{second:02}Z"
        if form == "ngsild":
            seen = {"type": "Property", "value": level, "observedAt": at}
            entity = {"id": f"urn:w:{thing}", "type": "Weir", "level": seen}
            message = {"id": f"urn:n:{number}", "type": "Notification", "data": [entity]}
        else:
            data = {"@id": f"urn:w:{thing}", "http://w/level": level}
            message = {"specversion": "1.0", "id": str(number), "source": "urn:s", "type": "t"}
            message |= {"time": at, "data": data}
        lines.append(json.dumps(message))
    path = tmp_path / f"Weirs.{form}"
    path.write_text("\n".join(lines))
    answers = started(path, tmp_path / "first", capsys)
    rows = [(1000 * second, f"urn:w:{thing}", Decimal(level)) for thing, second, level in levels]
    assert answered(answers) == growing(rows, MINUTE)
    configuration = (tmp_path / "first/spaseq.toml").read_text()
    assert ('format = "ngsild"' in configuration) == (form == "ngsild")
