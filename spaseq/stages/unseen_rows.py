"""How many partial matches can be made of rows that an evaluator does not see.

Some rows are kept from an evaluator, as no match can come of them (`hopeless_rows`,
`waiting_rows`). Partial matches would, and these count for the limit. So rows are kept from it only
if all partial matches that can be made of them are few beside the limit.
"""

from __future__ import annotations

from spaseq import thresholds
from spaseq.automaton.program.nfa import Automaton, BracketLabel
from spaseq.automaton.run.waiting_limit import WaitingLimit
from spaseq.plan.query_plan import QueryPlan

_SETS = ("compiled-chain", "compiled-compact")
_MOST = 2**62


class UnseenRows:
    """Decides whether rows may be kept from the evaluator of a query or family."""

    def __init__(self, plan: QueryPlan, limit: WaitingLimit) -> None:
        self._limit, self._half = limit, limit.most // 2
        program, name = plan.sequence.program, plan.sequence.evaluator.name
        self._rows = most_rows(program.automaton, name in _SETS, self._half)
        self._rest, self._left = 1, 0  # batches without a count, and until the next

    def are_few(self, rows: int) -> bool:
        """Whether `rows` rows of one query make few partial matches."""
        return rows <= self._rows

    @property
    def asks_count(self) -> bool:
        """Whether the partial matches that wait should be counted: they may be few again."""
        if self._limit.room >= self._half:
            self._rest = 1
            return False
        self._left -= 1
        if self._left > 0:
            return False
        self._rest = min(2 * self._rest, thresholds.current.longest_rest)
        self._left = self._rest
        return True

    @property
    def has_room(self) -> bool:
        """Whether few partial matches wait in the evaluator."""
        return self._limit.room >= self._half


def most_rows(automaton: Automaton, shares: bool, most: int) -> int:
    """How many rows surely make no more than `most` partial matches, at most 2**62.

    With `shares`, partial matches of one key and state count once.
    """
    edges = sum(len(state.edges) for state in automaton.states)
    has_brackets = any(
        isinstance(edge.label, BracketLabel) for state in automaton.states for edge in state.edges
    )
    steps = None if has_brackets else _longest(automaton)
    low, high = 0, _MOST
    while low < high:
        middle = (low + high + 1) // 2
        if _bound(middle, edges, steps, shares, most) <= most:
            low = middle
        else:
            high = middle - 1
    return low


def _bound(rows: int, edges: int, steps: int | None, shares: bool, most: int) -> int:
    """The most partial matches that wait of some rows; any greater number than `most` is as good.

    One takes up to `steps` - 1 rows, each along an edge.
    """
    takes = rows if steps is None else min(steps - 1, rows)
    if takes * (edges * rows + 1).bit_length() > 4096:
        found = most + 1
    else:
        found = (edges * rows + 1) ** takes
    return min(found, rows << min(edges, 64)) if shares else found


def _longest(automaton: Automaton) -> int | None:
    """How many solutions a match takes at most; None if it may repeat steps."""
    known: dict[int, int] = {}
    open_states: set[int] = set()

    def longest(number: int) -> int | None:
        if number in open_states:
            return None
        if number not in known:
            open_states.add(number)
            after = [longest(edge.target) for edge in automaton.states[number].edges]
            open_states.discard(number)
            if any(own is None for own in after):
                return None
            known[number] = max((own + 1 for own in after if own is not None), default=0)
        return known[number]

    return longest(0) if len(automaton.states) <= 256 else None
