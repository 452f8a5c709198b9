"""An event that has lost a quad to a bad line is no false absence, by either runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile import run_bounded

QUERY = """PREFIX : <http://e/>
SELECT ?o WITHIN 1 SECONDS FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?o :is :order FILTER NOT EXISTS { ?o :paid ?w } } }
"""


def event(number: int, paid: str | None) -> str:
    graph = f"<http://e/g{number}>"
    lines = [f"<http://e/o{number}> <http://e/is> <http://e/order> {graph} ."]
    if paid is not None:
        lines.append(f"<http://e/o{number}> <http://e/paid> {paid} {graph} .")
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    long = "<http://www.w3.org/2001/XMLSchema#long>"
    return "\n".join([*lines, f'{graph} {time} "{number * 1000}"^^{long} .', ""])


@pytest.mark.parametrize(
    "runtime", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.thorough])]
)
def test_a_payment_that_cannot_be_read(tmp_path: Path, runtime: str) -> None:
    """Every third order is paid, and every third has a payment that cannot be read."""
    kinds = ['"1"', None, r'"\q"']
    text = "".join(event(i, kinds[i % 3]) for i in range(30))
    (tmp_path / "s.nq").write_text(text)
    (tmp_path / "q.rq").write_text(QUERY)
    command = ["run", "q.rq", "--stream", "S=s.nq", "--runtime", runtime, "--format", "csv"]
    done = run_bounded([*command, "--bad", "bad.jsonl"], cwd=tmp_path, memory=4 << 30, seconds=200)
    assert done.returncode == 0, done.stderr
    found = {
        cell for row in done.stdout.splitlines()[1:] for cell in row.split(",") if "/o" in cell
    }
    assert found == {f"http://e/o{i}" for i in range(1, 30, 3)}
    bad = (tmp_path / "bad.jsonl").read_text().splitlines()
    assert sum("has lost a quad" in line for line in bad) == 10
    assert len(bad) == 20
