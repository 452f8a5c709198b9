"""Division of a bounded run's input into splits."""

from __future__ import annotations

from pathlib import Path

import pytest

from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.arrivals.input_splits import bounded_splits
from spaseq.sources.files import FileSource, split_bytes_for
from tests.runtime.machines import IRIS, NORTH, nquads

MB = 2**20


@pytest.mark.parametrize(
    ("size", "piece"), [(10, 32), (512, 32), (1024, 64), (2048, 128), (100_000, 128)]
)
def test_pieces_of_long_streams_are_larger(size: int, piece: int) -> None:
    assert split_bytes_for(size * MB) == piece * MB


def test_a_stream_is_divided_as_it_is_said_or_not_at_all_if_small(tmp_path: Path) -> None:
    path = tmp_path / "north.nq"
    path.write_text(nquads(NORTH))
    streams = [FileSource(StreamOptions(IRIS[0], (str(path),)))]
    assert len(bounded_splits(streams)) == 1
    assert len(bounded_splits(streams, path.stat().st_size // 2)) == 2
