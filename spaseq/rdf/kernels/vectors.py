"""Machine-level loads and searches: 8 and 32 bytes at a time, from anywhere in a buffer.

A search compares 32 bytes with a few constants and packs the outcomes into the bits of an integer,
lowest bit first; LLVM makes two or three instructions of it on AVX2, a few more on SSE2 and NEON.
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
"""Bytes that a search looks at in one step."""

_BYTE, _WORD, _MASK = ir.IntType(8), ir.IntType(64), ir.IntType(WIDTH)
_VECTOR = ir.VectorType(_BYTE, WIDTH)

Search: TypeAlias = "Callable[[Bytes, int], int]"


class _Vector:
    """32 bytes of a buffer while code for a search is generated."""

    def __init__(self, builder: Any, value: Any) -> None:
        self._builder = builder
        self._value = value

    def _all(self, byte: int) -> Any:
        return ir.Constant(_VECTOR, [byte] * WIDTH)

    def equal(self, byte: int) -> Any:
        return self._builder.icmp_unsigned("==", self._value, self._all(byte))

    def most(self, byte: int) -> Any:
        """Which bytes are `byte` or less."""
        return self._builder.icmp_unsigned("<=", self._value, self._all(byte))

    def least(self, byte: int) -> Any:
        """Which bytes are `byte` or more."""
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
    """(buffer, at) -> bit i is set if byte at + i is one that the search looks for."""

    def typed(_: Any, buffer: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR)
            vector = _Vector(builder, _load(builder, place))
            return _packed(builder, outcome(vector))

        return types.int64(buffer, types.int64), generate

    return cast("Search", intrinsic(typed))


iri_ends = _search(lambda v: v.any_of(v.equal(ord(">")), v.most(0x20)))
"""`>`, and what no IRI holds in N-Triples: space and the control characters."""

iri_stops = _search(
    lambda v: v.any_of(
        v.most(0x20),
        v.between(ord("["), ord("^")),
        v.between(ord("{"), ord("}")),
        v.least(0x7F),
        *(v.equal(ord(c)) for c in '"#%<>`'),
    )
)
"""All that is not allowed everywhere in an IRI, with `#` and `%`, which are under conditions."""

quote_ends = _search(lambda v: v.any_of(v.equal(ord('"')), v.equal(ord("\\")), v.most(0x1F)))
"""The end of a literal's lexical form, an escape, and the control characters."""

plain_ends = _search(
    lambda v: v.any_of(v.equal(ord('"')), v.equal(ord("\\")), v.most(0x1F), v.least(0x7F))
)
"""The same, and what `wide` finds."""

wide = _search(lambda v: v.least(0x7F))
"""Bytes of characters beyond ASCII, and DEL."""

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
"""(buffer, at) -> the 8 bytes from there on, the first one lowest."""
byte = cast("Callable[[Bytes, int], int]", intrinsic(_byte_code))
"""(buffer, at) -> one byte, as int64; numba's own indexing would also count from the end."""
lowest = cast("Callable[[int], int]", intrinsic(_lowest_code))
"""(bits) -> the number of the lowest bit that is set; there must be one."""
folded_product = cast(
    "Callable[[np.uint64, np.uint64], np.uint64]", intrinsic(_folded_product_code)
)
"""The two halves of a 128-bit product, xored."""
_differences = cast("Callable[[Bytes, int, Bytes, int], int]", intrinsic(_differences_code))
"""(a, at, b, at) -> bit i is set if the bytes at + i differ."""
_copy = cast("Callable[[Bytes, int, Bytes, int], None]", intrinsic(_copy_code))
"""(source, at, target, at): 32 bytes."""

signed = cast("Callable[[Any], int]", np.int64)
"""An integer of any width as int64."""


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
    """Copy `size` bytes; up to 31 bytes after them are copied, too, so both must have as many."""
    end = at + size
    while at < end:
        _copy(source, at, target, to)
        at += WIDTH
        to += WIDTH
