"""What is changed of the garbage collector ends, however its context ends."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from spaseq import memory
from spaseq.memory import (
    collection_paused,
    keep_all,
    keep_for_good,
    old_objects_kept,
)


@pytest.fixture
def _nothing_frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a program that has imported no command line, and collects no tests."""
    monkeypatch.setattr(memory, "_kept_for_good", False)
    gc.unfreeze()
    yield
    gc.freeze()


def test_the_collector_is_paused_and_goes_on() -> None:
    with collection_paused():
        assert not gc.isenabled()
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_goes_on_after_an_error() -> None:
    with pytest.raises(KeyError), collection_paused():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


@pytest.mark.usefixtures("_nothing_frozen")
def test_all_that_is_kept_is_old() -> None:
    with collection_paused():
        kept: list[list[int]] = [[]]
        assert any(own is kept for own in gc.get_objects(generation=0))
        keep_all()
        assert not any(own is kept for own in gc.get_objects(generation=0))
        assert any(own is kept for own in gc.get_objects(generation=2))
    assert not gc.get_freeze_count()


@pytest.mark.usefixtures("_nothing_frozen")
@pytest.mark.parametrize("freeze", [gc.freeze, keep_for_good])
def test_what_others_have_frozen_stays_frozen(freeze: Callable[[], None]) -> None:
    freeze()
    keep_all()
    assert gc.get_freeze_count() > 0
    with old_objects_kept():
        pass
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("_nothing_frozen")
def test_frozen_objects_are_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """To count some millions takes as long as a small run."""
    keep_for_good()

    def refuse() -> int:
        raise AssertionError

    monkeypatch.setattr(gc, "get_freeze_count", refuse)
    keep_all()
    with old_objects_kept():
        pass


@pytest.mark.usefixtures("_nothing_frozen")
def test_old_objects_are_not_looked_at_until_the_context_ends() -> None:
    with pytest.raises(KeyError), old_objects_kept():
        assert gc.get_freeze_count() > 0
        with old_objects_kept():
            pass
        assert gc.get_freeze_count() > 0
        raise KeyError
    assert not gc.get_freeze_count()
