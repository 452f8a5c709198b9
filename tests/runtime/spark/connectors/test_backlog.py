"""Planning of a backlog's batches by the data source `rdf`."""

from __future__ import annotations

import pickle
from pathlib import Path

from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadAllAvailable

from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.spark.connectors.rdf_source import FollowedFiles, RdfStreamReader
from spaseq.sources.files import GrowingFiles
from tests.runtime.machines import nquads, put


def reader(place: Path, count: int, size: int) -> RdfStreamReader:
    """The reader of a stream of `count` files, with batches of at most `size` bytes."""
    directory = place / "north"
    directory.mkdir()
    for number in range(count):
        put(directory / f"{number}.nq", nquads([(number, "m1", "starts", number)]))
    streams = (GrowingFiles.at(StreamOptions("http://m.example/north", (str(directory),))),)
    settings = FileSourceSettings(max_bytes=size)
    return FollowedFiles(streams, place / "log", settings).reader()


def taken(place: Path, number: int) -> list[str]:
    """The names of the files of a batch."""
    arrivals = FileSourceLog(
        place / "log", (GrowingFiles.at(StreamOptions("", (str(place / "north"),))),)
    )
    return [Path(s.range.file.path).name for s in arrivals.batch(number).streams[0].slices]


def test_a_backlog_is_planned_a_batch_ahead(tmp_path: Path) -> None:
    source = reader(tmp_path, 3, 10)
    limit = source.getDefaultReadLimit()
    assert source.latestOffset({"batch": 0}, limit) == {"batch": 1}
    source.stop()  # waits for the current planning
    assert [taken(tmp_path, n) for n in (1, 2)] == [["0.nq"], ["1.nq"]]
    again = RdfStreamReader(source._followed)
    offsets = [again.latestOffset({"batch": n}, limit)["batch"] for n in (1, 2, 3)]
    assert offsets == [2, 3, 3]
    assert taken(tmp_path, 3) == ["2.nq"]
    again.stop()


def test_what_comes_as_it_is_made_is_not_planned_ahead(tmp_path: Path) -> None:
    source = reader(tmp_path, 1, 10**9)
    assert source.latestOffset({"batch": 0}, source.getDefaultReadLimit()) == {"batch": 1}
    put(tmp_path / "north" / "later.nq", nquads([(9, "m1", "starts", 9)]))
    source.stop()
    assert not (tmp_path / "log" / "2.json").exists()


def test_all_that_is_available_is_one_batch(tmp_path: Path) -> None:
    source = reader(tmp_path, 3, 10)
    assert source.latestOffset({"batch": 0}, ReadAllAvailable()) == {"batch": 1}
    source.stop()
    assert taken(tmp_path, 1) == ["0.nq", "1.nq", "2.nq"]


def test_a_reader_goes_to_tasks_while_it_plans(tmp_path: Path) -> None:
    source = reader(tmp_path, 3, 10)
    source.latestOffset({"batch": 0}, source.getDefaultReadLimit())
    (part, *_) = source.partitions({"batch": 0}, {"batch": 1})
    copy = pickle.loads(cloudpickle.dumps(source))
    assert sum(batch.num_rows for batch in copy.read(part)) == 2  # a file, and its watermark
    source.stop()
