"""The columns of the arrays that the register kernels share, and the codes that stand in them."""

NONE = -1

# Columns of `edge`.
TARGET, KIND, INDEX, SIGN, INCLUSIVE, THRESHOLDS, TESTS, SETS = range(8)
EDGE_COLUMNS = 8

# Kinds of edges: from the initial state; `;`; `:`; `,`.
FIRST, NEXT, ANY, STRICT = range(4)

# Columns of `test`: own number, or register if it is negative (~), `op` register.
OP, OWN, REGISTER = range(3)
LESS, AT_MOST, GREATER, AT_LEAST, EQUAL, UNEQUAL = range(6)

# Columns of `blocks`, by slot and edge. In front of the place of each lies a key that is no number.
PLACE, COUNT, CAPACITY, HEAPED, WASTED = range(5)
BLOCK_COLUMNS = 5

# Columns of `nodes`: number of the solution, the run before, the measure at which the match begins;
# the edge, and above its bits how many solutions the run has; the time, if gaps are bounded.
SOLUTION, BEFORE, ORIGIN, PATH, TIME = range(5)
EDGE_BITS = 6

# Columns of `passed`, by slot.
ORDINAL, EVENTS = range(2)

# Columns of `cursor`: sizes in use, and the most room that a block has had; matches so far; where
# `advance` goes on: the first row of an instant, how many runs arrive then, how many have, and the
# edges the next one waits at already.
USED, TOP, WIDEST, FOUND, MATCHES, ROW, ARRIVALS, ARRIVED, WAY, NEED = range(10)
CURSOR = 10

DONE, ARRIVED_FULL, RUNS_FULL, POOL_FULL, FOUND_FULL, ENDS_FULL, TOGETHER = range(7)

# Columns of `step`, by GPM, of a plain sequence. CODE says at which edge of its slot a solution
# looks for runs, whether it takes those whose threshold it equals, and what it does; EDGE is what
# it is taken along, ONWARD how far from where they were the runs wait then. COMPARED and SIGN are
# INDEX and SIGN of the edge that it looks at; FIRST_LEVEL to LEVEL_SIGN are for that they wait at.
CODE, EDGE, ONWARD, COMPARED, COMPARED_SIGN, FIRST_LEVEL, END_LEVEL, LEVEL_SIGN = range(8)
STEP_COLUMNS = 8
IS_INCLUSIVE, PLACE_BITS = 4, 3
NOTHING, BEGINS, MOVES, ENDS = range(4)

AHEAD = 512
"""So many rows are prepared before they are worked off."""
