"""The state of the chain kernel: the lists of partial matches of all slots."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from spaseq.automaton.batch.frame import OrderedRows
from spaseq.automaton.batch.pace import Pace
from spaseq.automaton.program.nfa import Program
from spaseq.automaton.sets.compiled.set_nodes import SetNodes, whole
from spaseq.automaton.sets.kernels import chain as kernel
from spaseq.automaton.sets.kernels.set_arrays import EVER, NIL
from spaseq.automaton.sets.python.expand import Wait, WaitName, Waits, expand
from spaseq.compiled.arrays import Bools, Indices, Int64s
from spaseq.stateful import Stateful


class ChainState(Stateful):
    """The partial matches of a plain sequence, for all slots.

    `contiguous` is SELECT STRICT. With `consumes`, the matches of an instant consume the partial
    matches of their slot.
    """

    STATE = ("_heads", "_latest", "nodes")

    def __init__(
        self, program: Program, gpms: int, contiguous: bool, consumes: bool = False
    ) -> None:
        self.waits = expand(program)
        steps = _steps(self.waits)
        self._names = [step.then for step in steps[:-1]]
        self.strict = contiguous or any(wait.strict for wait in steps)
        self._step = np.array(
            [(w.gpm, w.ends, contiguous or w.strict, w.accepts) for w in steps], np.int64
        )
        touched = [_touched(self._step, gpm) for gpm in range(gpms)]
        self._touches = np.cumsum([0, *map(len, touched)])
        self._touched = np.array([row for some in touched for row in some], np.int64)
        self._consumes = int(consumes)
        self.nodes = SetNodes()
        self._heads = np.empty((0, len(steps) + 1, 2), np.int64)
        self._latest = np.empty(0, np.int64)

    def grow(self, slots: int) -> None:
        """Make room for the slots below `slots`."""
        before = len(self._heads)
        if slots > before:
            heads = np.empty((2 * slots, *self._heads.shape[1:]), np.int64)
            heads[..., kernel.NODE], heads[..., kernel.BEGIN] = NIL, EVER
            latest = np.zeros(2 * slots, np.int64)
            heads[:before], latest[:before] = self._heads, self._latest
            self._heads, self._latest = heads, latest

    @property
    def most_made(self) -> int:
        """Maximum number of sets of partial matches that begin to wait at a row."""
        return len(self._names)

    def advance(self, rows: OrderedRows, pace: Pace | None = None) -> Int64s:
        """Process rows; returns the roots [R, 2] of the matches that end, as (node, row)."""
        nodes = self.nodes
        return nodes.roots_of(
            rows,
            lambda rows: kernel.advance_chain(
                *rows.columns,
                rows.number,
                self._step,
                self._touches,
                self._touched,
                self._heads,
                self._latest,
                self._consumes,
                nodes.array,
                nodes.roots,
                nodes.cursor,
            ),
            nodes.make_room,
            pace,
            lambda: self.most_made,
        )

    def idle(self, floor: int) -> Bools:
        """By slot: whether it has no partial match in the window that begins at `floor`."""
        newest = self._heads[:, 1:, kernel.BEGIN].max(axis=1)
        idle: Bools = np.less(newest, floor)
        return idle

    def release(self, slots: Indices) -> None:
        """Clear idle slots, for other keys."""
        self._heads[slots, :, kernel.NODE] = NIL
        self._heads[slots, :, kernel.BEGIN] = EVER
        self._latest[slots] = 0

    def alive(self, floor: int) -> Int64s:
        """By slot: number of sets of partial matches that wait in the window that begins at
        `floor`.
        """
        heads = self._heads[:, 1:-1]
        alive = (heads[..., kernel.NODE] != NIL) & (heads[..., kernel.BEGIN] >= floor)
        counts: Int64s = alive.sum(axis=1, dtype=np.int64)
        return counts

    def live(self, floor: int, slots: Int64s | None = None) -> list[tuple[Iterable[WaitName], int]]:
        """The waits of partial matches in the window that begins at `floor`, and their number."""
        heads = self._heads if slots is None else self._heads[slots]
        live = self.nodes.live(heads[:, 1:-1, kernel.NODE], floor).sum(axis=0).tolist()
        return [(w, whole(count)) for w, count in zip(self._names, live, strict=True)]


def _steps(waits: Waits) -> list[Wait]:
    ordered, then = [], waits.initial
    while then:
        (number,) = then
        ordered.append(waits.waits[number])
        then = ordered[-1].then
    return ordered


def _touched(step: Int64s, gpm: int) -> list[tuple[int, bool, bool, bool]]:
    """The rows of the kernel's `touched` for one GPM, the last step first."""
    touched = []
    for number in range(len(step) - 1, -1, -1):
        of, ends, strict, accepts = step[number].tolist()
        takes, closes = of == gpm, number > 0 and bool(strict or ends >> gpm & 1)
        if takes or closes:
            touched.append((number, takes and not accepts, takes and bool(accepts), closes))
    return touched
