"""What a small local run does not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASE = Path(__file__).parents[2] / "streams" / "traffic"

RUN = f"""
import sys
from spaseq.cli import main
streams = [a for i in "1234" for a in ("--stream", f"S{{i}}={CASE}/sensor-{{i}}.nq")]
try:
    main(["run", "{CASE}/query.rq", *streams, "--kb", "{CASE}/kb.ttl", "--runtime", "local"])
except SystemExit as end:
    assert end.code == 0
import pandas, pyarrow
assert pyarrow.array(pandas.Series([1, 2])).to_pylist() == [1, 2]
"""


@pytest.mark.parametrize("library", ["pandas", "pyspark", "rdflib", "rich"])
def test_no_heavy_library(library: str) -> None:
    code = RUN.replace("import pandas", f"assert {library!r} not in sys.modules; import pandas")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith('{"query":')
