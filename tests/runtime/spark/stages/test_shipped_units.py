"""The plans of a run are unpickled once in each process of a worker."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from spaseq.compile import compile_query
from spaseq.errors import RunError
from spaseq.plan.families import QueryUnits
from spaseq.runtime.spark.stages import shipped_units
from spaseq.runtime.spark.stages.shipped_units import MOST_KEPT, ShippedUnits


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


def test_workers_on_the_same_machine_read_a_file_once(tmp_path: Path) -> None:
    shipped = ShippedUnits.of_units(units(*"abcdefgh"), tmp_path)
    sent = pickle.dumps(shipped)
    assert len(sent) < 1000 < len(pickle.dumps(ShippedUnits.of_units(units(*"abcdefgh"))))
    first = pickle.loads(sent)
    (file,) = tmp_path.iterdir()
    file.unlink()
    assert pickle.loads(sent) is first
    assert [plan.identity.name for plan in first.queries] == [*"abcdefgh"]


def test_a_directory_that_is_gone_is_an_error_that_names_it(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(RunError, match=rf"cannot keep rows on disk in {gone}: No such file"):
        ShippedUnits.of_units(units("a"), gone)
