"""Decorators for kernels: functions that numba compiles.

A kernel is called from Python; a device function only by kernels, into which it is compiled.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar, cast

from spaseq.compiled.cache import choose_cache_directory

_CACHE_DIRECTORY = choose_cache_directory()

import numba  # noqa: E402  reads NUMBA_CACHE_DIR when it is imported
from numba.core import event, types  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: list[Any] = []
"""All kernels of the modules imported so far, as numba's dispatchers."""

if not numba.config.CACHE_DIR:  # it was imported before
    numba.config.CACHE_DIR = _CACHE_DIRECTORY


def kernel(function: F) -> F:
    """A function that is called from Python: compiled, kept on disk, run without the GIL.

    Where it runs through rows or terms and can be given its arrays, a `lean_kernel` is faster.
    """
    KERNELS.append(numba.njit(function, cache=True, nogil=True, error_model="numpy"))
    return cast("F", KERNELS[-1])


def lean_kernel(function: F) -> F:
    """A `kernel` that allocates nothing and returns no array, and so counts no references.

    numba counts the references to arrays by atomic operations wherever it cannot prove that they
    cancel out, as around calls in `while` loops; for the tokenizer that was two thirds of its time.
    """
    KERNELS.append(numba.njit(function, cache=True, nogil=True, error_model="numpy", _nrt=False))
    return cast("F", KERNELS[-1])


_DEVICE_FUNCTION = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}


def device_function(function: F) -> F:
    """A function that only kernels call; it is compiled into each of them.

    Like a `lean_kernel` it allocates nothing and returns no array.
    """
    return cast("F", numba.njit(function, **_DEVICE_FUNCTION))


def inlined_device_function(function: F) -> F:
    """A device function whose body replaces its calls, for calls per byte or per term."""
    return cast("F", numba.njit(function, forceinline=True, **_DEVICE_FUNCTION))


@intrinsic  # type: ignore[untyped-decorator]
def as_nonnegative(context: Any, number: Any) -> Any:
    """The same integer as int64, with the promise to the compiler that it is not negative.

    As an index it then needs no check for counting from the end of the array at every use.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (value,) = arguments
        builder.assume(builder.icmp_signed(">=", value, value.type(0)))
        return value

    return number(number), generate


@intrinsic  # type: ignore[untyped-decorator]
def assume(context: Any, condition: Any) -> Any:
    """Promise the compiler that a condition holds.

    If it knows the number of an array's columns, for instance, places in the array are shifts and
    sums instead of products.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.assume(arguments[0])
        return context.get_dummy_value()

    return types.none(types.boolean), generate


class _FirstCompilation(event.Listener):  # type: ignore[misc]
    """Says why the first run after an installation takes long to begin."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        if not self._said:
            self._said = True
            logging.getLogger("spaseq").warning(
                "spaseq: compiling kernels, once for this installation (see `spaseq warm`)"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _FirstCompilation())
