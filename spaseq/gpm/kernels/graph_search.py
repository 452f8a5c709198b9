"""Searches for property paths: breadth first, from both ends, and over strong components.

A *place* is a node in a state of the path's automaton: `state * nodes + node`. The successors of a
place follow from the automaton (`first`, `leaf`, `to`; see `spaseq.gpm.graphs.path_automaton`) and
the graph: a step of leaf r leads from node v to `targets[start[r, v]]` up to, but not including,
`targets[start[r, v + 1]]`.
"""

from __future__ import annotations

from typing import NamedTuple

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.compiled.decorators import device_function, lean_kernel


class SearchGraph(NamedTuple):
    """A path's automaton and the edges of its leaves, in one direction."""

    first: Int32s
    leaf: Int32s
    to: Int32s
    begin: int
    accept: int
    start: Int64s
    targets: Int32s


@lean_kernel
def reached(
    graph: SearchGraph,
    seeds: Int64s,
    wanted_start: Int64s,
    wanted: Int64s,
    at: int,
    mark: int,
    most_steps: int,
    marks: Int32s,
    wanted_marks: Int32s,
    queue: Int64s,
    found_seed: Int64s,
    found_node: Int64s,
) -> tuple[int, int, int]:
    """Breadth-first search from each seed, from seed number `at` on.

    It stops when the output is full or, after some seed, when it took more than `most_steps` steps.

    Args:
        seeds: nodes int64 [n].
        wanted_start, wanted: int64 [n + 1] and [w]; only the nodes
            `wanted[wanted_start[i]:wanted_start[i + 1]]` are searched from seed i. If
            `wanted_start` is empty, all nodes are.
        mark: the highest number in `marks` and `wanted_marks`.
        marks, queue: int32 and int64 [states * nodes], for the places of one search.
        wanted_marks: int32 [nodes].
        found_seed, found_node: outputs, int64: the number of the seed and a node that it reaches.

    Returns:
        (number of outputs, first seed that is not done, highest mark)
    """
    nodes, found, steps = graph.start.shape[1] - 1, 0, 0
    selective = len(wanted_start) > 0
    for i in range(at, len(seeds)):
        kept, mark = found, mark + 1
        missing = -1
        if selective:
            missing = wanted_start[i + 1] - wanted_start[i]
            for j in range(wanted_start[i], wanted_start[i + 1]):
                wanted_marks[wanted[j]] = mark
        head, tail = 0, 1
        queue[0] = graph.begin * nodes + seeds[i]
        marks[queue[0]] = mark
        while head < tail and missing != 0:
            place = queue[head]
            head += 1
            state = place // nodes
            node = place - state * nodes
            if state == graph.accept and (not selective or wanted_marks[node] == mark):
                if found == len(found_seed):
                    return kept, i, mark
                found_seed[found], found_node[found] = i, node
                found, missing = found + 1, missing - 1
            tail, more = _expanded(graph, state, node, mark, marks, queue, tail)
            steps += more
        if steps > most_steps:
            return found, i + 1, mark
    return found, len(seeds), mark


@device_function
def _expanded(
    graph: SearchGraph, state: int, node: int, mark: int, marks: Int32s, queue: Int64s, tail: int
) -> tuple[int, int]:
    """Append the successors without the mark to the queue: (its end, number of steps)."""
    first, leaf, to, start, targets = graph.first, graph.leaf, graph.to, graph.start, graph.targets
    nodes, steps = start.shape[1] - 1, 1
    for t in range(first[state], first[state + 1]):
        base, r = to[t] * nodes, leaf[t]
        if r < 0:
            if marks[base + node] != mark:
                marks[base + node] = mark
                queue[tail] = base + node
                tail += 1
            continue
        for e in range(start[r, node], start[r, node + 1]):
            place = base + targets[e]
            if marks[place] != mark:
                marks[place] = mark
                queue[tail] = place
                tail += 1
        steps += start[r, node + 1] - start[r, node]
    return tail, steps


@lean_kernel
def met(
    graph: SearchGraph,
    back: SearchGraph,
    sources: Int64s,
    sinks: Int64s,
    at: int,
    most_steps: int,
    marks: Int32s,
    back_marks: Int32s,
    queue: Int64s,
    back_queue: Int64s,
    connected: Int64s,
) -> int:
    """Search from both ends of each pair, from pair number `at` on, always on the smaller frontier.

    `back` is the reverse; both automata number their states alike. Sets `connected` [pairs] to 1
    where a path connects a source with its sink.

    Returns:
        The first pair that is not done.
    """
    nodes, steps = graph.start.shape[1] - 1, 0
    for i in range(at, len(sources)):
        mark = i + 1
        queue[0] = graph.begin * nodes + sources[i]
        back_queue[0] = back.begin * nodes + sinks[i]
        marks[queue[0]] = mark
        back_marks[back_queue[0]] = mark
        head, tail, back_head, back_tail = 0, 1, 0, 1
        meets = queue[0] == back_queue[0]
        while not meets and head < tail and back_head < back_tail:
            if tail - head <= back_tail - back_head:
                level = tail
                while head < level:
                    state = queue[head] // nodes
                    node = queue[head] - state * nodes
                    head += 1
                    before = tail
                    tail, more = _expanded(graph, state, node, mark, marks, queue, tail)
                    steps += more
                    for j in range(before, tail):
                        meets |= back_marks[queue[j]] == mark
            else:
                level = back_tail
                while back_head < level:
                    state = back_queue[back_head] // nodes
                    node = back_queue[back_head] - state * nodes
                    back_head += 1
                    before = back_tail
                    back_tail, more = _expanded(
                        back, state, node, mark, back_marks, back_queue, back_tail
                    )
                    steps += more
                    for j in range(before, back_tail):
                        meets |= marks[back_queue[j]] == mark
        connected[i] = meets
        if steps > most_steps:
            return i + 1
    return len(sources)


