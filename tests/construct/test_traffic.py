"""Congestions of streets make a stream, and a second query sees them spread."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest

import spaseq
from spaseq.cli import main
from tests.cases.raw import MINUTE, Event, Knowledge, in_order, iso, lexical, read_stream

HERE = Path(__file__).parent
CASE = HERE.parents[1] / "streams" / "traffic"
QUERIES = [HERE / "spreading.rq", HERE / "congestion.rq"]  # the reader first
NS = "http://traffic.example/ns#"
SENSORS = {f"S{i}": CASE / f"sensor-{i}.nq" for i in (1, 2, 3, 4)}
KB = {"http://traffic.example/kb": CASE / "kb.ttl"}
RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]


def jams() -> list[tuple[Event, str]]:
    """Each congestion and its street, in the order of answers."""
    kb = Knowledge(CASE / "kb.ttl")
    observes, limits = kb.one(f"{NS}observes"), kb.one(f"{NS}speedLimit")
    streams = (
        read_stream(path, f"http://traffic.example/stream/sensor-{i}")
        for i, path in enumerate(SENSORS.values(), 1)
    )
    found = []
    for report in in_order(*streams):
        street = observes[report.one("http://www.w3.org/ns/sosa/madeBySensor")]
        slow = report.number(f"{NS}avgSpeed") < Decimal("0.4") * Decimal(lexical(limits[street]))
        if slow and report.number(f"{NS}vehicleCount") >= 10:
            found.append((report, street))
    return found


def spreads() -> list[tuple[str, str, str, str, str]]:
    """Start, end, first street, second street and its speed of each answer, in order."""
    connected = Knowledge(CASE / "kb.ttl").all(f"{NS}connectedTo")
    found = []
    all_jams = jams()
    for i, (a, street) in enumerate(all_jams):
        for beyond in [to for by, to in connected if by == street]:
            j = next((j for j, (_, s) in enumerate(all_jams) if j > i and s == beyond), None)
            if j is not None and all_jams[j][0].time - a.time <= 15 * MINUTE:
                b = all_jams[j][0]
                speed = b.one(f"{NS}avgSpeed")
                found.append((j, i, (iso(a.time), iso(b.time), street, beyond, speed)))
    return [answer for _, _, answer in sorted(found)]


def by_query(matches: list[spaseq.Match]) -> tuple[list[spaseq.Match], list[spaseq.Match]]:
    congestion = [m for m in matches if m.query == "http://traffic.example/stream/congestion"]
    assert congestion == matches[: len(congestion)]  # the query that is read comes first
    return congestion, matches[len(congestion) :]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_jam_spreads(runtime: Literal["local", "spark"]) -> None:
    congestion, spreading = by_query(list(spaseq.run(QUERIES, SENSORS, KB, runtime)))
    assert [m.trace[0].event for m in congestion] == [jam.graph for jam, _ in jams()]
    names = {"street1": 2, "street2": 3, "speed2": 4}
    found = [
        (m.to_json()["start"], m.to_json()["end"], *(m.bindings[name].n3() for name in names))
        for m in spreading
    ]
    assert found == spreads()
    assert len(found) > 10
    events = {m.event for m in congestion}
    assert len(events) == len(congestion)
    assert all(t.event in events for m in spreading for t in m.trace)


def cli(*arguments: object) -> None:
    with pytest.raises(SystemExit) as done:
        main(["run", *map(str, arguments), "--runtime", "local", "--kb", str(CASE / "kb.ttl")])
    assert done.value.code == 0


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("form", "extension"), [("nquads", "nq"), ("trig", "trig")])
def test_a_file_of_events_is_read_as_the_stream(form: str, extension: str, tmp_path: Path) -> None:
    """A run with both queries equals a run of the first, then a run of the second on its output."""
    sensors = [x for name, path in SENSORS.items() for x in ("--stream", f"{name}={path}")]
    together, apart = tmp_path / "together.jsonl", tmp_path / "apart.jsonl"
    cli(*QUERIES, *sensors, "--out", together)
    made = tmp_path / f"congestion.{extension}"
    cli(QUERIES[1], *sensors, "--format", form, "--out", made)
    cli(QUERIES[0], "--stream", f"S={made}", "--out", apart)
    assert lines(apart) == [a for a in lines(together) if a["query"] == "spreading"]
    assert lines(apart)
