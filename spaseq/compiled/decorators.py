"""Decorators for kernels: functions that numba compiles.

Python code calls a kernel. Only kernels call a device function, which is compiled into them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from spaseq.budget import current_budget
from spaseq.compiled.cache import choose_cache_directory

_CACHE_DIRECTORY = choose_cache_directory()

import numba  # noqa: E402  reads NUMBA_CACHE_DIR when it is imported
from numba.core import event, types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from spaseq.compiled.checked_cache import keep_on_disk  # noqa: E402

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Any] = []
"""All kernels of the modules imported so far, as numba dispatchers."""

if not numba.config.CACHE_DIR:  # it was imported before
    numba.config.CACHE_DIR = _CACHE_DIRECTORY


def kernel(function: F) -> F:
    """Compile a function that Python code calls. It is cached on disk and runs without the GIL.

    A `lean_kernel` is faster if the function loops over rows or terms and gets its arrays as
    arguments.
    """
    KERNELS.append(keep_on_disk(numba.njit(function, nogil=True, error_model="numpy")))
    return cast("F", KERNELS[-1])


def lean_kernel(function: F) -> F:
    """Compile a `kernel` that allocates nothing and returns no array, so it counts no references.

    numba counts references to arrays with atomic operations unless it can prove that they cancel
    out, which it cannot around calls in `while` loops. That took two thirds of the tokenizer's
    time.
    """
    lean = numba.njit(function, nogil=True, error_model="numpy", _nrt=False)
    KERNELS.append(keep_on_disk(lean))
    return cast("F", KERNELS[-1])


_DEVICE_FUNCTION = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def device_function(function: F) -> F:
    """Compile a function that only kernels call, into each of them.

    Like a `lean_kernel`, it allocates nothing and returns no array.
    """
    return cast("F", numba.njit(function, **_DEVICE_FUNCTION))


def inlined_device_function(function: F) -> F:
    """Compile a device function and inline it, for calls per byte or per term."""
    return cast("F", numba.njit(function, forceinline=True, **_DEVICE_FUNCTION))


@intrinsic  # type: ignore[untyped-decorator]
def as_nonnegative(context: Any, number: Any) -> Any:
    """The same integer, with a promise to the compiler that it is not negative.

    Negative indices count from the end of an array. The promise removes that test at every use.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        builder.assume(builder.icmp_signed(">=", value, value.type(0)))
        return value

    return number(number), generate


@intrinsic  # type: ignore[untyped-decorator]
def assume(context: Any, condition: Any) -> Any:
    """Promise the compiler that a condition holds.

    Given the number of columns of an array, for instance, it computes addresses by shifts and sums
    instead of products.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.assume(arguments[0])
        return context.get_dummy_value()

    return types.none(types.boolean), generate


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Logs, once, why the first run after an installation starts slowly.

    The time does not count as time of the evaluation that needs the kernels.
    """

    def __init__(self) -> None:
        self._said, self._depth, self._since = False, 0, 0.0

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._since = time.monotonic()
        if not self._said:
            self._said = True
            logging.getLogger("spaseq").warning(
                "spaseq: compiling kernels, once for this installation (see `spaseq warm`)"
            )

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if not self._depth:
            current_budget().extend(time.monotonic() - self._since)


event.register("numba:compile", _FirstCompilation())
