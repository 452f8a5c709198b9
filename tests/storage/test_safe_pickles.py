"""Pickles that are loaded from files: no name of theirs runs code, and damage is an error."""

from __future__ import annotations

import importlib
import io
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from spaseq.stages.state_pickles import STATE_CLASSES
from spaseq.storage.safe_pickles import BROKEN, SafeUnpickler, dump_plain, load_plain
from tests.hostile import run_bounded


class Calls:
    """Its pickle calls a function with arguments when it is loaded."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


def load(data: bytes) -> Any:
    return SafeUnpickler(io.BytesIO(data)).load()


def test_plain_values_and_arrays_come_back() -> None:
    plain = [(1, "a", None, 2.5), {b"z": {1, 2}}, frozenset({3})]
    assert load_plain(dump_plain(plain)) == plain
    assert load_plain(pickle.dumps(plain)) == plain
    numbers: list[Any] = [
        np.arange(6, dtype=np.int32).reshape(3, 2),
        np.zeros(0),
        np.array([True, False]),
        np.array([1, 2], ">i8"),
    ]
    for array in numbers:
        found = load(pickle.dumps(array, 5))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
    assert load(pickle.dumps(np.int64(7), 5)) == 7
    for texts in (pa.array(["a", None, "bc"], pa.large_string()), pa.array(["x"])):
        assert load(pickle.dumps(texts[1:], 5)).equals(texts[1:])


@pytest.mark.parametrize(
    "evil",
    [
        Calls(os.system, "touch ran"),
        Calls(eval, "open('ran', 'w')"),
        Calls(getattr, "text", "format"),
        Calls(importlib.import_module, "antigravity"),
        [1, {"deep": (Calls(os.system, "touch ran"),)}],
        np.array([Calls(os.system, "touch ran")], object),
    ],
    ids=["system", "eval", "getattr", "import", "nested", "array"],
)
def test_a_pickle_that_names_a_function_is_refused_unrun(
    evil: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for read in (load, load_plain):
        with pytest.raises(pickle.UnpicklingError, match=r"it names \w+\.\w+"):
            read(pickle.dumps(evil))
    assert not (tmp_path / "ran").exists()


def test_names_within_a_listed_class_are_refused() -> None:
    class Known(SafeUnpickler):
        classes = STATE_CLASSES

    for module, name in STATE_CLASSES:
        assert isinstance(getattr(importlib.import_module(module), name), type)
        for inner in (f"{name}.__init__", f"{name}.__init__.__globals__"):
            data = b"\x80\x04" + b"".join(
                b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, inner)
            )
            with pytest.raises(pickle.UnpicklingError, match="it names"):
                Known(io.BytesIO(data + b"\x93.")).load()


def test_arrays_of_objects_and_broken_texts_are_refused() -> None:
    dtype = pickle.dumps(np.dtype("O"), 5)
    with pytest.raises(pickle.UnpicklingError):
        load(dtype)
    offsets = pa.py_buffer(np.array([0, 10**9, 1], np.int64))
    broken = pa.Array.from_buffers(
        pa.large_string(), 2, [None, offsets, pa.py_buffer(b"a")], null_count=0
    )
    with pytest.raises(BROKEN):
        load(pickle.dumps(broken, 5))


def test_a_damaged_byte_or_a_cut_is_an_error_and_never_another_value() -> None:
    value = [(1, 2), ((3, b"pack" * 9), (4, b"")), "kb"]
    data = dump_plain(value)
    for at in range(len(data)):
        for flip in (1, 128, 255):
            with pytest.raises(BROKEN):
                load_plain(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
    for end in range(len(data)):
        with suppress(BROKEN):
            assert load_plain(data[:end]) == value  # only the checksum is gone


MUTATE = """
import pickle, random
from contextlib import suppress
import numpy as np
import pyarrow as pa
from spaseq.storage.safe_pickles import BROKEN
from tests.storage.test_safe_pickles import load
rng = random.Random(1)
arrays = np.arange(5), pa.array(["a", "bc"], pa.large_string()), [{"a": 1}]
good = pickle.dumps(arrays, 5)
for _ in range(20_000):
    data = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    with suppress(BROKEN):
        load(bytes(data))
"""


def test_random_bytes_never_do_more_than_raise() -> None:
    done = run_bounded(MUTATE, seconds=120)
    assert done.returncode == 0, done.stderr
