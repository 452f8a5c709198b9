"""The formats of tables and JSON messages, by the names of files."""

from __future__ import annotations

from enum import Enum
from glob import glob, has_magic
from pathlib import Path


class TableFormat(Enum):
    """The formats of rows; the value is the name in messages."""

    CSV = "CSV"
    TSV = "TSV"
    JSON_LINES = "JSON lines"
    JSON = "JSON"
    PARQUET = "Parquet"
    ARROW = "Arrow"


TABLE_EXTENSIONS = {
    ".csv": TableFormat.CSV,
    ".tsv": TableFormat.TSV,
    ".jsonl": TableFormat.JSON_LINES,
    ".ndjson": TableFormat.JSON_LINES,
    ".json": TableFormat.JSON,
    ".parquet": TableFormat.PARQUET,
    ".pq": TableFormat.PARQUET,
    ".arrow": TableFormat.ARROW,
    ".arrows": TableFormat.ARROW,
    ".feather": TableFormat.ARROW,
    ".ipc": TableFormat.ARROW,
}
DELIMITED = frozenset({TableFormat.CSV, TableFormat.TSV})
TEXT_FORMATS = DELIMITED | {TableFormat.JSON_LINES, TableFormat.JSON}


def table_format(path: str) -> TableFormat | None:
    """The format of a file by its name; None if it is no table."""
    form = TABLE_EXTENSIONS.get(Path(path.removesuffix(".gz")).suffix.lower())
    return None if path.endswith(".gz") and form not in TEXT_FORMATS else form


def is_table_input(path: str) -> bool:
    """Whether a path of a stream looks like tables: by its name, or by those that it stands for.

    A directory that cannot be read is no table; reading the stream says what is wrong.
    """
    place = Path(path)
    try:
        if place.is_dir():
            return any(table_format(inner.name) is not None for inner in place.iterdir())
        if has_magic(path) and not place.exists():
            found = glob(path, recursive=True)
            return any(table_format(inner) is not None for inner in (path, *found))
    except OSError:
        return False
    return table_format(path) is not None
