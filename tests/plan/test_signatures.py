"""The hashes of a query are made when somebody asks for them, and only once."""

from __future__ import annotations

import pickle

from spaseq.plan.signatures import Hashes, Signature


def counted(calls: list[int]) -> Signature:
    def make() -> Hashes:
        calls.append(1)
        return "fingerprint", "canonical"

    return Signature(make)


def test_hashes_are_made_at_the_first_question() -> None:
    calls: list[int] = []
    signature = counted(calls)
    assert not calls
    assert (signature.fingerprint, signature.canonical) == ("fingerprint", "canonical")
    assert signature.canonical == "canonical"
    assert len(calls) == 1


def test_a_pickle_holds_the_hashes() -> None:
    calls: list[int] = []
    loaded = pickle.loads(pickle.dumps(counted(calls)))
    assert loaded == counted(calls)
    assert hash(loaded) == hash(counted(calls))
    assert loaded != Signature(lambda: ("other", "canonical"))
    assert loaded.fingerprint == "fingerprint"
