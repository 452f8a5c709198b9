"""Writing the tests of negated steps that are checked on matches into arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.automaton.batch.kernels.comparisons import CODES
from spaseq.automaton.batch.outer_checks import NO_GPM, OuterCheck, OuterChecks, beside_of
from spaseq.automaton.program.gpm_columns import GpmColumns
from spaseq.automaton.registers.compilable_runs import TestedNegation
from spaseq.automaton.registers.compiled.edge_tests import EdgeTests, Number
from spaseq.compiled.arrays import Int32s


def outer_checks(
    negations: Sequence[TestedNegation], numbers: Sequence[Number], gpms: Sequence[GpmColumns]
) -> OuterChecks:
    """The checks of negated steps, given the numbers of a solution and the GPMs' columns."""
    tests = [t for negation in negations for t in negation.tests or ()]
    matched = [n for t in tests for n in ((t.left, t.right) if t.left_in_run else (t.right,))]
    matched = [*dict.fromkeys(matched)]
    binds = [[n.variable in gpm.certain for n in matched] for gpm in gpms]
    return OuterChecks(
        tuple(_check(negation, matched, numbers) for negation in negations),
        tuple(map(numbers.index, matched)),
        np.array(binds, np.bool_).reshape(len(gpms), len(matched)),
    )


def _check(
    negation: TestedNegation, matched: Sequence[Number], numbers: Sequence[Number]
) -> OuterCheck:
    tests, step = negation.tests or (), negation.negation
    own = [*dict.fromkeys(t.left for t in tests if not t.left_in_run)]
    gpm = NO_GPM if negation.tests is None else step.take.gpm
    return OuterCheck(
        gpm,
        step.is_last,
        _table(tests, own, matched),
        tuple(map(numbers.index, own)),
        step.place,
        beside_of(step),
    )


def _table(tests: EdgeTests, own: Sequence[Number], matched: Sequence[Number]) -> Int32s:
    rows = [
        (
            CODES[t.operator],
            ~matched.index(t.left) if t.left_in_run else own.index(t.left),
            matched.index(t.right),
        )
        for t in tests
    ]
    return np.array(rows, np.int32).reshape(len(rows), 3)
