"""What is changed of the garbage collector ends, however its context ends."""

from __future__ import annotations

import gc

import pytest

from spaseq.collection_pause import collection_paused, keep_all, old_objects_kept


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


def test_all_that_is_kept_is_old() -> None:
    gc.unfreeze()  # the command line has frozen what it imports
    with collection_paused():
        kept: list[list[int]] = [[]]
        assert any(own is kept for own in gc.get_objects(generation=0))
        keep_all()
        assert not any(own is kept for own in gc.get_objects(generation=0))
        assert any(own is kept for own in gc.get_objects(generation=2))
    assert not gc.get_freeze_count()


def test_what_others_have_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        keep_all()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_old_objects_are_not_looked_at_until_the_context_ends() -> None:
    gc.unfreeze()
    with pytest.raises(KeyError), old_objects_kept():
        assert gc.get_freeze_count() > 0
        with old_objects_kept():
            pass
        assert gc.get_freeze_count() > 0
        raise KeyError
    assert not gc.get_freeze_count()
