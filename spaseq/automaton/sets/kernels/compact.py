"""The compact kernel: Algorithm 1 of CORE (PVLDB 15:9, 4.3) for a whole batch of rows.

An *entry* holds the union-list of one active state of one slot: the node that stands for the whole
list if it has been made, the length of the list, and its safe nodes by falling maximum start, each
with its start. An instant looks only at the states that it may change, in the order of falling
maximum start. It first builds T' of Algorithm 1 in `lists`, then copies it to T, the `entries`. If
an array is full or a move is unknown, the kernel undoes the instant and returns. Its caller then
provides the missing resource and calls again.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.sets.kernels.set_arrays import (
    AT,
    BASE,
    BEFORE,
    DONE,
    ENTRIES_FULL,
    FREE,
    LISTS_FULL,
    MOVE_UNKNOWN,
    NEED,
    NEXT,
    NIL,
    NODE_COLUMNS,
    NODES_FULL,
    REST,
    ROOTS,
    ROOTS_FULL,
    ROW,
    SEEN,
    SET_UNKNOWN,
    START,
    STATE,
    UNION,
    add_node,
    start_of,
)
from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import (
    as_nonnegative,
    assume,
    device_function,
    inlined_device_function,
    lean_kernel,
)

# Columns of `moves`: the target of the non-marking transition (or NIL), the range of the marking
# ones in `marks`.
STAY, FIRST_MARK, END_MARK = range(3)

# Columns of `marks`, the marking transitions: letter, target (or NIL), whether a match is complete,
# and the depth: above 0, its row is taken besides that of the last transition of a lower depth. A
# transition without target that completes no match is there for deeper ones only.
LETTER, TARGET, ACCEPTS, DEPTH = range(4)
MARK_COLUMNS = 4

UNKNOWN = -2
"""The number of a move that is not known yet."""

# Columns of `entries` and `lists`: the node for the whole union-list, its length, then its nodes,
# each with its maximum start.
MADE, COUNT, LIST = range(3)

# Columns of `place_of`: where a state's new list is in `lists`, and the turn that made it.
PLACE, TURN = range(2)

# Columns of `order`: a state, its maximum start; and the state of each new list.
WHICH, BEGUN, RENEWED = range(3)

WORD = 64
"""States in one 64-bit word of `active` and `changing`."""

_BIT = np.zeros(64, np.int64)
_BIT[(0x03F79D71B4CB0A89 * (np.uint64(1) << np.arange(64, dtype=np.uint64)) >> np.uint64(58))] = (
    np.arange(64)
)


@inlined_device_function
def _number_of(bit: int) -> int:
    """The number of the one bit that is set, by a de Bruijn sequence."""
    number: int = _BIT[((bit * 0x03F79D71B4CB0A89) >> 58) & 63]
    return number


@device_function
def _union(nodes: Int64s, node: int, base: int, floor: int, first: int, second: int) -> int:
    """union(n1, n2) of CORE 4.2 (Figure 5, a-d): two safe nodes with equal maximum start.

    Returns the id of the next node; the union's id is one less.
    """
    assume(nodes.shape[1] == NODE_COLUMNS)
    mask = nodes.shape[0] - 1
    one, other = as_nonnegative(first & mask), as_nonnegative(second & mask)
    start = nodes[one, START]
    if nodes[one, ROW] != UNION:
        return add_node(nodes, node, first, second, start, UNION)
    if nodes[other, ROW] != UNION:
        return add_node(nodes, node, second, first, start, UNION)
    left1, right1 = nodes[one, BEFORE], nodes[one, REST]
    left2, right2 = nodes[other, BEFORE], nodes[other, REST]
    start1, start2 = start_of(nodes, base, right1), start_of(nodes, base, right2)
    if start1 < start2:
        right1, start1, right2, start2 = right2, start2, right1, start1
    if start1 < floor:
        return add_node(nodes, node, left1, left2, start, UNION)
    below = right1
    if start2 >= floor:
        below = node
        node = add_node(nodes, node, right1, right2, start1, UNION)
    middle = node
    node = add_node(nodes, node, left2, below, start, UNION)
    return add_node(nodes, node, left1, middle, start, UNION)


@inlined_device_function
def _insert(
    nodes: Int64s,
    node: int,
    base: int,
    floor: int,
    lists: Int64s,
    entry: int,
    added: int,
    start: int,
) -> int:
    """insert(ul, n) of CORE 4.2: add a safe node that starts no later than the union-list.

    Returns the id of the next node, NIL if the list is full.
    """
    count = as_nonnegative(lists[entry, COUNT])
    while count > 1 and lists[entry, LIST + 2 * count - 1] < floor:
        count -= 1
    place = 1
    while place < count and lists[entry, LIST + 2 * place + 1] > start:
        place += 1
    at = as_nonnegative(LIST + 2 * place)
    if place < count and lists[entry, at + 1] == start:
        node = _union(nodes, node, base, floor, lists[entry, at], added)
        lists[entry, at] = node - 1
    elif LIST + 2 * count == lists.shape[1]:
        node = NIL
    else:
        for i in range(LIST + 2 * count - 1, at - 1, -1):
            lists[entry, as_nonnegative(i + 2)] = lists[entry, as_nonnegative(i)]
        lists[entry, at], lists[entry, at + 1] = added, start
        count += 1
    lists[entry, MADE], lists[entry, COUNT] = NIL, count
    return node


@inlined_device_function
def _merge(nodes: Int64s, node: int, entries: Int64s, entry: int, floor: int) -> tuple[int, int]:
    """merge(ul) of CORE 4.2 (Figure 5, e): (a node for the whole list, the id of the next)."""
    at = as_nonnegative(LIST + 2 * entries[entry, COUNT] - 2)
    while at > LIST and entries[entry, at + 1] < floor:
        at = as_nonnegative(at - 2)
    merged = entries[entry, at]
    for other in range(at - 2, LIST - 1, -2):
        node = add_node(
            nodes, node, entries[entry, other], merged, entries[entry, other + 1], UNION
        )
        merged = node - 1
    return merged, node


@inlined_device_function
def _list_of(place_of: Int64s, state: int) -> int:
    """The number of a state's new list."""
    number: int = as_nonnegative(place_of[as_nonnegative(state), PLACE])
    return number


