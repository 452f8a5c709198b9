"""What `spaseq check` finds in the lifts of streams that are CSV or TSV."""

from __future__ import annotations

from collections.abc import Mapping
from glob import glob
from itertools import chain
from pathlib import Path

from spaseq.api.queries import read_query
from spaseq.cli.lifted_streams import named_value
from spaseq.cli.option_groups import Chosen
from spaseq.cli.run_parts import InputTexts
from spaseq.errors import Diagnostic
from spaseq.lift.field_types import field_types
from spaseq.lift.table_formats import DELIMITERS, table_format
from spaseq.lift.uncast_fields import uncast_fields
from spaseq.options import ReadingOptions
from spaseq.runtime.job.binding import split_assignment


def uncast_findings(lifts: Mapping[Path, str], chosen: Chosen) -> list[tuple[Diagnostic, ...]]:
    """The findings for each lift of a stream with files of CSV or TSV.

    Args:
        lifts: the texts of lifts that are checked by themselves; they are for all streams.
        chosen: the streams, their lifts and their types.

    Raises:
        InputError: a lift cannot be read.
        UsageError: a type is unknown.
    """
    texts = chosen[InputTexts]
    pairs = filter(None, (split_assignment(text, ()) for text in texts.streams))
    streams = {name for name, path in pairs if _is_delimited(path)}
    names = {name: name for name in streams}
    typed = [(of, field_types(text)) for of, text in (named_value(t, names) for t in texts.types)]
    given: list[tuple[str | None, Path, str]] = [(None, p, text) for p, text in lifts.items()]
    for text in texts.lifts:
        of, file = named_value(text, names)
        known = of is not None or split_assignment(text, ()) is None
        if known and Path(file) not in lifts:
            given.append((of, Path(file), read_query(Path(file))))
    if not streams:
        return []
    predicate = chosen[ReadingOptions].time_predicate
    found = []
    for of, path, text in given:
        own = [fields for name, fields in typed if None in (name, of) or name == of]
        types = dict(chain.from_iterable(own))
        found.append(uncast_fields(text, str(path), types, predicate))
    return found


def _is_delimited(path: str) -> bool:
    """Whether a stream is CSV or TSV. A directory or a glob is, if one of its files is."""
    place = Path(path)
    inner = [*place.iterdir()] if place.is_dir() else glob(path, recursive=True)
    return any(table_format(str(file)) in DELIMITERS for file in (path, *inner))
