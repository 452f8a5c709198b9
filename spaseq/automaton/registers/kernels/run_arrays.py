"""The arrays that the register kernels share: their columns, and the codes in them.

The named tuples give the arrays of one kind one name inside the kernels. Kernels are called with
plain tuples of the same arrays, because numba looks up the type of a plain tuple much faster.

Symbols: G GPMs, E edges, S states, C compared numbers, R registers, N runs, P places in the pool of
waiting runs, A arrivals at one instant, n solutions of a batch. A *slot* stands for one value of
the join key.
"""

from __future__ import annotations

from typing import NamedTuple

from spaseq.compiled.arrays import Bytes, Float64s, Int32s, Int64s
from spaseq.compiled.decorators import as_nonnegative, inlined_device_function

NONE = -1

EVER = -(2**63)
"""A measure before all others."""


class RowArrays(NamedTuple):
    """n solutions in the order of instants; those of one instant and slot are together."""

    slot: Int32s
    """[n]."""
    gpm: Int32s
    """[n] the GPM; -1 for an event without a solution."""
    time_ms: Int64s
    """[n] with `k`, the instant."""
    k: Int32s
    """[n]."""
    start: Int64s
    """[n] the measure of a match that begins here."""
    lowest: Int64s
    """[n] the least measure at which a match may begin that ends here."""
    ordinal: Int64s
    """[n] number of the instant among those of its slot; empty if there is no `,`."""


class ProgramArrays(NamedTuple):
    """A sequence as the register kernel reads it. Ranges are given by where each begins."""

    takes: Int32s
    """[G + 1] by GPM: its range of `taking`."""
    taking: Int32s
    """[E] the edges that take solutions of each GPM."""
    edge: Int32s
    """[E + 1, EDGE_COLUMNS]; the last row ends the ranges of the one before."""
    gap_ms: Int64s
    """[E] the longest gap that the edge's operator allows, or NONE."""
    test: Int32s
    """[tests, TEST_COLUMNS] comparisons that a solution must pass against a run."""
    threshold_register: Int32s
    """[thresholds] the registers whose maximum is an edge's threshold."""
    assignment: Int32s
    """[assignments, 3] a register, a compared number, and how the register takes it."""
    leaves: Int32s
    """[S + 1] by state: its range of `leaving`."""
    leaving: Int32s
    """[E] the edges out of each state."""
    accepts: Bytes
    """[S] 1 if a match may end in the state."""
    completes: Bytes
    """[S] 1 if a candidate of a bracket behind `;` is complete in the state."""
    kills: Int32s
    """[G + 1] by negated GPM: its range of `killing`."""
    killing: Int32s
    """[kills, KILLING_COLUMNS] an edge at which the GPM ends waiting runs, the range of its tests,
    and the number of the GPM that is the id by which they wait, or NONE."""
    stops: Int32s
    """[G + 1] by GPM: its range of `stopping`."""
    stopping: Int32s
    """[stops, STOPPING_COLUMNS] an edge at which the GPM ends waiting runs before anything is taken
    at its instant, the range of its tests, a register (if not NONE, it is only set to 0), and the
    number that is the id by which they wait, or NONE."""
    asks: Int32s
    """[asked tests + 1] by asked test: its range of `asking`."""
    asking: Int32s
    """The numbers that decide an asked test: a compared number of the solution, ~r for register
    r of the run, or RUN for the run itself."""


# Columns of `edge`. INDEXED is the compared number by which waiting runs are found, or NONE: a
# solution must exceed their thresholds by it (SIGN 1), or by its negative (SIGN -1), or equal them
# if INCLUSIVE. THRESHOLDS, TESTS and ASSIGNMENTS begin the edge's ranges of those arrays. The tests
# before OFFERED look at the run alone: it waits at the edge only if it passes them. OPENS and
# WITHIN are registers, or NONE: a candidate of a bracket behind `;` begins, or goes on, along the
# edge. OPENS of the run before the bracket says where the earliest complete candidate begins, NaN
# as long as there is none. WITHIN of the candidate says where it begins itself. JOINED is a number
# of solutions that is an id, or NONE: of a term if there is no key, else of the slot and a term or
# value. A run that waits has the same id in the register JOINED_REGISTER as each solution that it
# may take, or that ends its wait or marks it. So the runs wait in the block of the id in place of
# that of the slot.
TARGET, KIND, INDEXED, SIGN, INCLUSIVE, THRESHOLDS, TESTS, ASSIGNMENTS, OFFERED = range(9)
OPENS, WITHIN, JOINED, JOINED_REGISTER = range(9, 13)
EDGE_COLUMNS = 13

