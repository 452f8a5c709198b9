"""The machine code of `vectors`: loads of 8 or 32 bytes, and searches in 32 bytes at once.

LLVM compiles a search to two or three instructions on AVX2, a few more on SSE2 and NEON. Each
function here is what numba's `intrinsic` takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types

from spaseq.compiled.compiler import require
from spaseq.rdf.kernels.vectors import WIDTH

_BYTE, _WORD, _MASK = ir.IntType(8), ir.IntType(64), ir.IntType(WIDTH)
_VECTOR = ir.VectorType(_BYTE, WIDTH)
_LINE = 64
_INT, _READ, _KEPT, _DATA = (
    ir.IntType(32),
    0,
    3,
    1,
)  # the last three say what is prefetched, and why


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
        either = outcomes[0]
        for outcome in outcomes[1:]:
            either = self._builder.or_(either, outcome)
        return either


def _address(
    context: Any, builder: Any, array_type: Any, array: Any, at: Any, kind: Any, width: int
) -> Any:
    """The address of `width` bytes of an array from `at` on."""
    array_data = context.make_array(array_type)(context, builder, array)
    end, first = builder.add(at, ir.Constant(_WORD, width)), ir.Constant(_WORD, 0)
    holds = builder.and_(
        builder.icmp_signed(">=", at, first), builder.icmp_signed("<=", end, array_data.nitems)
    )
    require(context, builder, holds, "bytes outside a buffer")
    return _bare_address(builder, array_data.data, at, kind)


def _bare_address(builder: Any, data: Any, at: Any, kind: Any) -> Any:
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def _load(builder: Any, address: Any) -> Any:
    value = builder.load(address)
    value.align = 1
    return value


def _packed(builder: Any, outcomes: Any) -> Any:
    return builder.zext(builder.bitcast(outcomes, _MASK), _WORD)


def _search(outcome: Callable[[_Vector], Any]) -> Callable[..., Any]:
    """The code of a search."""

    def typed(_: Any, buffer: Any, at: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            begin = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR, WIDTH)
            vector = _Vector(builder, _load(builder, begin))
            return _packed(builder, outcome(vector))

        return types.int64(buffer, types.int64), generate

    return typed


iri_ends = _search(lambda v: v.any_of(v.equal(ord(">")), v.most(0x20)))

iri_stops = _search(
    lambda v: v.any_of(
        v.most(0x20),
        v.between(ord("["), ord("^")),
        v.between(ord("{"), ord("}")),
        v.least(0x7F),
        *(v.equal(ord(c)) for c in '"#%<>`'),
    )
)

quote_ends = _search(lambda v: v.any_of(v.equal(ord('"')), v.equal(ord("\\")), v.most(0x1F)))

plain_ends = _search(
    lambda v: v.any_of(v.equal(ord('"')), v.equal(ord("\\")), v.most(0x1F), v.least(0x7F))
)

line_ends = _search(lambda v: v.any_of(v.equal(10), v.equal(13)))


def differences(_: Any, a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
    """The code of `_differences`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR, WIDTH)
        right = _address(context, builder, signature.args[2], args[2], args[3], _VECTOR, WIDTH)
        unequal = builder.icmp_unsigned("!=", _load(builder, left), _load(builder, right))
        return _packed(builder, unequal)

    return types.int64(a, types.int64, b, types.int64), generate


def copy(_: Any, a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
    """The code of `_copy`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = _address(context, builder, signature.args[0], args[0], args[1], _VECTOR, WIDTH)
        target = _address(context, builder, signature.args[2], args[2], args[3], _VECTOR, WIDTH)
        builder.store(_load(builder, source), target).align = 1
        return context.get_dummy_value()

    return types.void(a, types.int64, b, types.int64), generate


def word(_: Any, buffer: Any, at: Any) -> Any:
    """The code of `word`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1], _WORD, 8)
        return _load(builder, address)

    return types.uint64(buffer, types.int64), generate


def byte(_: Any, buffer: Any, at: Any) -> Any:
    """The code of `byte`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1], _BYTE, 1)
        return builder.zext(_load(builder, address), _WORD)

    return types.int64(buffer, types.int64), generate


def prefetch(_: Any, buffer: Any, at: Any) -> Any:
    """The code of `prefetch`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        for ahead in (0, _LINE):
            at = builder.add(args[1], ir.Constant(_WORD, ahead))
            address = _bare_address(builder, data, at, _BYTE)
            given = [address, *(ir.Constant(_INT, n) for n in (_READ, _KEPT, _DATA))]
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in given])
            call = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
            builder.call(call, given)
        return context.get_dummy_value()

    return types.void(buffer, types.int64), generate


def lowest(_: Any, bits: Any) -> Any:
    """The code of `lowest`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), generate


def folded_product(_: Any, a: Any, b: Any) -> Any:
    """The code of `folded_product`."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        long = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], long), builder.zext(args[1], long))
        high = builder.lshr(product, ir.Constant(long, 64))
        return builder.xor(builder.trunc(product, _WORD), builder.trunc(high, _WORD))

    return types.uint64(types.uint64, types.uint64), generate
