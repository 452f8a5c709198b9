"""The walk over fields that are state, beside states that are written by hand."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

import spaseq
from spaseq.stateful import Parts, Stateful, go_on, state_of


class Ring(Stateful):
    STATE = (("places", "used"), "size")

    def __init__(self) -> None:
        self.places, self.size = [0] * 8, 0

    @property
    def used(self) -> list[int]:
        return self.places[: self.size]

    def add(self, value: int) -> None:
        self.places[self.size], self.size = value, self.size + 1


class Whole(Stateful):
    STATE = ("one", "row", "named", "found", "none", "plain")

    def __init__(self) -> None:
        self.one, self.row, self.named = Ring(), [Ring(), Ring()], {"a": Ring()}
        self.found = Parts[int, Ring](lambda key: Ring())
        self.none: Ring | None = None
        self.plain: dict[str, int] = {}
        self.doubled = 0

    def _after_restore(self) -> None:
        self.doubled = 2 * sum(self.plain.values())


def test_a_state_is_that_of_all_parts() -> None:
    whole = Whole()
    for number, ring in enumerate([whole.one, *whole.row, whole.named["a"], whole.found[7]]):
        ring.add(number)
    whole.plain["x"] = 5
    state = whole.snapshot()
    written = ([0], 1), [([1], 1), ([2], 1)], {"a": ([3], 1)}, {7: ([4], 1)}, None, {"x": 5}
    assert state == written
    again = Whole()
    again.restore(state)
    assert (again.found[7].places, again.doubled) == ([4], 10)
    assert again.snapshot() == state


def test_empty_parts_have_a_plain_state() -> None:
    none = Parts[int, Ring](lambda key: Ring())
    assert state_of(none) == {}
    assert type(state_of(none)) is dict
    assert go_on(none, {3: ([5, 6], 2)})
    assert none[3].size == 2


def test_a_state_of_other_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        Whole().restore(Whole().snapshot()[:-1])


def _stateful_classes() -> Iterator[type[Stateful]]:
    for module in pkgutil.walk_packages(spaseq.__path__, "spaseq."):
        if module.name.split(".")[1] in ("automaton", "windows", "stages", "kb"):
            importlib.import_module(module.name)
    waiting = [Stateful]
    while waiting:
        for class_ in waiting.pop().__subclasses__():
            waiting.append(class_)
            if class_.__module__.startswith("spaseq."):
                yield class_


def test_no_class_names_a_field_twice() -> None:
    found = 0
    for class_ in _stateful_classes():
        fields = [name if isinstance(name, str) else name[0] for name in class_.STATE]
        assert len(fields) == len({*fields}), class_
        found += 1
    assert found > 30
