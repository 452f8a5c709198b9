"""The plans of a run are unpickled once in each process of a worker."""

from __future__ import annotations

import pickle

import pytest

from spaseq.compile import compile_query
from spaseq.runtime.spark.stages import shipped_units
from spaseq.runtime.spark.stages.shipped_units import MOST_KEPT, ShippedUnits
from spaseq.stages.query_units import QueryUnits


def units(*kinds: str) -> QueryUnits:
    """The units of a query for each kind of events."""
    queries = [
        compile_query(
            "SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://e/s> "
            f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x <http://e/{kind}> ?y }} }}",
            kind,
        )
        for kind in kinds
    ]
    return QueryUnits.of(queries, families=())


@pytest.fixture(autouse=True)
def _no_earlier_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped_units, "_kept", {})


def test_a_task_gets_what_another_has_unpickled() -> None:
    shipped = ShippedUnits.of_units(units("a", "b"))
    first, second = (pickle.loads(pickle.dumps((shipped, n))) for n in range(2))
    assert first[0] is second[0]
    assert [plan.identity for plan in first[0].queries] == [q.identity for q in shipped.queries]
    assert first[0].plans.keys() == {0, 1} and first[0].queries[0].shaped is None


def test_other_plans_are_others() -> None:
    found = [pickle.loads(pickle.dumps(ShippedUnits.of_units(units(kind)))) for kind in "abcab"]
    assert [own.queries[0].identity.name for own in found] == [*"abcab"]
    assert found[0] is not found[3]
    assert len(shipped_units._kept) == MOST_KEPT
