"""`spaseq warm`."""

from __future__ import annotations

import os
import re

import pytest

from spaseq.cli import main


def test_every_kernel_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["warm"])
    assert end.value.code == 0
    *kernels, total, place = capsys.readouterr().out.splitlines()
    found = [re.fullmatch(r" *\d+\.\d{3} s  (\w+)", line) for line in kernels]
    assert "tokenize" in {match[1] for match in found if match}
    assert total.endswith(f" s  {len(found)} kernels")
    assert place == f"in {os.environ['NUMBA_CACHE_DIR']}"