KILLING_COLUMNS, STOPPING_COLUMNS = 4, 5

# Kinds of edges: out of the initial state; `;`; `:`; `,`. No solution is taken along a CLOSING
# edge: a run that still waits there when its window closes is a match. Along a TOGETHER edge a run
# takes a solution of the instant at which it came to wait there.
FIRST, NEXT, ANY, STRICT, CLOSING, TOGETHER = range(6)

# Columns of `test`: LEFT is a compared number of the solution, or ~r for register r of the run.
# RIGHT is a register of the run; unless HOW is AS_IS, it takes the compared number ADDED first.
OPERATOR, LEFT, RIGHT, HOW, ADDED = range(5)
TEST_COLUMNS = 5

# In `asking`.
RUN = -(2**31)

# The OPERATOR of an asked test, whose number is LEFT; `comparisons` has the codes of the others.
ASKED = 6

# How a register takes a compared number in a test: not at all, or like an assignment: it is
# replaced by it, or becomes the sum, the lesser or the greater of both. An assignment may also
# clear a register, whatever the number is: it becomes NaN. Or it replaces the register unless the
# number is NaN, as the solution has none.
AS_IS, REPLACED, SUM, LESSER, GREATER_ONE, CLEARED, REPLACED_IF_SET = range(7)


class RunArrays(NamedTuple):
    """All runs. A run is a node: the solution that it took last, and the run before that."""

    node: Int64s
    """[N, 4], or [N, 5] if an operator bounds a gap."""
    register: Float64s
    """[N, R] the numbers that later steps compare with; NaN while there is none."""


# Columns of `node`: id of the solution; the run before it, or NONE; the measure at which the match
# begins; the number of solutions taken, above EDGE_BITS, between the low and the high bits of the
# edge; the time (ms) of the solution, if an operator bounds a gap.
SOLUTION, PREVIOUS, ORIGIN, PATH, TIME = range(5)
EDGE_BITS, HIGH_EDGE = 6, 56
_LOW, _LENGTH = (1 << EDGE_BITS) - 1, (1 << HIGH_EDGE - EDGE_BITS) - 1


class WaitingArrays(NamedTuple):
    """The waiting runs: one block of a common pool for each slot, or id of a term, and edge."""

    block: Int32s
    """[slots * E, BLOCK_COLUMNS]."""
    made: Int64s
    """[slots * E] ordinal of the instant at which the runs at a `,` edge came to wait."""
    threshold: Float64s
    """[P] the number that a solution must exceed to be taken. NaN lies in front of each block."""
    run: Int32s
    """[P] the run that waits."""
    few: Int64s
    """[1] a block with fewer waiting runs is no heap: it is searched one by one."""


# Columns of `block`: where it begins in the pool, how many runs wait, for how many there is room,
# whether it is a heap, and how many expired runs solutions have met in the heap.
PLACE, COUNT, CAPACITY, HEAPED, EXPIRED = range(5)
BLOCK_COLUMNS = 5


class ArrivalArrays(NamedTuple):
    """The runs that solutions of one instant make, before they are written."""

    previous: Int32s
    """[A] the run that took a solution; NONE if a match begins."""
    row: Int32s
    """[A] the solution."""
    edge: Int32s
    """[A] the edge along which it was taken."""
    stack: Int32s
    """[A] places of a heap that are still to be visited."""


class AnswerArrays(NamedTuple):
    """The answers to asked tests: a hash table of M places, of which M / 2 are used at most.

    Tests that a term of the solution and a term of the run decide have matrices instead.
    """

    key: Int64s
    """[M, 1 + W] the asked test, and the numbers that decide it."""
    answer: Bytes
    """[M] FREE, OPEN if it is not known yet, YES or NO."""
    noted: Int64s
    """[N] the open places; ~c for cell c."""
    size: Int64s
    """[4] see its columns."""
    matrix: Int64s
    """[asked tests, 2] the first cell of the test's matrix, or NONE, and the length of a row."""
    cell: Bytes
    """[cells] as `answer`: a row for each term of solutions, and in it each term of runs."""


FREE, OPEN, YES, NO = range(4)
UNSET = -(2**62)

# Columns of `size`: noted places; used places; whether more lack an answer than there is room for;
# the row before which tests were recorded ahead, against the runs that waited then.
NOTED, ENTRIES, LACKING, AHEAD = range(4)


class BatchArrays(NamedTuple):
    """Everything that an offer of a solution to waiting runs reads or writes."""

    program: ProgramArrays
    runs: RunArrays
    waiting: WaitingArrays
    arrivals: ArrivalArrays
    number: Float64s
    """[C, n] the compared numbers of each solution."""
    answers: AnswerArrays


