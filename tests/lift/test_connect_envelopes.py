"""Envelopes of Kafka Connect: rows are payloads, and schemas type their values."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted_messages import LiftedBroker
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from tests.lift.lifting import integer, lift_of, objects, typed
from tests.rdf.streams import events_of

CONNECT, DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium.time."
READS = lift_of(":r :n ?k . :r :v ?a")


def enveloped(value: Any, **schema: Any) -> str:
    fields = [{"field": "a", **schema}, {"field": "k", "type": "int32"}]
    payload = {"a": value, "k": 1}
    return json.dumps({"schema": {"type": "struct", "fields": fields}, "payload": payload})


def file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def unscaled(number: int) -> str:
    return b64encode(number.to_bytes(9, "big", signed=True)).decode()


@pytest.mark.parametrize(
    ("name", "value", "term"),
    [
        (f"{CONNECT}Decimal", "BNLA", typed("3160.96", "decimal")),
        (f"{CONNECT}Decimal", "AA==", typed("0", "decimal")),
        (f"{CONNECT}Decimal", "zg==", typed("-0.5", "decimal")),
        (f"{CONNECT}Decimal", unscaled(-(10**20) - 1), typed("-1000000000000000000.01", "decimal")),
        (f"{CONNECT}Date", 20_514, typed("2026-03-02", "date")),
        (f"{DEBEZIUM}Date", -1, typed("1969-12-31", "date")),
        (f"{CONNECT}Timestamp", 1_500, typed("1970-01-01T00:00:01.5Z", "dateTime")),
        (f"{DEBEZIUM}Timestamp", -1, typed("1969-12-31T23:59:59.999Z", "dateTime")),
        (f"{DEBEZIUM}MicroTimestamp", 10, typed("1970-01-01T00:00:00.00001Z", "dateTime")),
        (f"{DEBEZIUM}NanoTimestamp", 2 * 10**9, typed("1970-01-01T00:00:02Z", "dateTime")),
        (f"{DEBEZIUM}Time", 3_600_000, typed("01:00:00", "time")),
        (f"{DEBEZIUM}MicroTime", 1_500_000, typed("00:00:01.5", "time")),
        (
            f"{DEBEZIUM}ZonedTimestamp",
            "2026-03-02T10:15:00+01:00",
            typed("2026-03-02T10:15:00+01:00", "dateTime"),
        ),
        (f"{DEBEZIUM}ZonedTime", "10:15:00Z", typed("10:15:00Z", "time")),
        (
            "io.debezium.data.VariableScaleDecimal",
            {"scale": 1, "value": "Cw=="},
            typed("1.1", "decimal"),
        ),
        ("io.debezium.data.Json", "[1]", '"[1]"'),
        (None, "__debezium_unavailable_value", None),
        (None, 7, integer(7)),
    ],
)
def test_values_of_schemas(tmp_path: Path, name: str | None, value: Any, term: str | None) -> None:
    line = enveloped(value, type="bytes", name=name, parameters={"scale": "2"})
    assert objects(file(tmp_path, line), READS) == ([[] if term is None else [term]], [])


@pytest.mark.parametrize("kind", ["double", "float64"])
def test_doubles(tmp_path: Path, kind: str) -> None:
    line = enveloped(3, type=kind)
    assert objects(file(tmp_path, line), READS) == ([[typed("3.0E0", "double")]], [])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (f"{CONNECT}Decimal", "?"),
        (f"{CONNECT}Decimal", 7),
        (f"{CONNECT}Date", "x"),
        (f"{CONNECT}Date", 10**9),
        (f"{DEBEZIUM}Timestamp", 10**18),
        (f"{DEBEZIUM}Time", 86_400_000),
        (f"{DEBEZIUM}ZonedTimestamp", "soon"),
        ("io.debezium.data.VariableScaleDecimal", {"scale": 10**9, "value": "Cw=="}),
    ],
)
def test_a_value_that_is_none_of_its_type(tmp_path: Path, name: str, value: Any) -> None:
    line = enveloped(value, type="bytes", name=name, parameters={"scale": "2"})
    found, bad = objects(file(tmp_path, line, '{"a": 2, "k": 1}'), READS)
    assert found == [[integer(2)]]
    assert bad == [(1, f"field a: it is no {name}, as its schema says")]
    unread = lift_of(":r :v ?k")
    assert objects(file(tmp_path, line), unread) == ([[integer(1)]], [])


def test_what_is_no_envelope(tmp_path: Path) -> None:
    lines = [
        '{"schema": null, "payload": {"a": 1}}',
        '{"schema": 1, "payload": null}',
        '{"schema": {"type": "struct", "fields": 7}, "payload": {"a": 2}}',
        '{"payload": {"a": 3}, "k": 3}',
        '{"schema": {}, "payload": [4]}',
    ]
    found, bad = objects(file(tmp_path, *lines), READS)
    assert found == [[integer(1)], [integer(2)], []]
    assert bad == [(5, "a row is an object, and the payload is none")]
    raw = lift_of(":r :v ?payload_a")
    found, bad = objects(file(tmp_path, lines[0]), raw)
    assert (found, bad) == ([[integer(1)]], [])


def test_many_rows_with_and_without_envelopes(tmp_path: Path) -> None:
    lines = [
        enveloped(n, type="int32") if n % 3 == 0 else json.dumps({"a": n, "k": 1})
        for n in range(3000)
    ]
    found, bad = objects(file(tmp_path, *lines), READS)
    assert (found, bad) == ([[integer(n)] for n in range(3000)], [])


def test_tombstones_are_no_events() -> None:
    plan = compiled_lift(READS)
    stream = LiftedBroker(StreamOptions("http://e/s", ()), "nats://h/s", plan, READS)
    bad: list[BadInput] = []
    messages = [
        Message(b'{"a": 1, "k": 1}', 0, 1, key=b"k"),
        Message(b"", 0, 2, key=b"k"),
        Message(b"", 0, 3),
    ]
    assert len([*events_of(stream.events(messages, "nats://h", bad.append))]) == 1
    assert [each.file for each in bad] == ["nats://h message 3"]
