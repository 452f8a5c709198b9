"""Decorators for kernels: functions that numba compiles.

Python code calls a kernel. Only kernels call a device function, which is compiled into them. All of
them are Python functions, too: `spaseq.compiled.mode` says when they are interpreted. Importing
this module does not import numba.

Compiled code computes with 64 bits whatever the type of an array is; numpy's scalars would overflow
at 32. So elements of narrow integer arrays, and booleans, are read as Python integers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

import numpy as np

from spaseq.compiled import mode
from spaseq.compiled.arrays import Array
from spaseq.compiled.known_functions import (
    DEVICE_FUNCTIONS,
    INTRINSICS,
    KERNELS,
    PLAIN_FORMS,
)

_NARROW = {np.dtype(t) for t in (np.bool_, np.int8, np.int16, np.int32, np.uint32)}


class _NarrowArray(np.ndarray[Any, Any]):
    """A view of an array of narrow integers whose elements are read as Python integers."""

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        return value.item() if isinstance(value, np.generic) else value


def interpret(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """The result of a kernel's function. Arrays in it are plain arrays."""
    with np.errstate(over="ignore"):  # hashes wrap around
        return _plain(function(*map(_widened, arguments)))


def _widened(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return argument.view(_NarrowArray) if argument.dtype in _NARROW else argument
    if isinstance(argument, tuple):
        return _tuple(argument, _widened)
    return int(argument) if isinstance(argument, np.int32 | np.bool_) else argument


def _plain(result: Any) -> Any:
    if isinstance(result, _NarrowArray):
        return _base(result)
    return _tuple(result, _plain) if isinstance(result, tuple) else result


def _base(array: _NarrowArray) -> Array:
    return array.view(np.ndarray)


def _tuple(values: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    changed = map(change, values)
    return type(values)(*changed) if hasattr(values, "_fields") else tuple(changed)


F = TypeVar("F", bound=Callable[..., Any])


class Kernel:
    """A function that Python code calls: compiled at the first call, or interpreted."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        self._compiled: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is not None:
            return self._compiled(*arguments)
        if mode.interpreted():
            began = time.thread_time()
            result = interpret(self.function, arguments)
            mode.note_interpreted(time.thread_time() - began)
            return result
        return self.dispatcher(*arguments)

    @property
    def dispatcher(self) -> Any:
        """numba's dispatcher, which compiles the function for the types of its arguments."""
        if self._compiled is None:
            from spaseq.compiled.compiler import dispatcher_of  # it imports numba

            mode.compile_from_now_on()
            self._compiled = dispatcher_of(self)
        return self._compiled

    def __reduce__(self) -> str:
        return self.function.__qualname__


def kernel(function: F) -> F:
    """Compile a function that Python code calls. It is cached on disk and runs without the GIL.

    A `lean_kernel` is faster if the function loops over rows or terms and gets its arrays as
    arguments.
    """
    return _kernel(function, {})


def lean_kernel(function: F) -> F:
    """Compile a `kernel` that allocates nothing and returns no array, so it counts no references.

    numba counts references to arrays with atomic operations unless it can prove that they cancel
    out, which it cannot around calls in `while` loops. That took two thirds of the tokenizer's
    time.
    """
    return _kernel(function, {"_nrt": False})


def _kernel(function: F, options: dict[str, Any]) -> F:
    made = Kernel(function, {"nogil": True, "error_model": "numpy", **options})
    KERNELS.append(made)
    return cast("F", made)


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
    DEVICE_FUNCTIONS.append((function, _DEVICE_FUNCTION))
    return function


def inlined_device_function(function: F) -> F:
    """Compile a device function and inline it, for calls per byte or per term."""
    DEVICE_FUNCTIONS.append((function, {"forceinline": True, **_DEVICE_FUNCTION}))
    return function


def interpreted_as(plain: F) -> Callable[[F], F]:
    """Let interpreted kernels call `plain` in place of a device function, which it does faster.

    Kernels that are compiled get the device function.
    """

    def decorate(function: F) -> F:
        PLAIN_FORMS.append((plain, function))
        return plain

    return decorate


def machine_code(place: str) -> Callable[[F], F]:
    """Give a device function machine code that numba would not make of it.

    The function does the same in Python. `place` is `module:name` of the function that numba's
    `intrinsic` takes; that module is imported when a kernel is compiled.
    """

    def decorate(function: F) -> F:
        INTRINSICS.append((function, place))
        return function

    return decorate


@machine_code("spaseq.compiled.compiler:nonnegative")
def as_nonnegative(number: Any) -> Any:
    """The same integer, with a promise to the compiler that it is not negative.

    Negative indices count from the end of an array. The promise removes that test at every use.
    """
    return number


@machine_code("spaseq.compiled.compiler:assumed")
def assume(condition: bool) -> None:
    """Promise the compiler that a condition holds.

    Given the number of columns of an array, for instance, it computes addresses by shifts and sums
    instead of products.
    """