class Offered(NamedTuple):
    """A solution that is offered to the runs at one edge.

    `level` is the number that must exceed their thresholds. Matches that began before the measure
    `lowest` are over.
    """

    row: int
    level: float
    time_ms: int
    lowest: int


# Columns of `progress`, by slot: ordinal of its latest instant, and its events so far, where they
# are counted.
ORDINAL, EVENTS = range(2)

# Columns of `cursor`. Sizes in use: runs, places of the pool, the largest capacity of a block.
# Matches since the caller read them: their solutions, their number. Where the kernel goes on: the
# first row of an instant, how many runs arrive at it, how many of them are written, and at how
# many edges the next one waits already. The first HELD arrivals are complete candidates, which are
# written once no other solution of the instant is taken. NEED is how much room the array that is
# full lacks.
USED, TOP, WIDEST, MATCHED, MATCHES, ROW, ARRIVALS, ARRIVED, ENTERED, HELD, NEED = range(11)
CURSOR = 11

# What a kernel returns: it is done, or which array is full, or an instant has several solutions of
# one slot and step, which the threshold-sequence kernel leaves to the register kernel, or asked
# tests of an instant have no answer.
DONE, ARRIVALS_FULL, RUNS_FULL, POOL_FULL, MATCHED_FULL, ENDS_FULL, TIED, UNANSWERED = range(8)

# Columns of `step`, by GPM + 1, for the threshold-sequence kernel. CODE holds, from its low bits
# up, what a solution does (2 bits), IS_INCLUSIVE, and the edge whose runs it looks at. EDGE is the
# edge along which it is taken. ONWARD is the distance from the block that it looks at to the block
# where the run waits next. COMPARED and COMPARED_SIGN are INDEXED and SIGN of the edge that it
# looks at; the last three describe the threshold of the run that waits next.
CODE, EDGE, ONWARD, COMPARED, COMPARED_SIGN, FIRST_LEVEL, END_LEVEL, LEVEL_SIGN = range(8)
STEP_COLUMNS = 8
IS_INCLUSIVE, PLACE_BITS = 4, 3
NOTHING, BEGINS, MOVES, ENDS = range(4)


class AheadArrays(NamedTuple):
    """What the next solutions do, in the order in which the threshold-sequence kernel visits them.

    It is looked up with few branches, so that the processor predicts those that are left.
    """

    code: Int64s
    """[m] the block where the solution looks for runs, above PLACE_BITS; below, CODE's low bits."""
    level: Float64s
    """[m] the number that must exceed the thresholds of the runs."""
    visited: Int32s
    """[m] the row of the solution."""


@inlined_device_function
def length_of(node: Int64s, run: int) -> int:
    """How many solutions a run has taken."""
    length: int = node[run, PATH] >> EDGE_BITS & _LENGTH
    return length


@inlined_device_function
def write_run(
    node: Int64s, run: int, solution: int, previous: int, origin: int, length: int, e: int
) -> None:
    """Write the node of a run, but for its time: it took a solution along edge `e`."""
    node[run, SOLUTION], node[run, PREVIOUS] = solution, previous
    node[run, ORIGIN] = origin
    node[run, PATH] = e >> EDGE_BITS << HIGH_EDGE | length << EDGE_BITS | e & _LOW


@inlined_device_function
def edge_of(path: int) -> int:
    """The edge of a node, given its PATH; for an array of them, too."""
    return path >> HIGH_EDGE << EDGE_BITS | path & _LOW


@inlined_device_function
def write_path(path: Bytes, end: int, node: Int64s, e: int, previous: int) -> None:
    """Write the edges of a match, as `write_match` writes its solutions; `e` is the last one."""
    place = as_nonnegative(end - 1)
    path[place] = e
    while previous >= 0:
        place = as_nonnegative(place - 1)
        path[place] = edge_of(node[as_nonnegative(previous), PATH])
        previous = node[as_nonnegative(previous), PREVIOUS]


@inlined_device_function
def write_match(matched: Int64s, end: int, node: Int64s, solution: int, previous: int) -> None:
    """Write the solutions of a match, last one first, so that they end before `end`.

    `matched` is flat: one match behind the other. `previous` is the run, or NONE, that the
    solution completes.
    """
    place = as_nonnegative(end - 1)
    matched[place] = solution
    while previous >= 0:
        place = as_nonnegative(place - 1)
        matched[place] = node[as_nonnegative(previous), SOLUTION]
        previous = node[as_nonnegative(previous), PREVIOUS]
