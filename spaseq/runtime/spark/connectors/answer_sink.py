"""The Spark data sink `spaseq`: DataFrames of answers to files, each batch once.

The tasks of a batch write files that readers ignore (their names begin with `_`). When all tasks
are done, the driver gives the files their names, and then records the batch as committed. A batch
that is run again replaces the files of its first attempt; a committed batch stays.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from spaseq.errors import RunError, UsageError
from spaseq.records import record
from spaseq.runtime.spark.rows.answer_rows import ANSWER_SCHEMA, answer_of_row
from spaseq.runtime.spark.rows.stage_rows import struct_of
from spaseq.sinks import SINKS, open_sink
from spaseq.storage.checksums import read_json, write_json

SUFFIXES = {
    **{form: sink.suffix for form, sink in SINKS.items() if not sink.binary},
    "parquet": "parquet",  # the rows unchanged
}
"""The file name extension of each format."""

COMMITTED = "_committed.json"


class AnswerDataSink(DataSource):  # type: ignore[misc]
    """`answers.writeStream.format("spaseq")` and `answers.write.format("spaseq")`.

    The DataFrame comes from `spaseq.spark.answers` and may be filtered and sorted. Options: `path`,
    a directory; `form`, a format of `spaseq run --format` (jsonl by default) or parquet;
    `variables`, the projected variables in order, separated by spaces, which tables (json, csv,
    tsv) need.

    >>> spark.dataSource.register(AnswerDataSink)  # doctest: +SKIP
    >>> answers.writeStream.format("spaseq").option("checkpointLocation", "state").start("alerts/")  # doctest: +SKIP
    """  # noqa: E501

    @classmethod
    def name(cls) -> str:
        return "spaseq"

    def schema(self) -> Any:
        return struct_of(ANSWER_SCHEMA)

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        return AnswerWriter(_files(self.options, schema), overwrite)

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        return AnswerStreamWriter(_files(self.options, schema))


@record
class AnswerFiles:
    """A directory of files of one format."""

    directory: Path
    form: str
    variables: tuple[str, ...] = ()  # of tables

    def write(self, batches: Iterator[pa.RecordBatch]) -> str | None:
        """Write rows to a new file that readers ignore; return its name, or None without rows."""
        rows = [batch for batch in batches if batch.num_rows]
        if not rows:
            return None
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"_{uuid.uuid4().hex}.{SUFFIXES[self.form]}"
        if self.form == "parquet":
            pq.write_table(pa.Table.from_batches(rows), path)
        else:
            self._write_text(path, rows)
        return path.name

    def publish(self, written: Sequence[str], prefix: str) -> None:
        """Give files the names that readers find: the prefix and a number."""
        suffix = SUFFIXES[self.form]
        for old in self.directory.glob(f"{prefix}-*.{suffix}"):
            old.unlink()
        for number, name in enumerate(written):
            (self.directory / name).replace(self.directory / f"{prefix}-{number:05}.{suffix}")

    def discard(self, written: Sequence[str]) -> None:
        """Remove files of a batch that is not committed."""
        for name in written:
            (self.directory / name).unlink(missing_ok=True)

    def _write_text(self, path: Path, batches: Sequence[pa.RecordBatch]) -> None:
        with (
            path.open("w", encoding="utf-8") as file,
            open_sink(self.form, file, self.variables) as sink,
        ):
            for batch in batches:
                for row in batch.cast(ANSWER_SCHEMA).to_pylist():
                    sink.write(row["query"], answer_of_row(row))


def _files(options: Any, schema: Any) -> AnswerFiles:
    given = {name.lower(): str(value) for name, value in dict(options).items()}
    form = given.get("form", "jsonl")
    if form not in SUFFIXES:
        raise UsageError(f"unknown form {form!r}; forms are {', '.join(SUFFIXES)}")
    variables = tuple(given.get("variables", "").replace("?", "").split())
    if form != "parquet" and SINKS[form].one_query and not variables:
        raise UsageError(f'form {form} is a table: name its columns, .option("variables", "x y")')
    if "path" not in given:
        raise UsageError("the data sink spaseq needs a path, a directory")
    missing = set(ANSWER_SCHEMA.names) - set(schema.fieldNames())
    if form != "parquet" and missing:
        columns = ", ".join(sorted(missing))
        raise UsageError(f"these are no answers: there is no column {columns}; use form parquet")
    return AnswerFiles(Path(given["path"].removeprefix("file:")), form, variables)


@dataclass(frozen=True)
class _Written(WriterCommitMessage):  # type: ignore[misc]
    name: str | None


def _names(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [m.name for m in messages if isinstance(m, _Written) and m.name is not None]


class AnswerWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """A bounded run's answers; with `overwrite` they replace the directory's contents."""

    def __init__(self, files: AnswerFiles, overwrite: bool) -> None:
        self._files, self._overwrite = files, overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Written(self._files.write(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._overwrite:
            self._files.publish((), "part")
        prefix = "part" if self._overwrite else f"part-{uuid.uuid4().hex[:12]}"
        self._files.publish(_names(messages), prefix)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._files.discard(_names(messages))


class AnswerStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """A followed run's answers, one batch at a time."""

    def __init__(self, files: AnswerFiles) -> None:
        self._files = files

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Written(self._files.write(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Put the batch's files in place, unless the batch is committed already.

        Raises:
            RunError: the directory has later batches of another run.
        """
        names, last = _names(messages), self._last()
        if batchId < last:
            self._files.discard(names)
            raise RunError(
                f"{self._files.directory} has batches up to {last}, and this is batch {batchId}: it"
                " belongs to another checkpoint; use that or an empty directory"
            )
        if batchId == last:
            self._files.discard(names)
            return
        self._files.publish(names, f"batch-{batchId:09}")
        self._files.directory.mkdir(parents=True, exist_ok=True)
        write_json(self._marker, {"batch": batchId})

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._files.discard(_names(messages))

    @property
    def _marker(self) -> Path:
        return self._files.directory / COMMITTED

    def _last(self) -> int:
        """The number of the last committed batch, -1 if there is none."""
        if not self._marker.exists():
            return -1
        return read_json(self._marker, lambda value: int(value["batch"]))
