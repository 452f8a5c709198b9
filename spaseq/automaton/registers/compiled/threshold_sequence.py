"""The arrays that describe a plain sequence to the kernel of its own.

They are made of those that describe it to the register kernel (see `columns.layout`):

- step int32 [gpms + 1, STEP_COLUMNS]: what a solution does, by GPM + 1; that of BARE is nothing;
- source int32 [gpms + 1, registers]: the own numbers that it sets registers to, or NONE;
- threshold int32: registers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.compiled.arrays import Arrays, Int32s


@dataclass(frozen=True, slots=True)
class PlainSteps:
    """A plain sequence as its kernel takes it."""

    edges: int
    step: Int32s
    source: Int32s
    threshold: Int32s


def plain_steps(program: Arrays, registers: int) -> PlainSteps | None:
    """The arrays of a sequence, given those of the register kernel; None if it is not plain.

    Plain are steps joined by `;` whose gaps nothing bounds, with nothing negated between them, each
    by a GPM of its own and with no other conditions than its thresholds.
    """
    takes, taking, edge, gap, _, threshold, sets, *_, killing = program
    steps = np.full((len(takes), kernel.STEP_COLUMNS), kernel.NONE, np.int32)
    source = np.full((len(takes), registers), kernel.NONE, np.int32)
    steps[:, kernel.CODE] = kernel.NOTHING
    if len(killing) or (gap >= 0).any() or len(np.unique(taking)) < len(taking):
        return None
    for gpm in range(len(takes) - 1):
        for e in taking[takes[gpm] : takes[gpm + 1]].tolist():
            if takes[gpm + 1] - takes[gpm] > 1 or not _is_plain(program, e):
                return None
            for register, number in sets[edge[e, kernel.SETS] : edge[e + 1, kernel.SETS]].tolist():
                source[gpm + 1, register] = number
            if not _describe(program, e, steps[gpm + 1], source[gpm + 1]):
                return None
    return PlainSteps(len(edge) - 1, steps, source, threshold)


def _is_plain(program: Arrays, e: int) -> bool:
    """Whether an edge asks for its thresholds only, and leads to the end or to one more edge."""
    _, _, edge, *_, accepts, _, _ = program
    target = edge[e, kernel.TARGET]
    tested = edge[e, kernel.TESTS] < edge[e + 1, kernel.TESTS]
    known = edge[e, kernel.KIND] in (kernel.FIRST, kernel.NEXT)
    return known and not tested and len(_leaving(program, target)) == 1 - accepts[target]


def _leaving(program: Arrays, state: int) -> list[int]:
    """The edges out of a state."""
    _, _, _, _, _, _, _, begins, leaving, *_ = program
    found: list[int] = leaving[begins[state] : begins[state + 1]].tolist()
    return found


def _describe(program: Arrays, e: int, step: Int32s, source: Int32s) -> bool:
    """Write down what a solution does that is taken along an edge; False if that is not plain."""
    edge, threshold = program[2], program[5]
    onward = _leaving(program, edge[e, kernel.TARGET])
    step[kernel.EDGE], looks = e, e
    if onward:
        (out,) = onward
        levels = edge[out : out + 2, kernel.THRESHOLDS]
        step[kernel.ONWARD], step[kernel.LEVEL_SIGN] = out - e, edge[out, kernel.SIGN]
        step[kernel.FIRST_LEVEL], step[kernel.END_LEVEL] = levels
    if edge[e, kernel.KIND] != kernel.FIRST:
        kind = kernel.MOVES if onward else kernel.ENDS
        step[kernel.COMPARED] = edge[e, kernel.INDEX]
        step[kernel.COMPARED_SIGN] = edge[e, kernel.SIGN]
    elif not onward or levels[1] - levels[0] > 1:
        return False
    else:
        kind, looks = kernel.BEGINS, out
        if levels[0] < levels[1]:
            step[kernel.COMPARED] = source[threshold[levels[0]]]
            if step[kernel.COMPARED] == kernel.NONE:
                return False  # no run waits there
            step[kernel.COMPARED_SIGN] = edge[out, kernel.SIGN]
    inclusive = kernel.IS_INCLUSIVE if edge[e, kernel.INCLUSIVE] else 0
    step[kernel.CODE] = looks << kernel.PLACE_BITS | inclusive | kind
    return True
