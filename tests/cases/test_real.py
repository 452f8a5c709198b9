"""The queries of `benchmarks/queries/real` on the real data, against a plain loop per query."""

from __future__ import annotations

import pytest

from .engine import Runtime, run
from .raw import sorted_answers
from .real_expected import DATA, QUERIES, REAL, real_answers

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no real data in {DATA}; set SPASEQ_SHARED to its parent folder"
)

COUNTS = {
    "congestion": 47,
    "spreading": 244,
    "traffic-sequence": 48,
    "traffic-conjunction": 18,
    "parking-sequence": 35,
    "parking-conjunction": 77,
    "card-fraud": 30,
    "v-shape": 18,
}


def test_every_query_has_a_loop() -> None:
    assert {path.stem for path in QUERIES.glob("*.rq")} == set(REAL) == set(COUNTS)


@pytest.mark.parametrize("name", REAL)
def test_the_loop_finds_what_was_counted(name: str) -> None:
    assert len(real_answers(name)) == COUNTS[name]


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("name", REAL)
def test_the_engine_gives_the_answers(name: str, runtime: Runtime) -> None:
    case = REAL[name]
    found = run(QUERIES / f"{name}.rq", case.streams, case.kb, runtime, case.ontology)
    assert found == sorted_answers(real_answers(name))


def test_a_garage_may_follow_another_at_the_same_time() -> None:
    """The parking stream's ties: events of one stream never share an instant."""
    answers = real_answers("parking-sequence")
    same = [a for a in answers if a["start"] == a["end"]]
    assert same and len(same) < len(answers)
    assert all(a["trace"][0]["k"] < a["trace"][1]["k"] for a in same)


def test_reports_of_two_streams_at_one_time_do_not_follow_each_other() -> None:
    assert all(a["start"] < a["end"] for a in real_answers("traffic-sequence"))


def test_one_conjunction_may_be_followed_by_events_of_both_streams() -> None:
    answers = sorted_answers(real_answers("traffic-conjunction"))
    ends = [[item["event"] for item in a["trace"][:2]] for a in answers]
    assert any(ends.count(pair) == 2 for pair in ends)
