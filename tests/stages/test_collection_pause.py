"""What is changed of the garbage collector ends, however its context ends."""

from __future__ import annotations

import gc
import weakref

import pytest

from spaseq.stages.collection_pause import (
    collection_of_new_only,
    collection_paused,
    count_as_old,
    hide_for_good,
)


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


@pytest.fixture
def nothing_frozen() -> None:
    """Earlier tests may have left runs that are not over."""
    gc.unfreeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_older_objects_are_hidden_from_the_collector() -> None:
    before = gc.get_freeze_count()
    with pytest.raises(KeyError), collection_of_new_only():
        assert gc.get_freeze_count() > before
        with collection_of_new_only():
            pass
        assert gc.get_freeze_count() > before
        raise KeyError
    assert gc.get_freeze_count() == before


def test_what_a_program_has_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        with collection_of_new_only():
            pass
        count_as_old()
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


@pytest.mark.usefixtures("nothing_frozen")
def test_objects_that_count_as_old_are_looked_at_later() -> None:
    class Cycle:
        me: object

    gone: list[int] = []
    cycle = Cycle()
    cycle.me = cycle
    weakref.finalize(cycle, gone.append, 1)
    count_as_old()
    del cycle
    gc.collect(1)
    assert not gone and not gc.get_freeze_count()
    gc.collect()
    assert gone


def test_hidden_objects_go_when_nobody_refers_to_them() -> None:
    class Plain:
        pass

    gone: list[int] = []
    plain = Plain()
    weakref.finalize(plain, gone.append, 1)
    hide_for_good()
    try:
        assert gc.get_freeze_count()
        del plain
        assert gone
    finally:
        gc.unfreeze()
