"""The machine code of promises to the compiler, and of checks that they are kept."""

from __future__ import annotations

from typing import Any

from numba.core import types

from spaseq.compiled import mode


def require(context: Any, builder: Any, holds: Any, broken: str) -> None:
    """In kernels with checks: raise IndexError, with a message, unless a condition holds."""
    if mode.checked():
        with builder.if_then(builder.not_(holds), likely=False):
            context.call_conv.return_user_exc(builder, IndexError, (broken,))


def nonnegative(context: Any, number: Any) -> Any:
    """The code of `as_nonnegative`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        holds = builder.icmp_signed(">=", value, value.type(0))
        require(context, builder, holds, "an index is negative")
        builder.assume(holds)
        return value

    return number(number), generate


def assumed(context: Any, condition: Any) -> Any:
    """The code of `assume`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        require(context, builder, arguments[0], "an assumption does not hold")
        builder.assume(arguments[0])
        return context.get_dummy_value()

    return types.none(types.boolean), generate
