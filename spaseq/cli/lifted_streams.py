"""Which stream of a run is lifted, and how: the texts of --lift and --types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spaseq.api.streams import StreamInput
from spaseq.cli.option_groups import Chosen
from spaseq.cli.run_parts import InputTexts
from spaseq.errors import UsageError
from spaseq.lift.lifted import Lifted, text_of
from spaseq.lift.table_formats import is_table_input
from spaseq.options import ReadingOptions
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import stream_names

if TYPE_CHECKING:
    from spaseq.lift.lift_plan import LiftPlan


def named_value(text: str, names: Mapping[str, str]) -> tuple[str | None, str]:
    """(stream IRI or None, value) of `NAME=VALUE`, `<IRI>=VALUE` or `VALUE`.

    >>> named_value("S=a.rq", {"S": "http://e/s"}), named_value("a=b.rq", {"S": "http://e/s"})
    (('http://e/s', 'a.rq'), (None, 'a=b.rq'))
    """
    for name in sorted(names, key=len, reverse=True):
        for written in (f"{name}=", f"<{name}>="):
            if text.startswith(written):
                return names[name], text[len(written) :]
    return None, text


def lift_plans(plans: Sequence[QueryPlan], chosen: Chosen) -> Iterator[tuple[str, LiftPlan]]:
    """(stream IRI, its lift) of the --lift options; one without NAME is for the other streams.

    Raises:
        InputError: a lift cannot be read.
        QueryError: a lift has errors.
    """
    from spaseq.lift.lift_checks import compiled_lift  # runs without lifts need not wait for it

    names = stream_names(plans)
    given = [named_value(text, names) for text in chosen[InputTexts].lifts]
    own = {iri for iri, _ in given}
    others = [iri for plan in plans for iri in plan.inputs.streams if iri not in own]
    for iri, file in given:
        text, name = text_of(Path(file))
        reading = chosen[ReadingOptions]
        lift = compiled_lift(text, name, reading.time_predicate, reading.time_unit)
        yield from ((each, lift) for each in ([*dict.fromkeys(others)] if iri is None else [iri]))


def with_lifts(
    paths: Mapping[str, Sequence[str]],
    texts: InputTexts,
    names: Mapping[str, str],
) -> dict[str, StreamInput]:
    """The inputs by stream IRI; those of lifted streams with their lift.

    Raises:
        UsageError: --types without a lift, two lifts of one stream, or a lift without a stream.
    """
    own: dict[str | None, str] = {}
    for text in texts.lifts:
        iri, file = named_value(text, names)
        if iri in own:
            raise UsageError(f"--lift {text}: the stream has a lift already")
        own[iri] = file
    for option, given_texts in (("--types", texts.types), ("--csv", texts.csv)):
        if given_texts and not own:
            raise UsageError(f"{option} goes with --lift")
    if not own:
        return {iri: list(given) for iri, given in paths.items()}
    from spaseq.lift.field_types import field_types  # runs without lifts need not wait for it

    typed = [(iri, field_types(text)) for iri, text in (named_value(t, names) for t in texts.types)]
    dialects = dict(named_value(t, names) for t in texts.csv)
    bound: dict[str, StreamInput] = {}
    for iri, given in paths.items():
        lift = own.get(iri) or (own.get(None) if all(map(is_table_input, given)) else None)
        if lift is None:
            bound[iri] = list(given)
            continue
        fields = {field: kind for of, pairs in typed if of in (iri, None) for field, kind in pairs}
        csv = dialects.get(iri, dialects.get(None))
        bound[iri] = Lifted(list(given), Path(lift), fields, csv)
    if None in own and not any(isinstance(given, Lifted) for given in bound.values()):
        raise UsageError(f"--lift {own[None]}: no stream is CSV, TSV, JSON, Parquet or Arrow")
    return bound
