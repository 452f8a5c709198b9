"""Compiles kernels with numba. Importing this module imports numba.

To numba, a device function or a kernel that another kernel calls is a global Python object. It
learns here what each of them is.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any

from spaseq.compiled import mode
from spaseq.compiled.cache import choose_cache_directory
from spaseq.compiled.known_functions import (
    DEVICE_FUNCTIONS,
    INTRINSICS,
    KERNELS,
    PLAIN_FORMS,
    CalledFromPython,
)

_CACHE_DIRECTORY = choose_cache_directory()

import numba  # noqa: E402  reads NUMBA_CACHE_DIR when it is imported
from numba.core import event, types  # noqa: E402
from numba.core.compiler_lock import global_compiler_lock  # noqa: E402
from numba.core.typing.templates import (  # noqa: E402
    infer,
    infer_global,
    make_intrinsic_template,
)

from spaseq.compiled.checked_cache import keep_on_disk  # noqa: E402

if not numba.config.CACHE_DIR:  # it was imported before
    numba.config.CACHE_DIR = _CACHE_DIRECTORY

_dispatchers: dict[Hashable, Any] = {}
"""By kernel or device function. numba itself holds them weakly."""

_intrinsics = 0  # how many numba knows


@global_compiler_lock  # type: ignore[untyped-decorator]
def dispatcher_of(kernel: CalledFromPython) -> Any:
    """The dispatcher of a kernel."""
    if kernel not in _dispatchers:
        made = numba.njit(kernel.function, boundscheck=mode.checked(), **kernel.options)
        _know(kernel, keep_on_disk(made, _tell_numba))
    return _dispatchers[kernel]


def _tell_numba() -> None:
    """Register with numba the functions that a kernel may call: all of the imported modules."""
    global _intrinsics
    for function, import_path in INTRINSICS[_intrinsics:]:
        module, _, name = import_path.partition(":")
        _intrinsic(function, getattr(import_module(module), name))
    _intrinsics = len(INTRINSICS)
    for function, options in DEVICE_FUNCTIONS:
        if function not in _dispatchers:
            _know(function, numba.njit(function, boundscheck=mode.checked(), **options))
    for plain, function in PLAIN_FORMS:
        if plain not in _dispatchers:
            _know(plain, _dispatchers[function])
    for kernel in KERNELS:
        dispatcher_of(kernel)


def _know(function: Hashable, dispatcher: Any) -> None:
    _dispatchers[function] = dispatcher
    infer_global(function, types.Dispatcher(dispatcher))


def _intrinsic(function: Callable[..., Any], code: Callable[..., Any]) -> None:
    template = make_intrinsic_template(function, code, function.__name__)
    infer(template)
    infer_global(function, types.Function(template))


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
            mode.note_compilation(time.monotonic() - self._since)


event.register("numba:compile", _FirstCompilation())


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
