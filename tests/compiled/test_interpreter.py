"""Interpreted kernels give what compiled kernels give."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.budget import Budget, spending
from spaseq.compiled import mode
from spaseq.compiled.decorators import INTRINSICS, interpret, lean_kernel
from spaseq.compiled.warming import WARM_UPS
from spaseq.rdf.kernels import vectors
from spaseq.rdf.kernels.texts import fill_slots

ROOT = Path(__file__).parents[2]
CASE = ROOT / "streams" / "traffic"
RUN = [
    sys.executable, "-m", "spaseq", "run", str(CASE / "query.rq"), "--runtime", "local",
    *(f"--stream=S{i}={CASE / f'sensor-{i}.nq'}" for i in range(1, 5)),
    "--kb", str(CASE / "kb.ttl"),
]  # fmt: skip

SHOW = """
import sys
from spaseq.cli import main
try:
    main()
except SystemExit:
    pass
print([m for m in ("numba", "llvmlite", "pyspark") if m in sys.modules])
"""


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    """A run of the traffic case in a new process, from the root of the project."""
    env = os.environ | environment
    done = subprocess.run(RUN, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_a_small_run_compiles_nothing(tmp_path: Path) -> None:
    place = tmp_path / "kernels"
    small = run(NUMBA_CACHE_DIR=str(place))
    assert not list(place.rglob("*.nb?"))
    assert "compiling" not in small.stderr
    compiled = run(SPASEQ_KERNELS="compiled")
    assert small.stdout == compiled.stdout
    assert small.stdout.count("\n") == 10


def test_a_small_run_imports_no_compiler(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SHOW, *RUN[3:]]
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_small_input_that_takes_long_is_compiled() -> None:
    code = """
import numpy as np
from spaseq.compiled import mode
from spaseq.kb.kernels.search import find_sorted
mode.interpret(most_seconds=0.005)
texts = np.arange(3), np.frombuffer(b"ab", np.uint8)
wanted = np.array([1]), np.frombuffer(b"b", np.uint8)
for calls in range(1, 100_000):
    assert find_sorted(*texts, *wanted, -1) == [1]
    if not mode.interpreted():
        break
print(calls, *find_sorted(*texts, *wanted, -1) == [1])
"""
    env = {k: v for k, v in os.environ.items() if k != mode.VARIABLE}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.split()[1:] == ["True"], done.stderr
    assert 1 <= int(done.stdout.split()[0]) < 99_999


def test_what_has_been_compiled_stays_compiled() -> None:
    mode.compile_from_now_on()
    mode.interpret()
    assert not mode.interpreted()
    assert mode.current() == mode.Mode("compiled")


@lean_kernel
def _searches(buffer: object, at: int, found: object) -> None:
    for place in range(32):
        found[0, place] = vectors.iri_ends(buffer, at + place)  # type: ignore[index]
        found[1, place] = vectors.iri_stops(buffer, at + place)  # type: ignore[index]
        found[2, place] = vectors.quote_ends(buffer, at + place)  # type: ignore[index]
        found[3, place] = vectors.plain_ends(buffer, at + place)  # type: ignore[index]
        found[4, place] = vectors.line_ends(buffer, at + place)  # type: ignore[index]
        found[5, place] = vectors.byte(buffer, at + place)
        found[6, place] = vectors.first_line_end(buffer, at + place)
        found[7, place] = vectors.same(buffer, at, buffer, at + place, place)
        found[8, place] = vectors._differences(buffer, at, buffer, at + place)
        found[9, place] = vectors.lowest((1 << 40) | (place << 3) | (place << 7))


@lean_kernel
def _words(buffer: object, at: int, found: object) -> None:
    for place in range(32):
        found[0, place] = vectors.word(buffer, at + place)  # type: ignore[index]
        found[1, place] = vectors.folded_product(found[0, place], found[0, max(place - 1, 0)])  # type: ignore[index]


def _both(kernel: object, buffer: object, shape: tuple[int, int], kind: type) -> list[np.ndarray]:
    results = []
    for call in (kernel.dispatcher, lambda *a: interpret(kernel.function, a)):  # type: ignore[attr-defined]
        found = np.zeros(shape, kind)
        call(buffer, 8, found)
        results.append(found)
    return results


def _buffer(text: bytes) -> np.ndarray:
    return np.frombuffer(b"\n" * 8 + text + b"\n" * 128, np.uint8).copy()


@given(st.binary(max_size=96))
def test_functions_say_what_their_machine_code_does(text: bytes) -> None:
    compiled, interpreted = _both(_searches, _buffer(text), (10, 32), np.int64)
    np.testing.assert_array_equal(compiled, interpreted)
    compiled, interpreted = _both(_words, _buffer(text), (2, 32), np.uint64)
    np.testing.assert_array_equal(compiled, interpreted)


@pytest.mark.parametrize("start", range(0, 256, 32))
def test_searches_of_every_byte(start: int) -> None:
    text = bytes(range(start, start + 32))
    compiled, interpreted = _both(_searches, _buffer(text), (10, 32), np.int64)
    np.testing.assert_array_equal(compiled, interpreted)


def test_tables_of_texts_grow_alike() -> None:
    spans = np.zeros((3, 3), np.int32)
    spans[:, 2] = 5, -7, 2**31 - 1  # hashes
    tables = []
    for call in (fill_slots.dispatcher, lambda *a: interpret(fill_slots.function, a)):  # type: ignore[attr-defined]
        tables.append(np.zeros(8, np.uint64))
        call(spans, 3, tables[-1])
    np.testing.assert_array_equal(*tables)


def test_all_machine_code_can_be_found() -> None:
    for module in WARM_UPS:
        import_module(module)
    for function, place in INTRINSICS:
        module, _, name = place.partition(":")
        assert callable(getattr(import_module(module), name)), function


def test_narrow_integers_do_not_overflow() -> None:
    narrow = np.array([2**31 - 1, 1], np.int32)

    def total(numbers: object, out: object) -> object:
        out[0] = (numbers[0] + numbers[1]) << 20  # type: ignore[index]
        return numbers

    out = np.zeros(1, np.int64)
    given_back = interpret(total, (narrow, out))
    assert out[0] == 2**51
    assert type(given_back) is np.ndarray


def test_the_time_of_a_compilation_is_no_time_of_an_evaluation() -> None:
    with spending(Budget(seconds=1)) as budget:
        mode.note_compilation(1000)
    assert 1000 < budget.remaining() < 1002
