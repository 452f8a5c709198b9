"""`spaseq.Lifted`: rows and their lift as the input of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaseq.connectors import is_source
from spaseq.errors import InputError, UsageError
from spaseq.rdf.inputs.csv_dialect import csv_dialect
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.sources.base import Source
from spaseq.sources.broker_stream import POSTED
from spaseq.storage.user_files import read_user_text

if TYPE_CHECKING:
    from spaseq.lift.lift_plan import LiftPlan


@dataclass(frozen=True, slots=True)
class Lifted:
    """Rows, and the lift that makes a graph event of each.

    Attributes:
        data: a path (file, directory or glob) or several; a pandas or Polars DataFrame; an Arrow
            table, reader, or anything with `__arrow_c_stream__`; or an iterable of dicts. A run
            that follows brokers takes their URL.
        lift: the text of the lift, or the `pathlib.Path` of its file.
        types: the XSD types of fields of CSV and TSV, such as `{"volume": "integer"}` or
            `{"at": "dateTime(%d.%m.%Y %H:%M)"}`.
        csv: how CSV and TSV are written, such as `"delimiter=;,decimal=,"`.

    >>> lift = '''PREFIX prov: <http://www.w3.org/ns/prov#>
    ... CONSTRUCT { <http://e/s> <http://e/speed> ?speed ; prov:generatedAtTime ?at } WHERE { }'''
    >>> rows = Lifted([{"speed": 12, "at": 0}, {"speed": 9, "at": 1000}], lift)
    """

    data: Any
    lift: str | Path
    types: Mapping[str, str] | None = None
    csv: str | None = None


def lifted_source(given: Lifted, options: StreamOptions) -> Source:
    """The source of a lifted stream.

    Raises:
        QueryError: the lift has errors.
        InputError: the lift's file cannot be read.
        UsageError: the data is of no known kind, or a type is unknown.
    """
    # Runs without lifts need not wait for these imports.
    from spaseq.lift.cells import checked_types
    from spaseq.lift.lift_checks import compiled_lift
    from spaseq.lift.lifted_source import LiftedFiles, LiftedRows

    text, name = text_of(given.lift)
    plan = compiled_lift(text, name, options.time_predicate, options.time_unit)
    types = checked_types(given.types or {})
    data = given.data
    if given.csv is not None:
        options = replace(options, csv=csv_dialect(given.csv))
    if isinstance(data, str | PathLike):
        if options.live or is_source(fspath(data)):
            return _broker((fspath(data),), options, plan, text, types)
        return LiftedFiles(replace(options, paths=(fspath(data),)), plan, types)
    if isinstance(data, list | tuple) and data and isinstance(data[0], str | PathLike):
        paths = tuple(str(fspath(path)) for path in data)
        if options.live or any(is_source(path) or path == POSTED for path in paths):
            return _broker(paths, options, plan, text, types)
        return LiftedFiles(replace(options, paths=paths), plan, types)
    if not isinstance(data, Iterable) and not hasattr(data, "__arrow_c_stream__"):
        kind = type(data).__name__
        raise UsageError(f"lifted data is paths, a table or dicts, not {kind}")
    return LiftedRows(options, plan, types, data)


def _broker(
    urls: tuple[str, ...],
    options: StreamOptions,
    plan: LiftPlan,
    text: str,
    types: tuple[tuple[str, str], ...],
) -> Source:
    """The source of a broker's JSON messages, or of files that are followed."""
    from spaseq.lift.lifted_messages import LiftedBroker

    if len(urls) > 1:
        raise UsageError(
            f"stream <{options.iri}>: a stream has one broker or path, and no other input"
        )
    if types and is_source(urls[0]):
        raise UsageError("--types is for CSV and TSV, and messages are JSON")
    source = LiftedBroker(options, urls[0], plan, text, types)
    source.connector()
    return source


def text_of(lift: str | Path) -> tuple[str, str]:
    """(text, name) of a lift.

    Raises:
        InputError: its file cannot be read.
        UsageError: it is neither a text nor a `Path`, or a text that is the name of a file.
    """
    if isinstance(lift, str):
        if lift.endswith(".rq") and "{" not in lift:
            raise UsageError(f"the lift {lift!r} looks like a path: say pathlib.Path({lift!r})")
        return lift.removeprefix("\ufeff"), "<lift>"
    if not isinstance(lift, Path):
        raise UsageError(f"a lift is text or a pathlib.Path, not {type(lift).__name__}")
    try:
        return read_user_text(lift), str(lift)
    except OSError as error:
        raise InputError(f"cannot read the lift {lift}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the lift {lift} is not UTF-8") from None
