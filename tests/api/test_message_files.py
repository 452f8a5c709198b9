"""Files of NGSI-LD and CloudEvents against a plain loop over their messages, on both runtimes."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import spaseq
from spaseq.rdf.terms.times import format_time


def _value(term: Any) -> Any:
    """A number, or the text of an IRI."""
    return term.to_python() if str(term).startswith('"') else str(term).strip("<>")


RUNTIMES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
PREFIXES = "PREFIX : <http://w/> PREFIX n: <https://uri.etsi.org/ngsi-ld/>"


def readings(count: int) -> list[tuple[str, int, int]]:
    dice = Random(3)
    return [(f"urn:w:{dice.randrange(9)}", 1000 * i, dice.randrange(10)) for i in range(count)]


def notification(number: int, thing: str, at: int, level: int) -> dict[str, Any]:
    seen = {"value": level, "observedAt": format_time(at)}
    entity = {"id": thing, "type": "Weir", "level": seen}
    head = {"id": f"urn:n:{number}", "type": "Notification", "notifiedAt": format_time(at)}
    return {**head, "data": [entity], "@context": {"level": "http://w/level"}}


def cloud_event(number: int, thing: str, at: int, level: int) -> dict[str, Any]:
    head = {"specversion": "1.0", "id": str(number), "source": "urn:s", "type": "level"}
    turtle = {"datacontenttype": "text/turtle", "data": f"<{thing}> <http://w/level> {level} ."}
    return {**head, **turtle, "time": format_time(at)}


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("ending", "written", "pattern"),
    [
        ("ngsild", notification, "?w :level [ n:hasValue {} ]"),
        ("cloudevents", cloud_event, "?w :level {}"),
    ],
)
def test_rises_of_one_thing(
    tmp_path: Path, ending: str, written: Any, pattern: str, runtime: Any
) -> None:
    given = readings(400)
    path = tmp_path / f"s.{ending}"
    lines = [json.dumps(written(n, *each)) for n, each in enumerate(given)]
    path.write_text("\n".join([*lines[:200], "{no event", *lines[200:]]))
    query = (
        f"{PREFIXES} SELECT ?w ?x ?y WITHIN 20 SECONDS FROM STREAM S <http://e/s> WHERE {{ "
        f"SEQ(A, B) DEFINE GPM A ON S {{ {pattern.format('?x')} FILTER (?x < 3) }} "
        f"DEFINE GPM B ON S {{ {pattern.format('?y')} FILTER (?y > 6) }} }}"
    )
    bad: list[Any] = []
    answers = spaseq.run(query, {"S": str(path)}, runtime=runtime, on_bad=bad.append)
    found = sorted(tuple(map(_value, (a.bindings[v] for v in "wxy"))) for a in answers)
    wanted = [
        (thing, level, then)
        for (thing, _, level), (other, _, then) in pairwise(given)
        if thing == other and level < 3 and then > 6
    ]
    assert (found, len(bad)) == (sorted(wanted), 1)
    assert wanted
