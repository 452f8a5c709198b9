"""Kernels that are compiled with checks: they end with an error where they leave their arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from spaseq.compiled.mode import CHECKED, VARIABLE

_PROGRAM = """
import numpy as np
from spaseq.automaton.sets.kernels.set_arrays import EVER, count_matches
from tests.compiled import unchecked_kernels as kernels

def told(kernel, *arguments):
    try:
        print(kernel(*arguments))
    except IndexError as error:
        print("IndexError")

numbers, texts = np.arange(4), np.arange(16, dtype=np.uint8)
told(kernels.element, numbers, 3)
told(kernels.element, numbers, 4)
told(kernels.promised, numbers, 2)
told(kernels.promised, numbers, -1)
told(kernels.first_word, texts, 8)
told(kernels.first_word, texts, 9)
told(kernels.square, numbers)
# a node whose left child is forgotten, in a window that began before all measures
nodes = np.array([[0, -1, 5, 0]] * 4)
told(count_matches, nodes, 2, 4, EVER, np.zeros(2))
"""


def test_reads_outside_arrays_are_errors(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: CHECKED, "NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    word = sum(i << (8 * (i - 8)) for i in range(8, 16))
    refused = "IndexError"
    expected = [3, refused, 2, refused, word, refused, refused, refused]
    assert run.stdout.split() == [str(told) for told in expected]
