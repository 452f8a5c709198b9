"""Integers of a DataFrame that 64 bits cannot hold."""

from __future__ import annotations

import pandas as pd

import spaseq

LIFT = """PREFIX : <http://e/> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { GRAPH ?g { ?g :n ?n ; prov:generatedAtTime ?t } }
WHERE { BIND(IRI(CONCAT("http://e/", ?id)) AS ?g) }"""
QUERY = """PREFIX : <http://e/> SELECT ?n WITHIN 1 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?g :n ?n } }"""


def test_they_are_integers_of_any_size() -> None:
    values = pd.Series([10**30, 3, None, -(10**25)], dtype=object)
    frame = pd.DataFrame({"id": ["a", "b", "c", "d"], "n": values, "t": [1, 2, 3, 4]})
    found = [
        str(match.bindings["n"])
        for match in spaseq.run(QUERY, {"S": spaseq.Lifted(frame, LIFT)}, runtime="local")
    ]
    integer = "^^<http://www.w3.org/2001/XMLSchema#integer>"
    assert [text.removesuffix(integer).strip('"') for text in found] == [
        str(n) for n in (10**30, 3, -(10**25))
    ]
