"""The functions for numba of the modules imported so far; `decorators` adds them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol


class CalledFromPython(Hashable, Protocol):
    """A kernel: its Python function, and numba's options."""

    function: Callable[..., Any]
    options: dict[str, Any]

    @property
    def dispatcher(self) -> Any:
        """numba's dispatcher."""


KERNELS: list[CalledFromPython] = []
"""All kernels."""

DEVICE_FUNCTIONS: list[tuple[Callable[..., Any], dict[str, Any]]] = []
"""All device functions, with numba's options."""

INTRINSICS: list[tuple[Callable[..., Any], str]] = []
"""All functions with special machine code, and the place where it is made, `module:name`."""

PLAIN_FORMS: list[tuple[Callable[..., Any], Callable[..., Any]]] = []
"""All functions that Python calls in place of a device function, and that device function."""
