"""FILTERs on places: by the index, without it, and on pushed events, against a brute force."""

from __future__ import annotations

from pathlib import Path

import pytest
import shapely

import spaseq
from spaseq.runtime.job.job import Stats
from tests.places.world import FORMS, World, query, within_metres

POINT = """BIND(STRDT(CONCAT("POINT(", ?x, " ", ?y, ")"), geo:wktLiteral) AS ?p)"""
NUMBERS = "?o w:long ?x ; w:lat ?y ."


def answers(found: object) -> set[tuple[str, str]]:
    return {tuple(m.bindings[v][1:-1] for v in "vz") for m in found}  # type: ignore


def run(
    text: str, stream: Path, kb: Path, stats: Stats | None = None, **options: object
) -> set[tuple[str, str]]:
    given = {"streams": {"S": stream}, "kb": {"http://e/kb": kb}, "threads": 1, **options}
    return answers(spaseq.run(text, runtime="local", stats=stats, **given))  # type: ignore[arg-type]


CONDITIONS = {
    "geof:sfWithin(?p, ?a)": lambda p, a: a.contains(p),
    "geof:sfContains(?a, ?p)": lambda p, a: a.contains(p),
    "geof:sfIntersects(?p, ?a) && STRLEN(STR(?z)) < 100": lambda p, a: a.intersects(p),
    "geof:ehInside(?p, ?a)": lambda p, a: a.contains(p),
    "geof:distance(?p, ?a, uom:kilometre) < 40": within_metres(40_000),
    "40000 > geof:distance(?a, ?p)": within_metres(40_000),
    "geof:sfWithin(?p, geof:buffer(?a, 0))": lambda p, a: a.contains(p),
}


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("disable", [(), ("indexed-places",)], ids=["index", "plain"])
def test_events_and_zones(condition: str, disable: tuple[str, ...], tmp_path: Path) -> None:
    world, stats = World(3, 30 if "distance" in condition else 100), Stats()
    found = run(query(condition), *world.write(tmp_path), stats, disable=disable)
    expected = world.expected(CONDITIONS[condition])
    assert found == expected
    assert len(found) >= 3
    assert stats.bad_geometries > 0 and stats.bad == 0


@pytest.mark.parametrize("place", ["before", "after"])
def test_points_made_of_latitude_and_longitude(place: str, tmp_path: Path) -> None:
    world = World(4, 100)
    parts = (f"{NUMBERS} {POINT}", "") if place == "before" else (NUMBERS, POINT)
    text = query("geof:sfWithin(?p, ?a)", *parts)
    found = run(text, *world.write(tmp_path, ("numbers",)))
    assert found == {
        (f"http://e/{v}", f"http://z/{z}")
        for v, (x, y) in enumerate(world.positions)
        for z, area in enumerate(world.zones)
        if area.contains(shapely.Point(x, y))
    }
    assert "uses a spatial index" in str(spaseq.explain(text))


@pytest.mark.parametrize("condition", ["geof:sfWithin(?p, ?a)", "geof:distance(?a, ?p) <= 3e4"])
def test_pushed_events(condition: str, tmp_path: Path) -> None:
    world = World(5, 100)
    stream, kb = world.write(tmp_path)
    text = query(condition)
    assert "pushed one by one: without columns" in str(spaseq.explain(text))
    whole = run(text, stream, kb)
    engine = spaseq.Engine(text, kb={"http://e/kb": kb})
    found: set[tuple[str, str]] = set()
    for number, triples in enumerate(world.events()):
        graph = "".join(f"{triple} .\n" for triple in triples)
        found |= answers(engine.push("S", graph, number * 1000))
    assert found | answers(engine.close()) == whole


def test_steps_that_compare_their_own_places(tmp_path: Path) -> None:
    world = World(6, 30)
    stream, kb = world.write(tmp_path, FORMS[:3])
    text = query("geof:sfWithin(?p, ?a)").replace("SEQ (A)", "SEQ (A; B)")
    text = text.replace("WHERE {", "WHERE {", 1)[:-1] + (
        " DEFINE GPM B ON S { ?o2 :vessel ?w ; :at ?q FILTER(geof:distance(?p, ?q) < 50000) } }"
    )
    assert run(text, stream, kb) == run(text, stream, kb, disable=("indexed-places",))


@pytest.mark.spark
def test_workers_of_spark_have_the_index(tmp_path: Path) -> None:
    stream, kb = World(7, 100).write(tmp_path)
    text, stats = query("geof:sfWithin(?p, ?a)"), Stats()
    on_spark = spaseq.run(text, {"S": stream}, {"http://e/kb": kb}, "spark", stats=stats)
    assert answers(on_spark) == run(text, stream, kb)
    assert stats.bad_geometries > 0
