"""`spaseq init`: a first query over one's own files, with a lift, a test and a configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from spaseq.errors import InputError
from spaseq.first_steps.first_files import files_of
from spaseq.first_steps.sampled_rows import sampled_rows
from spaseq.first_steps.samples import Sample, first_rule, sampled_events
from spaseq.lift.table_files import TABLE_EXTENSIONS, table_format
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.sources.feed_files import PREFIX
from spaseq.storage.user_files import check_new

_EXAMPLE = """sensor,at,level
north,2026-01-05T09:00:00Z,7.5
south,2026-01-05T09:01:00Z,3.0
north,2026-01-05T09:05:00Z,8.25
south,2026-01-05T09:06:00Z,2.5
"""

_POSTED = {
    ".json": "application/json",
    ".jsonld": "application/ld+json",
    ".trig": "application/trig",
    ".sosa.ttl": "text/turtle",
    ".ngsild": "application/ld+json",
    ".cloudevents": "application/cloudevents+json",
}
"""The media types of files that a server does not read as they grow."""

_HEAD_BYTES = 1 << 14  # in which a file of notifications says so

_JSON = (".json", ".jsonl", ".ndjson", ".jsonld")
_NOTIFICATION = (
    re.compile(rb'"type"\s*:\s*"Notification"'),
    re.compile(rb'"(subscriptionId|notifiedAt)"\s*:'),
)
_EVENTS = (
    *(".nq", ".nquads", ".trig", ".jsonld", ".rdfm", ".ndjsonld", ".jelly"),
    *(".ngsild", ".cloudevents", ".sosa", ".sosa.ttl"),
)


class _FileOrFeed(click.Path):
    """A file, or pages of a linked data event stream at `ldes+file:PATH`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value).startswith(PREFIX):
            return super().convert(value, param, ctx)
        path = super().convert(str(value).removeprefix(PREFIX), param, ctx)
        return Path(f"{PREFIX}{path!s}")


@click.command(context_settings={"max_content_width": 100})
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "files",
    multiple=True,
    metavar="FILE",
    type=_FileOrFeed(path_type=Path, exists=True, dir_okay=False),
    help="CSV, TSV, JSON, JSON lines, Parquet, Arrow, N-Quads, TriG, JSON-LD, NGSI-LD, "
    "CloudEvents or SOSA, or ldes+file:PATH. Repeatable: the query is about the first file.",
)
def init(directory: Path, files: tuple[Path, ...]) -> None:
    """Write a first query with answers over your own files.

    Looks at the first rows of each FILE, and writes into the new directory DIR: a lift with the
    types that it found, a query, a test with two rows, a knowledge base, and a configuration of
    `spaseq serve`. Without FILE there is a small example.
    """
    try:
        check_new(directory)
        samples = [_sample(file) for file in files]
        (directory / "queries").mkdir(parents=True, exist_ok=True)
        if not samples:
            (directory / "levels.csv").write_text(_EXAMPLE)
            samples = [_sample(directory / "levels.csv")]
        for name, text in files_of(samples, first_rule(samples[0]), directory).items():
            (directory / name).write_text(text, "utf-8")
    except OSError as error:
        raise InputError(f"{error.filename or directory}: {error.strerror or error}") from None
    _tell(directory, samples[0])


def _sample(file: Path) -> Sample:
    if str(file).startswith(PREFIX):
        return sampled_events(file)
    if table_format(file.name) is not None:
        return sampled_rows(file)
    if not file.name.lower().removesuffix(".gz").endswith(_EVENTS):
        raise InputError(
            f"{file}: a name that ends in one of {' '.join([*TABLE_EXTENSIONS, *_EVENTS])} is "
            "expected; save a spreadsheet as CSV, and triples without graphs as N-Quads, a named "
            "graph for each event"
        )
    if not file.name.lower().endswith((".jsonld", ".jsonld.gz")):
        return sampled_events(file)
    try:
        return sampled_events(file)
    except InputError:  # its objects are in no named graphs
        return sampled_rows(file)


def _has_notifications(file: Path) -> bool:
    """Whether the file begins with a notification of NGSI-LD."""
    with InputFile(str(file), Format.NGSILD).open() as data:
        head = data.read(_HEAD_BYTES)
    return all(name.search(head) for name in _NOTIFICATION)


def _tell(directory: Path, sample: Sample) -> None:
    """Print the result, and the next commands."""
    query, lift = directory / "queries/first.rq", directory / f"{sample.name}.lift.rq"
    lifted = "" if sample.is_rdf else f" --lift {lift}"
    known = f" --kb {directory / 'kb.ttl'}" if "OPTIONAL" in query.read_text("utf-8") else ""
    stream = f"--stream {sample.name}={sample.path_in(directory)}"
    if sample.csv:
        stream += f" --csv {sample.name}={sample.csv}"
    if sample.time_predicate is not None:
        stream += f" --time-predicate {sample.time_predicate}"
    click.echo(f"Wrote {directory}: {', '.join(sorted(p.name for p in directory.iterdir()))}")
    if sample.records is not None:
        click.echo(f"{sample.name}.jsonl has the objects of {sample.path}, each on a line.")
    if sample.path.endswith(_JSON) and _has_notifications(Path(sample.path)):
        click.echo(
            f"{sample.path} has notifications of NGSI-LD. Here each is a row; in a file whose name "
            "ends in .ngsild each of their entities is an event."
        )
    click.echo("Next:")
    click.echo(f"  spaseq run {query} {stream}{lifted}{known} --runtime local --format csv")
    click.echo(f"  spaseq test {directory / 'queries'}")
    click.echo(f"  spaseq serve {directory / 'spaseq.toml'}")
    file = sample.path_in(directory)
    media = next((m for ending, m in _POSTED.items() if file.lower().endswith(ending)), None)
    if media is not None:
        posted = f"--data-binary @{file} http://127.0.0.1:8787/streams/{sample.name}"
        click.echo(f"  curl -H 'Content-Type: {media}' {posted}")