@lean_kernel
def components(
    graph: SearchGraph,
    seeds: Int64s,
    index: Int32s,
    low: Int32s,
    component: Int32s,
    stack: Int64s,
    frames: Int64s,
) -> int:
    """The strong components of the places that the seeds reach (Tarjan 1972, without recursion).

    Components have the numbers 1, 2, ...: each after the components that it reaches.

    Args:
        index, low: int32 [states * nodes], zeros; as in Tarjan's algorithm.
        component: output int32 [states * nodes], zeros; stays 0 where no seed leads.
        stack: int64 [states * nodes].
        frames: int64 [states * nodes, 3]: place, transition and next edge of each open call.

    Returns:
        The number of components.
    """
    first, leaf, to, start, targets = graph.first, graph.leaf, graph.to, graph.start, graph.targets
    nodes, begin = start.shape[1] - 1, graph.begin
    count, found, height = 0, 0, 0
    for i in range(len(seeds)):
        place = begin * nodes + seeds[i]
        if index[place]:
            continue
        depth = 0
        frames[0, 0], frames[0, 1], frames[0, 2] = place, first[begin], -1
        count += 1
        index[place] = low[place] = count
        stack[height] = place
        height += 1
        while depth >= 0:
            place = frames[depth, 0]
            state = place // nodes
            node = place - state * nodes
            t, e = frames[depth, 1], frames[depth, 2]
            if t == first[state + 1]:
                if low[place] == index[place]:
                    found += 1
                    while True:
                        height -= 1
                        component[stack[height]] = found
                        if stack[height] == place:
                            break
                depth -= 1
                if depth >= 0:
                    above = frames[depth, 0]
                    low[above] = min(low[above], low[place])
                continue
            r = leaf[t]
            if r < 0:
                further = to[t] * nodes + node
                frames[depth, 1], frames[depth, 2] = t + 1, -1
            else:
                if e < 0:
                    e = start[r, node]
                if e == start[r, node + 1]:
                    frames[depth, 1], frames[depth, 2] = t + 1, -1
                    continue
                further = to[t] * nodes + targets[e]
                frames[depth, 2] = e + 1
            if not index[further]:
                count += 1
                index[further] = low[further] = count
                stack[height] = further
                height += 1
                depth += 1
                frames[depth, 0] = further
                frames[depth, 1], frames[depth, 2] = first[further // nodes], -1
            elif not component[further]:
                low[place] = min(low[place], index[further])
    return found


@lean_kernel
def spread(
    below_start: Int64s,
    below: Int64s,
    member_start: Int64s,
    members: Int64s,
    seeds: Int64s,
    at: int,
    most_steps: int,
    same: Int64s,
    marks: Int64s,
    queue: Int64s,
    found_seed: Int64s,
    found_node: Int64s,
) -> tuple[int, int]:
    """The members of all components that each seed reaches, from seed number `at` on.

    Component c leads to the components `below[below_start[c]:below_start[c + 1]]`, whose numbers
    are less than c, and has the `members` `member_start[c]` up to `member_start[c + 1]`.

    Args:
        seeds: components int64 [n].
        same: int64 [components + 1], zeros before the first call: the component that reaches the
            same members as c; 0 if it reaches none.
        marks, queue: int64 [components + 1]; `marks` are zeros before the first call.
        found_seed, found_node: outputs, as of `reached`.

    Returns:
        (number of outputs, first seed that is not done)
    """
    found, steps = 0, 0
    if at == 0:
        for c in range(1, len(same)):
            only = 0
            for j in range(below_start[c], below_start[c + 1]):
                other = same[below[j]]
                if other and other != only:
                    only = c if only else other
            same[c] = c if member_start[c + 1] > member_start[c] else only
    for i in range(at, len(seeds)):
        kept, head, tail = found, 0, 0
        if same[seeds[i]]:
            queue[0], tail = same[seeds[i]], 1
            marks[queue[0]] = i + 1
        while head < tail:
            c = queue[head]
            head += 1
            if found + member_start[c + 1] - member_start[c] > len(found_seed):
                for j in range(tail):
                    marks[queue[j]] = 0
                return kept, i
            for j in range(member_start[c], member_start[c + 1]):
                found_seed[found], found_node[found] = i, members[j]
                found += 1
            for j in range(below_start[c], below_start[c + 1]):
                other = same[below[j]]
                if other and marks[other] != i + 1:
                    marks[other] = i + 1
                    queue[tail] = other
                    tail += 1
            steps += below_start[c + 1] - below_start[c]
        if steps > most_steps:
            return found, i + 1
    return found, len(seeds)