@inlined_device_function
def _begin_list(place_of: Int64s, order: Int64s, state: int, made: int, turn: int) -> None:
    """Let the list number `made` be the new list of a state: ADD of Algorithm 1, lines 25-27."""
    place = as_nonnegative(state)
    place_of[place, PLACE], place_of[place, TURN] = made, turn
    order[made, RENEWED] = state


@lean_kernel
def advance_compact(
    slot: Int32s,
    letter: Int32s,
    time_ms: Int64s,
    k: Int32s,
    start: Int64s,
    lowest: Int64s,
    ordinal: Int64s,
    number: int,
    letters: int,
    same_time: int,
    consumes: int,
    sets: Int64s,
    move: Int32s,
    moves: Int32s,
    marks: Int32s,
    changing: Int64s,
    active: Int64s,
    entry_of: Int32s,
    entries: Int64s,
    free: Int32s,
    latest: Int64s,
    begins: Int64s,
    when: Int64s,
    nodes: Int64s,
    roots: Int64s,
    lists: Int64s,
    place_of: Int64s,
    order: Int64s,
    inner: Int64s,
    cursor: Int64s,
) -> int:
    """Process n rows with a deterministic automaton.

    Args:
        slot .. number: the columns of `OrderedRows`. A letter is a GPM, or a GPM and a stream.
        letters: the number of letters.
        same_time: a bit beside those of letters: an instant has the time of the one before in its
            slot; 0 if no move needs it.
        consumes: 1 if the matches of an instant consume their slot's partial matches, else 0.
        sets: [S] sets of letters as bits: each letter alone, those of an instant without rows, and
            the others seen so far. They stand for the bit vectors of CORE 4.4.
        move: [states, S] Delta in Algorithm 1, found lazily: the number of the move, or UNKNOWN.
        moves: [M, 3], marks: [, MARK_COLUMNS] see their columns.
        changing: [S, words] the states, as bits, that a set of letters may change.
        active: [slots, words] keys(T) in Algorithm 1: the active states as bits.
        entry_of: [slots, states] the entries of the active states.
        entries: [E, 2 + 2 H] T in Algorithm 1: union-lists of up to H nodes.
        free: [E] the free entries come first; `cursor[FREE]` counts them.
        latest: [slots] ordinal of the latest instant. when: [slots] its time (ms), if moves need
            it.
        begins: [slots] the state in which matches begin (q0 in Algorithm 1), 0 at first.
        nodes: [N, NODE_COLUMNS] the compact set. roots: [R, 2] nodes of complete matches, with the
            row that completed them.
        lists: [states + 1, 2 + 2 H] T' in Algorithm 1: the new lists of states. Scratch. The last
            one is for the rows of a transition that is there for deeper ones.
        place_of: [states, 2] scratch, `TURN` all zero. order: [states, 3] ordered-keys(T). Scratch.
        inner: [depths] what the rows of transitions of each depth are appended to. Scratch.
            Empty if all depths are 0.
        cursor: [CURSOR] see `set_arrays`; STATE and SEEN name the unknown move or set (as bits).

    Returns: DONE, or the missing resource.
    """
    n, strict, words = len(slot), len(ordinal) > 0, active.shape[1]
    assume(moves.shape[1] == 3)
    assume(marks.shape[1] == MARK_COLUMNS)
    assume(nodes.shape[1] == NODE_COLUMNS)
    assume(roots.shape[1] == 2)
    assume(place_of.shape[1] == 2)
    assume(order.shape[1] == 3)
    assume(lists.shape[1] == entries.shape[1])
    end_node = cursor[BASE] + nodes.shape[0]
    node, base, ended = cursor[NEXT], cursor[BASE], as_nonnegative(cursor[ROOTS])
    vacant = as_nonnegative(cursor[FREE])
    first, full, turn = as_nonnegative(cursor[AT]), DONE, 0
    several, joint = inner.shape[0] > 0, as_nonnegative(lists.shape[0] - 1)
    while first < n:
        here, floor, now = as_nonnegative(slot[first]), lowest[first], time_ms[first]
        end = first + 1
        while end < n and time_ms[end] == now and slot[end] == here and k[end] == k[first]:
            end += 1
        # First come the instants of the partition without rows of this key, all at once.
        missed = strict and ordinal[first] > latest[here] + 1
        begin = end if missed else first
        seen = letters
        if not missed:
            again = same_time if same_time != 0 and when[here] == now else 0
            if end - first == 1 and letter[first] >= 0 and again == 0:
                seen = as_nonnegative(letter[first])
            else:
                bits = again
                for row in range(first, end):
                    if letter[row] >= 0:
                        bits |= 1 << letter[row]
                seen = 0
                while seen < len(sets) and sets[seen] != bits:
                    seen += 1
                if seen == len(sets):
                    full, cursor[SEEN] = SET_UNKNOWN, bits
                    break

        # --- the states that may change, by falling maximum start
        count, length = 0, 0
        for word in range(words):
            bits = active[here, word] & changing[seen, word]
            while bits != 0:
                bit = bits & -bits
                bits ^= bit
                state = as_nonnegative(word * WORD + _number_of(bit))
                entry = as_nonnegative(entry_of[here, state])
                begun = entries[entry, LIST + 1]
                if begun < floor:
                    active[here, word] ^= bit
                    free[vacant] = entry
                    vacant += 1
                    continue
                if move[state, seen] == UNKNOWN:
                    full, cursor[STATE], cursor[SEEN] = MOVE_UNKNOWN, state, seen
                at = count
                while at > 0 and order[at - 1, BEGUN] < begun:
                    order[at, WHICH], order[at, BEGUN] = order[at - 1, WHICH], order[at - 1, BEGUN]
                    at -= 1
                order[at, WHICH], order[at, BEGUN] = state, begun
                count += 1
                length += entries[entry, COUNT]
        begin_state = as_nonnegative(begins[here])
        if move[begin_state, seen] == UNKNOWN:
            full, cursor[STATE], cursor[SEEN] = MOVE_UNKNOWN, begin_state, seen
        if full != DONE:
            break
        most = 4 * (count + 1) * (end - begin + 1) + length
        if several:
            taking = 0
            for i in range(-1, count):
                of = begin_state if i < 0 else as_nonnegative(order[as_nonnegative(i), WHICH])
                m = move[of, seen]
                taking += moves[as_nonnegative(m), END_MARK] - moves[as_nonnegative(m), FIRST_MARK]
            most += 5 * taking * (end - begin + 1)
        if node + most > end_node:
            full, cursor[NEED] = NODES_FULL, most
            break
        if ended + most > roots.shape[0]:
            full, cursor[NEED] = ROOTS_FULL, most
            break

        # --- EXECTRANS for the initial state (i = -1) and for these states: their new lists
        node_before, ended_before = node, ended
        turn += 1
        made = 0
        for i in range(-1, count):
            initial = i < 0
            state, entry, begun, before = begin_state, 0, 0, NIL
            if initial:
                if begin == end:
                    continue
                begun = start[begin]
            else:
                state, begun = (
                    as_nonnegative(order[as_nonnegative(i), WHICH]),
                    order[as_nonnegative(i), BEGUN],
                )
                entry = as_nonnegative(entry_of[here, state])
                before = entries[entry, MADE]
            m = as_nonnegative(move[as_nonnegative(state), seen])
            first_mark, end_mark = moves[m, FIRST_MARK], moves[m, END_MARK]
            stay = NIL if initial else moves[m, STAY]
            takes = first_mark < end_mark and begin < end
            # If a marking transition of this move leads to `stay`, too, the two lists join.
            joins = stay != NIL and place_of[as_nonnegative(stay), TURN] == turn
            if stay != NIL:
                for mark in range(first_mark, end_mark):
                    joins = joins or marks[mark, TARGET] == stay
            if before == NIL and not initial and (takes or joins):
                before, node = _merge(nodes, node, entries, entry, floor)
            if takes:
                for mark in range(first_mark, end_mark):
                    target = marks[as_nonnegative(mark), TARGET]
                    onto = before
                    if several:
                        depth = as_nonnegative(marks[mark, DEPTH])
                        if depth > 0:
                            onto = inner[depth - 1]
                        if target == NIL and not marks[mark, ACCEPTS]:
                            lists[joint, COUNT] = 0
                            for row in range(begin, end):
                                if letter[row] != marks[mark, LETTER]:
                                    continue
                                added = node
                                node = add_node(nodes, node, onto, NIL, begun, number + row)
                                if lists[joint, COUNT] == 0:
                                    lists[joint, MADE], lists[joint, COUNT] = NIL, 1
                                    lists[joint, LIST], lists[joint, LIST + 1] = added, begun
                                else:
                                    node = _insert(
                                        nodes, node, base, floor, lists, joint, added, begun
                                    )
                            inner[depth], node = _merge(nodes, node, lists, joint, floor)
                            continue
                    for row in range(begin, end):
                        if letter[row] != marks[mark, LETTER]:
                            continue
                        added = node
                        node = add_node(nodes, node, onto, NIL, begun, number + row)
                        if marks[mark, ACCEPTS]:
                            roots[ended, 0], roots[ended, 1] = added, row
                            ended += 1
                        if target == NIL:
                            continue
                        if place_of[as_nonnegative(target), TURN] == turn:
                            at = _list_of(place_of, target)
                            node = _insert(nodes, node, base, floor, lists, at, added, begun)
                            if node == NIL:
                                full = LISTS_FULL
                                break
                        else:
                            _begin_list(place_of, order, target, made, turn)
                            lists[made, MADE], lists[made, COUNT] = NIL, 1
                            lists[made, LIST], lists[made, LIST + 1] = added, begun
                            made += 1
                    if full != DONE:
                        break
                if full != DONE:
                    break
            if stay != NIL:
                if joins:
                    at = _list_of(place_of, stay)
                    node = _insert(nodes, node, base, floor, lists, at, before, begun)
                    full = LISTS_FULL if node == NIL else DONE
                else:
                    _begin_list(place_of, order, stay, made, turn)
                    for at in range(LIST + 2 * entries[entry, COUNT]):
                        lists[made, at] = entries[entry, at]
                    lists[made, MADE] = before
                    made += 1
                if full != DONE:
                    break
        if full == DONE and made > vacant:
            full, cursor[NEED] = ENTRIES_FULL, made - vacant
        if full != DONE:
            node, ended = node_before, ended_before
            break

        # --- T becomes T'
        for i in range(count):
            state = as_nonnegative(order[i, WHICH])
            if place_of[state, TURN] != turn:
                active[here, state // WORD] ^= 1 << (state % WORD)
                free[vacant] = entry_of[here, state]
                vacant += 1
        for i in range(made):
            state = as_nonnegative(order[i, RENEWED])
            word, bit = state // WORD, 1 << (state % WORD)
            if active[here, word] & bit == 0:
                active[here, word] |= bit
                vacant -= 1
                entry_of[here, state] = free[vacant]
            entry = as_nonnegative(entry_of[here, state])
            for at in range(LIST + 2 * lists[i, COUNT]):
                entries[entry, at] = lists[i, at]
        if consumes != 0 and ended > ended_before:
            for word in range(words):
                bits = active[here, word]
                active[here, word] = 0
                while bits != 0:
                    bit = bits & -bits
                    bits ^= bit
                    free[vacant] = entry_of[here, as_nonnegative(word * WORD + _number_of(bit))]
                    vacant += 1
        if strict:
            latest[here] = ordinal[first] - 1 if missed else ordinal[first]
        if same_time != 0 and not missed:
            when[here] = now
        if not missed:
            begins[here] = moves[as_nonnegative(move[begin_state, seen]), STAY]
            first = end
    for state in range(place_of.shape[0]):
        place_of[state, TURN] = 0
    cursor[NEXT], cursor[ROOTS], cursor[FREE], cursor[AT] = node, ended, vacant, first
    return full


@lean_kernel
def living(active: Int64s, entry_of: Int32s, entries: Int64s, floor: int, alive: Int64s) -> None:
    """Count, by slot, the active states with a match in the window that begins at `floor`."""
    for slot in range(active.shape[0]):
        alive[slot] = 0
        for word in range(active.shape[1]):
            bits = active[slot, word]
            while bits != 0:
                bit = bits & -bits
                bits ^= bit
                entry = entry_of[slot, word * WORD + _number_of(bit)]
                if entries[entry, LIST + 1] >= floor:
                    alive[slot] += 1


@lean_kernel
def vacate(slots: Int64s, active: Int64s, entry_of: Int32s, free: Int32s, vacant: int) -> int:
    """Free the entries of some slots; returns the new number of free entries."""
    for slot in slots:
        for word in range(active.shape[1]):
            bits = active[slot, word]
            while bits != 0:
                bit = bits & -bits
                bits ^= bit
                free[vacant] = entry_of[slot, word * WORD + _number_of(bit)]
                vacant += 1
            active[slot, word] = 0
    return vacant
