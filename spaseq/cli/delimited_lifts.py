"""What `spaseq check` finds in lifts by a look at the files of their streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from glob import glob
from itertools import chain
from pathlib import Path

from spaseq.api.queries import read_query
from spaseq.cli.lifted_streams import named_value
from spaseq.cli.option_groups import Chosen
from spaseq.cli.run_parts import InputTexts
from spaseq.errors import Diagnostic, InputError, QueryText, Span
from spaseq.lift.field_types import field_types
from spaseq.lift.lift_checks import check_lift
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.lifted_files import LiftedFiles
from spaseq.lift.table_formats import DELIMITED, is_table_input, table_format
from spaseq.lift.uncast_fields import uncast_fields
from spaseq.options import ReadingOptions
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT, csv_dialect
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.binding import split_assignment
from spaseq.runtime.job.job import Stats

_SAMPLE = 1000  # rows


def uncast_findings(lifts: Mapping[Path, str], chosen: Chosen) -> list[tuple[Diagnostic, ...]]:
    """The findings for each lift of a stream with files of rows.

    Args:
        lifts: the texts of lifts that are checked by themselves; they are for all streams.
        chosen: the streams, their lifts and their types.

    Raises:
        InputError: a lift cannot be read, or a header lacks a field of its lift.
        UsageError: a type is unknown.
    """
    texts = chosen[InputTexts]
    pairs = filter(None, (split_assignment(text, ()) for text in texts.streams))
    paths = [pair for pair in pairs if _is_delimited(pair[1]) or _is_there(pair[1])]
    streams = {name for name, _ in paths}
    names = {name: name for name in streams}
    typed = [(of, field_types(text)) for of, text in (named_value(t, names) for t in texts.types)]
    dialects = dict(named_value(t, names) for t in texts.csv)
    given = _lifts_given(lifts, texts, names)
    if not streams:
        return []
    reading = chosen[ReadingOptions]
    predicate = reading.time_predicate
    found = []
    of_streams = [
        (name, path, text)
        for of, path, text in given
        for name in (sorted(streams) if of is None else (of,))
    ]
    for of, path, text in of_streams:
        own = [fields for name, fields in typed if None in (name, of) or name == of]
        types = dict(chain.from_iterable(own))
        own_paths = [p for n, p in paths if n == of]
        dialect = dialects.get(of, dialects.get(None))
        csv = DEFAULT_DIALECT if dialect is None else csv_dialect(dialect)
        plan = check_lift(text, str(path), predicate, reading.time_unit).plan
        delimited = any(map(_is_delimited, own_paths))
        uncast = uncast_fields(text, str(path), types, predicate) if delimited else ()
        if uncast not in found:
            found.append(uncast)
        if plan is not None and own_paths:
            options = StreamOptions("", (), time_predicate=predicate, csv=csv)
            source = _source(own_paths, plan, types, options)
            found += [] if uncast else [_sample_findings(source, (text, str(path)))]
    return found


def _lifts_given(
    lifts: Mapping[Path, str], texts: InputTexts, names: Mapping[str, str]
) -> list[tuple[str | None, Path, str]]:
    """(stream, path, text) of each lift; None for a lift of all streams."""
    named = [named_value(text, names) for text in texts.lifts]
    stream_of = {Path(file): of for of, file in named}
    given = [(stream_of.get(path), path, text) for path, text in lifts.items()]
    for text, (of, file) in zip(texts.lifts, named, strict=True):
        known = of is not None or split_assignment(text, ()) is None
        if known and Path(file) not in lifts:
            given.append((of, Path(file), read_query(Path(file))))
    return given


def _source(
    paths: Sequence[str], plan: LiftPlan, types: Mapping[str, str], options: StreamOptions
) -> LiftedFiles:
    """The files of a lift, whose headers have been looked at.

    Raises:
        InputError: a header lacks a field of the lift.
    """
    source = LiftedFiles(replace(options, paths=tuple(paths)), plan, tuple(types.items()))
    try:
        source.check()
    except InputError as error:
        raise InputError(str(error).removeprefix("stream <>: ")) from None
    return source


def _sample_findings(source: LiftedFiles, lift: tuple[str, str]) -> tuple[Diagnostic, ...]:
    """Warnings of casts that fail, and of rows that are bad, in the first rows of files."""
    lost, bad = Stats(), list[BadInput]()

    def on_bad(found: BadInput) -> None:
        lost.count_bad([found])
        if found.lost is None:
            bad.append(found)

    rows = 0
    for batch in source.lifted(on_bad):
        rows += len(batch.events) + batch.events.filtered
        if rows >= _SAMPLE:
            break
    rows += len(bad)
    text = QueryText(*lift)
    messages = [
        f"{count:,} of the first {rows:,} rows lose ?{name} by a cast; {lost.first_lost[name]}"
        for name, count in lost.lost.items()
    ]
    if bad:
        first = f"{bad[0].file}:{bad[0].line}: {bad[0].reason}"
        messages.append(f"{len(bad):,} of the first {rows:,} rows are bad; {first}")
    place = Span(0, 1)
    return tuple(Diagnostic("warning", "sample", m, place, text, (), None) for m in messages)


def _is_there(path: str) -> bool:
    """Whether a stream is rows in files that exist."""
    return is_table_input(path) and Path(path).exists()


def _is_delimited(path: str) -> bool:
    """Whether a stream is CSV or TSV. A directory or a glob is, if one of its files is."""
    place = Path(path)
    inner = [*place.iterdir()] if place.is_dir() else glob(path, recursive=True)
    return any(table_format(str(file)) in DELIMITED for file in (path, *inner))
