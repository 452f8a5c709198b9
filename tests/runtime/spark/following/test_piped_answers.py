"""Answers of a followed run that are read from a pipe: they come with their batch."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spaseq.runtime.spark.following.follow import _FileOutput
from tests.runtime.machines import NORTH, SOUTH, answers_in_process, job_of, nquads


def test_the_answers_of_a_batch_are_not_held_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, rows in (("n.nq", NORTH), ("s.nq", SOUTH)):
        (tmp_path / name).write_text(nquads(rows, name))
    job = job_of((tmp_path / "n.nq", tmp_path / "s.nq"))
    checkpoint: Any = SimpleNamespace(resumed=False, directory=tmp_path)
    query, answer = answers_in_process(job)[0]
    output = _FileOutput(checkpoint, "-", "jsonl", ["machine"], {})
    output.begin(0)
    output.write(job.plans[query], answer)
    output.end(0)
    assert capfd.readouterr().out.startswith('{"query": ')
    output.__exit__(None, None, None)
