"""Pickles of data that run no code when they are loaded, whoever wrote them.

A pickle names the functions that make its objects. `SafeUnpickler` knows the classes that its user
lists and makes arrays itself; it refuses every other name. `pickle` itself makes numbers, texts,
lists, tuples, sets and dicts without a name.
"""

from __future__ import annotations

import io
import pickle
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import IO, Any, ClassVar

import numpy as np
import pyarrow as pa

from spaseq.storage.checksums import sealed, unsealed


class ForeignName(pickle.UnpicklingError):
    """A pickle names a class or function that does not belong into it."""

    def __init__(self, module: str, name: str) -> None:
        super().__init__(f"it names {module}.{name}, which is no part of it")
        self.module = module


class SafePickler(pickle.Pickler):
    """Pickles what `SafeUnpickler` loads."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(file, protocol=5)

    def reducer_override(self, obj: object) -> Any:
        """numpy pickles an array with gaps in a form that cannot be loaded safely."""
        if isinstance(obj, np.ndarray) and not obj.flags.forc:
            return obj.copy().__reduce_ex__(5)
        return NotImplemented


class SafeUnpickler(pickle.Unpickler):
    """Loads plain values, arrays of numbers, Arrow texts, and instances of the listed classes."""

    classes: ClassVar[frozenset[tuple[str, str]]] = frozenset()
    """(module, name) of each class whose instances may be loaded."""

    def find_class(self, module: str, name: str) -> Any:
        known = _MAKERS.get((module, name))
        if known is not None:
            return known
        if (module, name) not in self.classes:
            raise ForeignName(module, name)
        class_ = super().find_class(module, name)
        if not isinstance(class_, type):
            raise ForeignName(module, name)
        return class_


class _PlainUnpickler(SafeUnpickler):
    """Loads plain values only."""

    def find_class(self, module: str, name: str) -> Any:
        raise ForeignName(module, name)


def dump_plain(value: object) -> bytes:
    """A value of numbers, texts, bytes, lists, tuples and dicts as bytes with a checksum."""
    return sealed(pickle.dumps(value, protocol=5))


def load_plain(data: bytes) -> Any:
    """The inverse of `dump_plain`; also reads a pickle without a checksum.

    Raises:
        Damaged: the checksum is wrong.
        pickle.UnpicklingError: the bytes are no pickle, or it has something else in it.

    >>> load_plain(dump_plain([(1, "a"), b"z"]))
    [(1, 'a'), b'z']
    """
    body = unsealed(data)
    file = io.BytesIO(data if body is None else body)
    return whole(_PlainUnpickler(file).load, file)


BROKEN: tuple[type[Exception], ...] = (
    pickle.UnpicklingError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The errors of loading and using a damaged pickle."""


def whole(load: Callable[[], Any], file: io.BytesIO) -> Any:
    """The result of `load`, which must read the file to its end; else UnpicklingError."""
    result = load()
    if file.read(1):
        raise pickle.UnpicklingError("something follows its end")
    return result


# --- arrays ---------------------------------------------------------------------------------------


class _DType:
    """A numpy dtype of numbers while a pickle is loaded.

    numpy's own `__setstate__` believes whatever flags it is given.
    """

    def __init__(self, text: str, *_flags: object) -> None:
        if not isinstance(text, str) or not re.fullmatch("[biuf][1248]", text):
            raise pickle.UnpicklingError(f"it has an array of {text}")
        self.found = np.dtype(text)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        _, order, *_ = state
        self.found = self.found.newbyteorder(str(order))  # type: ignore[arg-type]


def _numbers(data: Any, dtype: _DType, shape: tuple[int, ...], order: str) -> Any:
    """`numpy._core.numeric._frombuffer`, for numbers only."""
    assert isinstance(dtype, _DType)
    return np.frombuffer(data, dtype.found).reshape(shape, order=order)  # type: ignore[call-overload]


def _number(dtype: _DType, data: Any) -> Any:
    """`numpy._core.multiarray.scalar`, for numbers only."""
    assert isinstance(dtype, _DType)
    (number,) = np.frombuffer(data, dtype.found)
    return number


_TEXTS = {"string": pa.string(), "large_string": pa.large_string()}


def _texts(parts: tuple[Any, ...]) -> Any:
    """`pyarrow.lib._restore_array`, for texts only; offsets beyond the texts are refused."""
    kind, length, nulls, offset, buffers, children, dictionary, *_ = parts
    if kind not in _TEXTS.values() or children or dictionary is not None:
        raise pickle.UnpicklingError(f"it has an array of {kind}")
    array = pa.Array.from_buffers(kind, length, buffers, nulls, offset)
    array.validate(full=True)
    return array


_MAKERS: Mapping[tuple[str, str], Callable[..., Any]] = {
    ("collections", "deque"): deque,
    ("numpy", "dtype"): _DType,
    ("numpy._core.numeric", "_frombuffer"): _numbers,
    ("numpy.core.numeric", "_frombuffer"): _numbers,
    ("numpy._core.multiarray", "scalar"): _number,
    ("numpy.core.multiarray", "scalar"): _number,
    ("pyarrow.lib", "_restore_array"): _texts,
    ("pyarrow.lib", "type_for_alias"): _TEXTS.__getitem__,
    ("pyarrow.lib", "py_buffer"): pa.py_buffer,
}
"""The functions that the pickles of numpy and Arrow name, or our own in their place."""
