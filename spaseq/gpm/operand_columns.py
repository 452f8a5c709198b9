"""Solutions inside EVENT as rows of which stage 2 makes groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spaseq.compiled.arrays import Int32s
from spaseq.gpm.evaluator import EventSolutions
from spaseq.gpm.graphs.vertical_partition import VerticalPartition
from spaseq.plan.query_plan import GpmPlan, Operand
from spaseq.rdf.columns.term_columns import UNBOUND
from spaseq.rdf.terms.number_kinds import DOUBLE


def of_groups(
    solutions: EventSolutions, gpm: GpmPlan, operands: Sequence[Operand], index: VerticalPartition
) -> EventSolutions:
    """All solutions, with the keys of groups and with operands as numbers and texts.

    A double is mostly summed only, so it has no text where its number says all.
    """
    columns = {v: solutions.columns[v] for v in gpm.variables if v in solutions.columns}
    for operand in operands:
        codes = solutions.columns.get(operand.variable)
        if codes is not None:
            columns[operand.number] = codes
            columns[operand.text] = _texts(codes, operand, index)
    return EventSolutions(solutions.event, columns, solutions.terms)


def _texts(codes: Int32s, operand: Operand, index: VerticalPartition) -> Int32s:
    lexicon = index.lexicon
    if operand.needs_text and not lexicon.base.has_canonical_doubles:
        return codes
    _, kinds = lexicon.numbers(codes)
    return np.where(kinds == DOUBLE, np.int32(UNBOUND), codes)
