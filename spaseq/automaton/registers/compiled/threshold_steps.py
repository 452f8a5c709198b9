"""The arrays that describe a threshold sequence to its kernel."""

from __future__ import annotations

import numpy as np

from spaseq.automaton.registers.kernels import run_arrays as kernel
from spaseq.automaton.registers.kernels.run_arrays import ProgramArrays
from spaseq.compiled.arrays import Int32s
from spaseq.records import record


@record
class ThresholdSteps:
    """A threshold sequence as `threshold_runs.advance_threshold_sequence` takes it."""

    edges: int
    step: Int32s
    """[GPMs + 1, STEP_COLUMNS] effect of a solution, by GPM + 1; row 0: an event without one."""
    source: Int32s
    """[GPMs + 1, registers] the compared number that sets each register, or NONE."""
    threshold_register: Int32s
    """[thresholds] as in `ProgramArrays`."""


def threshold_steps(program: ProgramArrays, registers: int) -> ThresholdSteps:
    """The steps of a program that is a threshold sequence (see `registers.compilable`)."""
    takes, edge = program.takes, program.edge
    step = np.full((len(takes), kernel.STEP_COLUMNS), kernel.NONE, np.int32)
    source = np.full((len(takes), registers), kernel.NONE, np.int32)
    step[:, kernel.CODE] = kernel.NOTHING
    for gpm in range(len(takes) - 1):
        for e in program.taking[takes[gpm] : takes[gpm + 1]].tolist():
            assigned = slice(edge[e, kernel.ASSIGNMENTS], edge[e + 1, kernel.ASSIGNMENTS])
            for register, number, _ in program.assignment[assigned].tolist():
                source[gpm + 1, register] = number
            _describe(program, e, step[gpm + 1], source[gpm + 1])
    return ThresholdSteps(len(edge) - 1, step, source, program.threshold_register)


def _describe(program: ProgramArrays, e: int, step: Int32s, source: Int32s) -> None:
    """Write into `step` the effect of a solution that edge `e` takes.

    `source` [registers] holds the numbers to which the solution sets registers.
    """
    edge, leaves = program.edge, program.leaves
    target = edge[e, kernel.TARGET]
    onward = program.leaving[leaves[target] : leaves[target + 1]].tolist()
    kind, looked_at = kernel.MOVES if onward else kernel.ENDS, e
    step[kernel.EDGE] = e
    step[kernel.COMPARED] = edge[e, kernel.INDEXED]
    step[kernel.COMPARED_SIGN] = edge[e, kernel.SIGN]
    for out in onward:
        assert out > e  # the kernel visits the solutions of one instant from the last edge on
        first, end = edge[out : out + 2, kernel.THRESHOLDS]
        step[kernel.ONWARD], step[kernel.LEVEL_SIGN] = out - e, edge[out, kernel.SIGN]
        step[kernel.FIRST_LEVEL], step[kernel.END_LEVEL] = first, end
        if edge[e, kernel.KIND] == kernel.FIRST:
            kind, looked_at = kernel.BEGINS, out
            if first < end:
                step[kernel.COMPARED] = source[program.threshold_register[first]]
                step[kernel.COMPARED_SIGN] = edge[out, kernel.SIGN]
    inclusive = kernel.IS_INCLUSIVE if edge[e, kernel.INCLUSIVE] else 0
    step[kernel.CODE] = looked_at << kernel.PLACE_BITS | inclusive | kind
