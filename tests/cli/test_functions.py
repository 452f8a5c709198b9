"""`--functions`: extension functions from files and modules, on both runtimes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spaseq.expr import extension
from tests.cli.test_run import Place, place

__all__ = ["place"]

IRI = "http://example/rounded"
QUERY = """PREFIX : <http://example/>
SELECT ?s (:rounded(?p) AS ?tens) WITHIN 1 MINUTES FROM STREAM S1 <http://example/s>
WHERE { SEQ(A) DEFINE GPM A ON S1 { ?s :price ?p FILTER (:rounded(?p) > 10) } }"""
FUNCTIONS = """import spaseq
STEP = 10

@spaseq.function("http://example/rounded", vectorised=True)
def rounded(prices):
    return [_round(price) for price in prices]

def _round(price):
    return round(price / STEP) * STEP
"""


@pytest.fixture
def functions(place: Place) -> Any:
    place.write("query.rq", QUERY)
    place.write("own.py", FUNCTIONS)
    yield
    extension.unregister(IRI)


def tens(out: str) -> list[str]:
    return [json.loads(line)["bindings"]["tens"]["value"] for line in out.splitlines()]


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_functions_of_a_file(place: Place, functions: None, runtime: str) -> None:
    done = place.spaseq(
        "run", "query.rq", "--stream", "S1=stream.nq", "--functions", "own.py",
        "--runtime", runtime,
    )  # fmt: skip
    assert (done.status, tens(done.out)) == (0, ["20"]), done.err


def test_check_knows_them_too(place: Place, functions: None) -> None:
    assert place.spaseq("check", "query.rq").status == 1
    done = place.spaseq("check", "query.rq", "--functions", "own.py")
    assert (done.status, done.out) == (0, "")


def test_a_file_that_fails_is_wrong_usage(place: Place) -> None:
    place.write("bad.py", "import spaseq\nraise KeyError('x')\n")
    done = place.spaseq("check", "query.rq", "--functions", "bad.py")
    assert done.status == 2
    assert "cannot load functions from bad.py: KeyError: 'x'" in done.err
