"""Checksums of Spark's offset files."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.errors import RunError
from spaseq.runtime.spark.following.checkpoint import OffsetChecks
from tests.storage.damage import damaged


def test_a_damaged_offset_file_is_named_before_spark_reads_it(tmp_path: Path) -> None:
    checks = OffsetChecks(tmp_path / "offsets.json", tmp_path)
    checks.check()  # of a checkpoint that has none yet
    for number in range(4):
        (tmp_path / str(number)).write_text(f'v1\n{{"batch":{number}}}\n')
        checks.note(number)
    (tmp_path / "1").write_text("is read no more")
    checks.check()
    for name in ("2", "3"):
        good = (tmp_path / name).read_bytes()
        for bad in (*damaged(good), b"", good + b"\0"):
            (tmp_path / name).write_bytes(bad)
            with pytest.raises(RunError, match=rf"{tmp_path}/{name} is damaged"):
                checks.check()
        (tmp_path / name).write_bytes(good)
    checks.check()
    (tmp_path / "3").unlink()  # Spark plans the batch again
    checks.check()
