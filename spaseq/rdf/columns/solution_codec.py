"""Solutions as Arrow bytes: the one form in which they are on disk and travel between processes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from spaseq.rdf.columns.event_names import WHOLE, EventNames, NameForm
from spaseq.rdf.columns.solution_batch import SolutionBatch
from spaseq.rdf.columns.solution_columns import SolutionColumns
from spaseq.rdf.columns.term_columns import NumberColumn, TermColumn
from spaseq.records import record


@record
class SolutionCodec:
    """Writes and reads solutions with some columns.

    Variable ?x has the Arrow column `v_x` for its terms, a dictionary of texts; `n_x` and `k_x` are
    its value and kind as a number. A triple term is a text like any other. Names of events are
    written in the form `names` if all have it; the field says it.
    """

    columns: SolutionColumns
    names: NameForm = WHOLE

    @property
    def schema(self) -> pa.Schema:
        """The Arrow columns."""
        terms = pa.dictionary(pa.int32(), pa.large_string())
        return pa.schema(
            [
                ("stream", pa.int32()),
                ("time", pa.int64()),
                ("k", pa.int32()),
                ("gpm", pa.int32()),
                self.names.field,
                *((f"v_{v}", terms) for v in self.columns.variables),
                *((f"n_{v}", pa.float64()) for v in self.columns.numbers),
                *((f"k_{v}", pa.int8()) for v in self.columns.numbers),
            ]
        )

    def batch(self, rows: SolutionBatch) -> pa.RecordBatch:
        """The rows as Arrow columns of `schema`."""
        arrays: list[Any] = [pa.array(c) for c in (rows.stream, rows.time, rows.k, rows.gpm)]
        arrays.append(rows.event.to_arrow(self.names))
        arrays.extend(rows.values[v].compact().to_arrow() for v in self.columns.variables)
        arrays.extend(pa.array(rows.numbers[v].value) for v in self.columns.numbers)
        arrays.extend(pa.array(rows.numbers[v].kind) for v in self.columns.numbers)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def rows(self, batch: pa.RecordBatch) -> SolutionBatch:
        """The inverse of `batch`, whatever the form of the names; further columns are ignored."""

        def ints(name: str) -> Any:
            return batch.column(name).to_numpy(zero_copy_only=False)

        return SolutionBatch(
            ints("stream"),
            ints("time"),
            ints("k"),
            ints("gpm"),
            EventNames.from_arrow(batch.column("event"), batch.schema.field("event")),
            {v: TermColumn.from_arrow(batch.column(f"v_{v}")) for v in self.columns.variables},
            {v: NumberColumn(ints(f"n_{v}"), ints(f"k_{v}")) for v in self.columns.numbers},
        )

    def write(self, rows: SolutionBatch, file: Any) -> None:
        """Append the rows to an Arrow file, as a stream of one batch."""
        batch = self.batch(rows)
        with pa.ipc.new_stream(file, batch.schema) as writer:
            writer.write_batch(batch)

    def encode(self, rows: SolutionBatch) -> bytes:
        """The rows as bytes."""
        sink = pa.BufferOutputStream()
        self.write(rows, sink)
        return bytes(sink.getvalue())

    def decode(self, data: Any, *, check: bool = False) -> SolutionBatch:
        """The rows of bytes, or of a buffer, which stays in use.

        `check` looks at every offset and index; pa.ArrowInvalid if one is wrong.
        """
        with pa.ipc.open_stream(data) as reader:
            batch = reader.read_next_batch()
            if check:
                batch.validate(full=True)
            return self.rows(batch)
