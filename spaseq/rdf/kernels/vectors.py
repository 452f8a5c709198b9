"""Machine-level loads and searches: 8 or 32 bytes at a time, at any offset of a buffer.

A search compares 32 bytes with a few constants and packs the results into the bits of an integer,
lowest bit first. LLVM compiles it to two or three instructions on AVX2, a few more on SSE2 and
NEON.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, cast

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from spaseq.compiled.arrays import Bytes
from spaseq.compiled.decorators import inlined_device_function

WIDTH = 32
"""Bytes that a search compares in one step."""

_BYTE, _WORD, _MASK = ir.IntType(8), ir.IntType(64), ir.IntType(WIDTH)
_VECTOR = ir.VectorType(_BYTE, WIDTH)

Search: TypeAlias = "Callable[[Bytes, int], int]"


class _Vector:
    """32 bytes of a buffer, while the code of a search is generated."""

    def __init__(self, builder: Any, value: Any) -> None:
        self._builder = builder
        self._value = value

    def _all(self, byte: int) -> Any:
        return ir.Constant(_VECTOR, [byte] * WIDTH)

    def equal(self, byte: int) -> Any:
        return self._builder.icmp_unsigned("==", self._value, self._all(byte))

    def most(self, byte: int) -> Any:
        """Which bytes are at most `byte`."""
        return self._builder.icmp_unsigned("<=", self._value, self._all(byte))

    def least(self, byte: int) -> Any:
        """Which bytes are at least `byte`."""
        return self._builder.icmp_unsigned(">=", self._value, self._all(byte))

    def between(self, first: int, last: int) -> Any:
        shifted = self._builder.sub(self._value, self._all(first))
        return self._builder.icmp_unsigned("<=", shifted, self._all(last - first))

    def any_of(self, *outcomes: Any) -> Any:
        found = outcomes[0]
        for outcome in outcomes[1:]:
            found = self._builder.or_(found, outcome)
        return found


def _address(context: Any, builder: Any, array_type: Any, array: Any, at: Any, kind: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def _load(builder: Any, address: Any) -> Any:
    value = builder.load(address)
    value.align = 1
    return value


def _packed(builder: Any, outcomes: Any) -> Any:
    return builder.zext(builder.bitcast(outcomes, _MASK), _WORD)


def _search(outcome: Callable[[_Vector], Any]) -> Search:
    """An intrinsic (buffer, at) -> bits; bit i is set if the search matches byte at + i."""

    def typed(_: Any, buffer: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
            vector = _Vector(builder, _load(builder, place))
            return _packed(builder, outcome(vector))

        return types.int64(buffer, types.int64), generate

    return cast("Search", intrinsic(typed))


iri_ends = _search(lambda v: v.any_of(v.equal(ord(">")), v.most(0x20)))
"""`>`, and the bytes that N-Triples forbids in IRIs: space and control characters."""

iri_stops = _search(
    lambda v: v.any_of(
        v.most(0x20),
        v.between(ord("["), ord("^")),
        v.between(ord("{"), ord("}")),
        v.least(0x7F),
        *(v.equal(ord(c)) for c in '"#%<>`'),
    )
)
"""Bytes that are not allowed everywhere in an IRI. `#` and `%` are allowed under conditions."""

quote_ends = _search(lambda v: v.any_of(v.equal(ord('"')), v.equal(ord("\\")), v.most(0x1F)))
"""The closing quote of a literal, backslash, and control characters."""

plain_ends = _search(
    lambda v: v.any_of(v.equal(ord('"')), v.equal(ord("\\")), v.most(0x1F), v.least(0x7F))
)
"""The same, bytes of non-ASCII characters, and DEL."""

line_ends = _search(lambda v: v.any_of(v.equal(10), v.equal(13)))
"""Line feeds and carriage returns."""


def _differences_code(_: Any, a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        right = _address(context, builder, signature.args[2], args[2], args[3], _VECTOR)
        unequal = builder.icmp_unsigned("!=", _load(builder, left), _load(builder, right))
        return _packed(builder, unequal)

    return types.int64(a, types.int64, b, types.int64), generate


def _copy_code(_: Any, a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
        target = _address(context, builder, signature.args[2], args[2], args[3], _VECTOR)
        builder.store(_load(builder, source), target).align = 1
        return context.get_dummy_value()

    return types.void(a, types.int64, b, types.int64), generate


def _word_code(_: Any, buffer: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _load(
            builder, _address(context, builder, signature.args[0], args[0], args[1], _WORD)
        )

    return types.uint64(buffer, types.int64), generate


def _byte_code(_: Any, buffer: Any, at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = _address(context, builder, signature.args[0], args[0], args[1], _BYTE)
        return builder.zext(_load(builder, place), _WORD)

    return types.int64(buffer, types.int64), generate


def _lowest_code(_: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def _folded_product_code(_: Any, a: Any, b: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        long = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], long), builder.zext(args[1], long))
        high = builder.lshr(product, ir.Constant(long, 64))
        return builder.xor(builder.trunc(product, _WORD), builder.trunc(high, _WORD))

    return types.uint64(types.uint64, types.uint64), generate


word = cast("Callable[[Bytes, int], np.uint64]", intrinsic(_word_code))
"""(buffer, at) -> the 8 bytes from `at` on as an integer, lowest byte first."""
byte = cast("Callable[[Bytes, int], int]", intrinsic(_byte_code))
"""(buffer, at) -> the byte at `at` as int64, without numba's check for negative indices."""
lowest = cast("Callable[[int], int]", intrinsic(_lowest_code))
"""(bits) -> the index of the lowest set bit; at least one must be set."""
folded_product = cast(
    "Callable[[np.uint64, np.uint64], np.uint64]", intrinsic(_folded_product_code)
)
"""(a, b) -> the exclusive or of the two halves of their 128-bit product."""
_differences = cast("Callable[[Bytes, int, Bytes, int], int]", intrinsic(_differences_code))
"""(a, at_a, b, at_b) -> bits; bit i is set if the bytes at_a + i and at_b + i differ."""
_copy = cast("Callable[[Bytes, int, Bytes, int], None]", intrinsic(_copy_code))
"""(source, at, target, to): copies 32 bytes."""

signed = cast("Callable[[Any], int]", np.int64)
"""An integer of any width as int64."""


def _first(search: Search) -> Search:
    """(buffer, at) -> the first offset from `at` on that a search matches; there must be one."""

    @inlined_device_function
    def first(buffer: Bytes, at: int) -> int:
        bits = search(buffer, at)
        while bits == 0:
            at += WIDTH
            bits = search(buffer, at)
        return at + lowest(bits)

    return first


first_iri_end = _first(iri_ends)
first_iri_stop = _first(iri_stops)
first_quote_end = _first(quote_ends)
first_plain_end = _first(plain_ends)
first_line_end = _first(line_ends)


@inlined_device_function
def same(a: Bytes, at_a: int, b: Bytes, at_b: int, size: int) -> bool:
    """Whether two spans of `size` bytes are equal."""
    while size > WIDTH:
        if _differences(a, at_a, b, at_b) != 0:
            return False
        at_a += WIDTH
        at_b += WIDTH
        size -= WIDTH
    return _differences(a, at_a, b, at_b) & ((1 << size) - 1) == 0


@inlined_device_function
def copied(source: Bytes, at: int, target: Bytes, to: int, size: int) -> None:
    """Copy `size` bytes, and up to 31 bytes after them: both buffers must be that much longer."""
    end = at + size
    while at < end:
        _copy(source, at, target, to)
        at += WIDTH
        to += WIDTH
