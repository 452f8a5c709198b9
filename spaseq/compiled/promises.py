"""The machine code of promises to the compiler."""

from __future__ import annotations

from typing import Any

from numba.core import types


def nonnegative(context: Any, number: Any) -> Any:
    """The code of `as_nonnegative`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        builder.assume(builder.icmp_signed(">=", value, value.type(0)))
        return value

    return number(number), generate


def assumed(context: Any, condition: Any) -> Any:
    """The code of `assume`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.assume(arguments[0])
        return context.get_dummy_value()

    return types.none(types.boolean), generate
