"""A record behaves like a frozen dataclass with slots of the same fields."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from functools import partial
from inspect import signature
from itertools import product
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from spaseq.records import record

T = TypeVar("T")


def classes(make: Callable[[type], Any]) -> dict[str, Any]:
    """Classes that one of both ways makes."""

    @make
    class Empty:
        """No fields."""

    @make
    class One:
        x: Any

    @make
    class Several:
        x: Any
        y: int = 7
        z: tuple[int, ...] = field(default_factory=lambda: (1, 2))
        many: ClassVar[int] = 3

    @make
    class Hidden:
        x: Any
        shown: Any = field(default=1, repr=False)
        alike: Any = field(default=2, compare=False)
        keyed: Any = field(default=3, hash=False)
        named: Any = field(default=4, kw_only=True)

    @make
    class Computed:
        x: Any
        double: Any = field(init=False)
        fixed: int = field(init=False, default=5)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", [self.x, self.x])

    @make
    class Own:
        """It keeps its methods."""

        x: Any

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and str(self.x) == str(other.x)

        def __hash__(self) -> int:
            return 1

    @make
    class Base:
        x: Any
        place: Any = field(default=0, compare=False, repr=False, kw_only=True)

    @make
    class Derived(Base):
        y: Any

    @make
    class General(Generic[T]):
        x: T

    found: dict[str, Any] = locals()
    del found["make"]
    return found


RECORDS = classes(record)
DATACLASSES = classes(dataclass(frozen=True, slots=True))
GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((1,), {}),
    (("1",), {}),
    ((), {"x": 1}),
    ((1, 2), {}),
    ((1, 3), {}),
    ((1, 2), {"z": (9,)}),
    ((1, 2, 3), {}),
    ((1, 2, 4), {}),
    ((1, 2, 3, 4), {}),
    ((1,), {"named": 6}),
    ((1,), {"place": 6, "y": 8}),
    (([],), {}),
    ((float("nan"),), {}),
    ((1, 2, 3, 4, 5), {}),
    ((), {"unknown": 1}),
]


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (TypeError, ValueError, AttributeError) as error:
        return type(error)


def made(kind: Any) -> list[Any]:
    return [outcome(lambda: kind(*given, **named)) for given, named in GIVEN]  # noqa: B023


@pytest.mark.parametrize("name", DATACLASSES)
def test_it_is_like_a_dataclass(name: str) -> None:
    kind, model = RECORDS[name], DATACLASSES[name]
    assert is_dataclass(kind) and kind.__match_args__ == model.__match_args__
    assert kind.__slots__ == model.__slots__
    assert [f.name for f in fields(kind)] == [f.name for f in fields(model)]
    assert [*signature(kind).parameters] == [*signature(model).parameters]
    values, models = made(kind), made(model)
    for value, wanted in zip(values, models, strict=True):
        if isinstance(wanted, type):
            assert value is wanted
            continue
        assert not hasattr(value, "__dict__")
        shown = str(outcome(partial(repr, value)))
        assert shown == str(outcome(partial(repr, wanted))).replace("frozen", "record")
        assert outcome(partial(hash, value)) == outcome(partial(hash, wanted))
        for change in ({"x": 5}, {"y": 6}, {"double": 1}, {"unknown": 1}):
            changed, other = (outcome(partial(replace, v, **change)) for v in (value, wanted))
            assert repr(changed) == repr(other) or isinstance(other, type) or "nan" in repr(other)
        for names in ("x", "y", "new"):
            for call in (partial(setattr, value, names, 1), partial(delattr, value, names)):
                with pytest.raises(FrozenInstanceError):
                    call()
    for i, j in product(range(len(GIVEN)), repeat=2):
        assert (values[i] == values[j]) is (models[i] == models[j]), (i, j)


@record
class Pair:
    """A record that pickles find."""

    x: Any
    y: Any = 2


@dataclass(frozen=True, slots=True)
class PlainPair:
    """The same as a dataclass."""

    x: Any
    y: Any = 2


def test_copies_and_pickles() -> None:
    pair = Pair([1], Pair(3))
    for other in (copy.copy(pair), copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert other == pair and type(other) is Pair


def test_a_pickle_of_a_dataclass_becomes_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = pickle.dumps(PlainPair([1], 3))
    monkeypatch.setitem(globals(), "PlainPair", Pair)
    assert pickle.loads(stored) == Pair([1], 3)


def test_records_of_two_classes_differ_and_a_record_matches() -> None:
    assert Pair(1) != PlainPair(1) and Pair(1) != (1, 2)
    match Pair(1, "two"):
        case Pair(first, "two"):
            assert first == 1
        case _:
            pytest.fail("no match")


def test_a_record_within_itself_is_shown() -> None:
    inner: list[Any] = []
    pair = Pair(inner)
    inner.append(pair)
    assert repr(pair) == "Pair(x=[...], y=2)"


def test_a_class_has_its_signature_before_its_first_record() -> None:
    @record
    class Point:
        x: int
        y: int = 0

    class Named(Point):
        def __init__(self, name: str) -> None:
            super().__init__(len(name))

    assert str(signature(Point)) == "(x: 'int', y: 'int' = 0)"
    assert [*signature(Named).parameters] == ["name"]
    assert (Named("a").x, Named("a").y, Point(2, y=3).y) == (1, 0, 3)
    assert signature(Point).parameters.keys() == {"x", "y"}


def test_its_constructor_belongs_to_the_module_of_the_class() -> None:
    """`help` of Python 3.13 asks for it."""
    Pair(1)
    assert Pair.__init__.__module__ == Pair.__module__ == __name__
