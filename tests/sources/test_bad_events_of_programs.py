"""A bad event of a program costs only itself, in a list as in a generator."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.rdf.inputs.stream_options import BadInput

QUERY = """SELECT ?v WITHIN 1 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?o <http://e/p> ?v } }"""


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("give", [list, iter], ids=["list", "generator"])
def test_the_others_count(runtime: str, give: type) -> None:
    events = [spaseq.Event(f'<e:o> <http://e/p> "{i}" .', i * 10_000) for i in range(3)]
    untimed = spaseq.Event("<e:o> <e:p> <e:q> .", "no time")
    events[1:1] = [spaseq.Event("<e:o> no graph", 5), untimed]
    bad: list[BadInput] = []
    given = {"S": give(events)}
    assert len([*spaseq.run(QUERY, given, runtime=runtime, on_bad=bad.append)]) == 3
    assert len(bad) == 2
    assert all(one.file == "events of the program" for one in bad)
