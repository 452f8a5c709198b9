"""Mutated inputs of every reader: no crash, no hang, no wrong verdict, bounded memory.

The thorough run tries some thousand inputs. The slow run tries a million, shared between the
targets, and prints the count: `pytest -n 0 -s -m slow tests/fuzz`. `SPASEQ_FUZZ` sets another
number, `SPASEQ_FUZZ_SEED` another seed.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

PEAK_MB = 1000

SHARES = {"n-quads": 40, "n-quads-12": 20, "n-triples": 20}
"""Hundredths of the mutations of the slow run; the other targets share the rest."""

QUICK = {"n-quads": 800, "n-quads-12": 400, "n-triples": 400}
"""Mutations of the thorough run; 100 unless said."""


def run(name: str, count: int, seed: int, tmp_path: Path) -> dict[str, object]:
    """A campaign in a process of its own, which a crash ends."""
    last = tmp_path / "last"
    command = [sys.executable, "-m", "tests.fuzz.campaign", name, str(count), str(seed), str(last)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    if done.returncode:
        data = last.read_bytes() if last.exists() else b""
        pytest.fail(f"{name} ended with {done.returncode} at {data!r:.4000}\n{done.stderr[-4000:]}")
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    assert not report["finding"], report["finding"]
    assert report["tried"] == count
    assert isinstance(report["peak_mb"], int) and report["peak_mb"] < PEAK_MB
    return report


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
def test_some_mutations(name: str, tmp_path: Path) -> None:
    report = run(name, QUICK.get(name, 100), 1, tmp_path)
    assert report["accepted"], "no mutation was accepted, so that the seeds are probably bad"


@pytest.mark.slow
def test_a_million_mutations(tmp_path: Path) -> None:
    total = int(os.environ.get("SPASEQ_FUZZ", "1000000"))
    seed = int(os.environ.get("SPASEQ_FUZZ_SEED", "14"))
    rest = (100 - sum(SHARES.values())) / (len(TARGETS) - len(SHARES))
    tried = 0
    for name in TARGETS:
        report = run(name, math.ceil(total * SHARES.get(name, rest) / 100), seed, tmp_path)
        tried += int(str(report["tried"]))
        print(json.dumps(report))
    print(f"{tried} mutations, no finding")
