"""Waits of a sequence are made when they are asked for; their numbers do not depend on that."""

from __future__ import annotations

import pytest

from spaseq.automaton.program.nfa import Program
from spaseq.automaton.sets.python.expand import expand
from spaseq.compile import compile_query


def program(sequence: str) -> Program:
    gpms = "".join(
        f"DEFINE GPM {g} ON S {{ ?{g} <http://e/is> <http://e/{g}> }} "
        for g in "ABCU"
        if g in sequence
    )
    text = (
        f"SELECT * WITHIN 5 SECONDS FROM STREAM S <http://e/S> WHERE {{ SEQ ({sequence}) {gpms} }}"
    )
    return compile_query(text).sequence.program


def test_few_waits_of_a_long_repetition_are_made() -> None:
    found = expand(program("A; B{1,900}; C"))
    assert not found.waits
    (first,) = found.initial
    (second,) = found.waits[first].then
    found.waits[second]
    assert len(found.waits) == 2


@pytest.mark.parametrize("sequence", ["A; B{2,40}; C", "A, B{1,40}: C?", "A; (B; C){1,20}"])
def test_waits_are_the_same_in_every_order(sequence: str) -> None:
    forwards, backwards = expand(program(sequence)), expand(program(sequence))
    last = 10
    ascending = [forwards.waits[n] for n in range(last + 1)]
    descending = [backwards.waits[n] for n in range(last, -1, -1)]
    assert ascending == descending[::-1]
    assert [e.label for e in forwards.edges] == [e.label for e in backwards.edges]


def test_waits_that_remember_an_until_are_the_same_in_every_order() -> None:
    one, other = (
        expand(program("A: B{1,40}[:] UNTIL U: C")),
        expand(program("A: B{1,40}[:] UNTIL U: C")),
    )
    names = list(one.initial)
    for name in names:  # grows during the loop
        names += [then for then in one.waits[name].then if then not in names]
    assert len(names) > 40
    assert [one.waits[name] for name in names[::-1]] == [other.waits[name] for name in names[::-1]]
