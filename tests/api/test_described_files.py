"""Files of observations, of a feed, and of a database's changes against a plain loop."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.rdf.terms.times import format_time
from tests.api.test_message_files import RUNTIMES, readings

PREFIXES = """PREFIX : <http://w/> PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX ldes: <https://w3id.org/ldes#> PREFIX tree: <https://w3id.org/tree#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
LIFT = """PREFIX : <http://w/> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { ?w :level ?after_level ; prov:generatedAtTime ?source_ts_ms }
WHERE { BIND (IRI(?after_id) AS ?w) }"""


def observations(path: Path) -> Any:
    text = "".join(
        f":o{n} a sosa:Observation ; sosa:hasFeatureOfInterest <{w}> ; "
        f'sosa:resultTime "{format_time(at)}"^^xsd:dateTime ; sosa:hasResult [ :level {level} ] .\n'
        for n, (w, at, level) in enumerate(readings(200))
    )
    file = path / "o.sosa.ttl"
    file.write_text(PREFIXES + text)
    return str(file)


def feed(path: Path) -> Any:
    given = readings(200)
    for page in (0, 1):
        text = "".join(
            f":f tree:member :m{n} . :m{n} :of <{given[n][0]}> ; :level {given[n][2]} ; "
            f':at "{format_time(given[n][1])}"^^xsd:dateTime .\n'
            for n in range(90 * page, 90 + 110 * page)
        )
        (path / f"page{page}.ttl").write_text(PREFIXES + text)
    root = ":f tree:view <> ; ldes:timestampPath :at . <> tree:relation "
    links = ", ".join(f"[ tree:node <page{page}.ttl> ]" for page in (1, 0))
    (path / "root.ttl").write_text(f"{PREFIXES}{root}{links} .")
    return f"ldes+file:{path / 'root.ttl'}"


def changes(path: Path) -> Any:
    rows = [
        {"after": {"id": w, "level": level}, "source": {"ts_ms": at}, "op": "u"}
        for w, at, level in readings(200)
    ]
    mixed = [{"schema": None, "payload": row} if n % 3 else row for n, row in enumerate(rows)]
    file = path / "c.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in mixed))
    return spaseq.Lifted(str(file), LIFT)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        (observations, "?e sosa:hasFeatureOfInterest ?w ; sosa:hasResult [ :level {} ]"),
        (feed, "?e :of ?w ; :level {}"),
        (changes, "?w :level {}"),
    ],
)
def test_rises_of_one_thing(tmp_path: Path, written: Any, pattern: str, runtime: Any) -> None:
    a, b = pattern.format("?x").replace("?e", "?e1"), pattern.format("?y").replace("?e", "?e2")
    query = (
        f"{PREFIXES} SELECT ?w ?x ?y WITHIN 20 SECONDS FROM STREAM S <http://e/s> WHERE {{ "
        f"SEQ(A, B) DEFINE GPM A ON S {{ {a} FILTER (?x < 3) }} "
        f"DEFINE GPM B ON S {{ {b} FILTER (?y > 6) }} }}"
    )
    found = sorted(
        (str(m.bindings["w"]).strip("<>"), *(m.bindings[v].to_python() for v in "xy"))
        for m in spaseq.run(query, {"S": written(tmp_path)}, runtime=runtime)
    )
    wanted = [
        (thing, level, then)
        for (thing, _, level), (other, _, then) in pairwise(readings(200))
        if thing == other and level < 3 and then > 6
    ]
    assert found == sorted(wanted)
    assert wanted
