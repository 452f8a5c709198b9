"""Consecutive N-Quads messages: which of them cannot be read together."""

from __future__ import annotations

from spaseq.compiled.arrays import Bools, Bytes, Int64s
from spaseq.compiled.decorators import device_function, inlined_device_function, lean_kernel
from spaseq.rdf.kernels.lines import CR, LF

_TAB, _SPACE, _DOT, _LESS, _GREATER, _QUOTE, _BACKSLASH = 9, 32, 46, 60, 62, 34, 92


@lean_kernel
def find_apart(data: Bytes, begins: Int64s, ends: Int64s, apart: Bools) -> None:
    """Set `apart[i]` unless message i can be read together with the one before it.

    It can if the graph in the last line of that message and the one in its own first line are
    plainly two IRIs. Then no event spans both.

    Args:
        data: bytes with the messages.
        begins: int64 [n], the start of each message in the data.
        ends: int64 [n], its end.
        apart: bool [n].
    """
    last_begin, last_end = (
        0,
        0,
    )  # the graph in the last line of the message before; empty if unclear
    for i in range(len(begins)):
        begin, end = begins[i], ends[i]
        while begin < end and _is_white(data[begin]):
            begin += 1
        while begin < end and _is_white(data[end - 1]):
            end -= 1
        first = begin
        while first < end and data[first] != LF and data[first] != CR:
            first += 1
        graph_end = _graph_end(data, begin, first)
        graph = _graph_begin(data, begin, graph_end)
        apart[i] = (
            graph == graph_end
            or last_begin == last_end
            or _same(data, last_begin, last_end, graph, graph_end)
        )
        last = end
        while last > begin and data[last - 1] != LF and data[last - 1] != CR:
            last -= 1
        last_end = _graph_end(data, last, end)
        last_begin = _graph_begin(data, last, last_end)


@inlined_device_function
def _is_white(value: int) -> bool:
    return value == _SPACE or _TAB <= value <= CR


@inlined_device_function
def _is_blank(value: int) -> bool:
    return value == _SPACE or value == _TAB


@device_function
def _graph_end(data: Bytes, begin: int, end: int) -> int:
    """The end of the term before the dot at the end of a line; `begin` if there is no dot."""
    while begin < end and _is_blank(data[end - 1]):
        end -= 1
    if begin == end or data[end - 1] != _DOT:
        return begin
    end -= 1
    while begin < end and _is_blank(data[end - 1]):
        end -= 1
    return end


@device_function
def _graph_begin(data: Bytes, begin: int, end: int) -> int:
    """The start of the IRI that ends at `end`, in a line from `begin` on; `end` if it is unclear.

    It is the graph, unless it is the first term of the line.
    """
    if begin == end or data[end - 1] != _GREATER:
        return end
    at = end - 1
    while at > begin and data[at] != _LESS:
        if data[at] == _QUOTE or data[at] == _BACKSLASH:
            return end
        at -= 1
    return at if at > begin else end


@device_function
def _same(data: Bytes, a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):
        if data[a + i] != data[b + i]:
            return False
    return True
