"""The streams of a server, as its configuration says; a copy of that lies beside their logs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.api.streams import stream_source
from spaseq.connectors import SOURCES_OF_SCHEMES, is_source
from spaseq.connectors.address import scheme_of
from spaseq.errors import InputError, UsageError
from spaseq.lang.spelling import suggested
from spaseq.lift.cells import field_types
from spaseq.lift.lifted import Lifted
from spaseq.options import (
    FileSourceSettings,
    FollowOptions,
    ReadingOptions,
    RunOptions,
    RuntimeOptions,
)
from spaseq.rdf.inputs.stream_options import MessageOptions
from spaseq.runtime.live.intakes import LiveStream
from spaseq.serve.configuration import Configuration
from spaseq.sources.broker_stream import POSTED, BrokerStream
from spaseq.sources.json_ld import JsonLd
from spaseq.storage.checksums import read_json, with_checksum_line
from spaseq.storage.user_files import read_user_text

RECORD = "streams.json"
"""The file in the data directory with the streams of the server that used it last."""

_LOCAL = RuntimeOptions("local")
_SETTINGS = {
    "watermark": "delay_ms",
    "idle": "idle_ms",
    "heartbeat": "heartbeat_ms",
    "max_ahead": "max_ahead_ms",
}


def stream_of(name: str, table: Mapping[str, Any]) -> LiveStream:
    """The stream that a table `[streams.NAME]` describes.

    Raises:
        InputError: a lift or a context is missing or wrong.
        UsageError: keys do not go together.
    """
    url = table.get("source", POSTED)
    if "://" in url and not is_source(url):
        like, known = suggested(scheme_of(url), SOURCES_OF_SCHEMES), ", ".join(SOURCES_OF_SCHEMES)
        hint = f"did you mean {like}://?" if like else f"known: {known}, or a path"
        raise UsageError(f"[streams.{name}] source: {scheme_of(url)}:// is no source; {hint}")
    given_source = [url]
    for key in ("context", "context_map"):
        if "lift" in table and key in table:
            raise UsageError(f"[streams.{name}] has a lift and a {key}; give one")
    how: Any = given_source
    if "lift" in table:
        types = dict(field_types(table.get("types", "")))
        how = Lifted(given_source, table["lift"], types, table.get("csv"))
    elif "context" in table:
        how = JsonLd(given_source, table["context"])
    try:
        most = table.get("max_message") if "source" in table else None  # max_body bounds requests
        messages = MessageOptions(table.get("format"), table.get("time"), table.get("dedup"), most)
        follow = FollowOptions(Path(), messages=messages)
        keys = ("context_map", "time_predicate", "time_unit")
        reading = ReadingOptions(**{key: table[key] for key in keys if key in table})
        options = RunOptions(reading=reading, runtime=_LOCAL, follow=follow)
        source = stream_source(table["iri"], how, options)
    except (InputError, UsageError) as error:
        raise type(error)(f"[streams.{name}] {error}") from None
    if not isinstance(source, BrokerStream):
        raise UsageError(f"[streams.{name}] source: {source.describe()} cannot be followed here")
    given = {field: table[key] for key, field in _SETTINGS.items() if key in table}
    return LiveStream(name, source, FileSourceSettings(**given))


@dataclass(frozen=True, slots=True)
class RecordedStreams:
    """The part of a server's configuration that a replay needs.

    Attributes:
        streams: the streams; they have no sources.
        kb: by IRI, the path or URL of each graph.
    """

    streams: Sequence[LiveStream]
    kb: Mapping[str, str]


def record_of(configuration: Configuration) -> bytes:
    """The streams and graphs of a configuration, for `recorded`. No source is in it, for URLs may
    have passwords; the texts of lifts and contexts are."""
    streams = {name: _without_paths(table) for name, table in configuration.streams.items()}
    kb = {iri: str(path) for iri, path in configuration.kb.items()}
    value = {"streams": streams, "kb": {i: p for i, p in kb.items() if "@" not in p}}
    return with_checksum_line(json.dumps(value, indent=2)).encode()


def _without_paths(table: Mapping[str, Any]) -> dict[str, Any]:
    contents = {**table}
    if "source" in contents:
        contents["source"] = POSTED
    for key in ("lift", "context"):
        if key in contents:
            contents[key] = read_user_text(contents[key])
    if "context_map" in contents:
        contexts = contents["context_map"].items()
        contents["context_map"] = {iri: read_user_text(path) for iri, path in contexts}
    return contents


def recorded(data: Path, scratch: Path) -> RecordedStreams:
    """The streams whose logs a data directory has; texts of lifts are put into `scratch`.

    Raises:
        InputError: it is no data directory of a server.
        RunError: the record is damaged.
    """
    path = data / RECORD
    if not path.exists():
        raise InputError(
            f"{data}: there is no {RECORD}, so it is no data directory of spaseq serve, or one "
            "of an older version that has not been served by this one yet"
        )
    value = read_json(path, dict)
    streams = [
        stream_of(name, _with_paths(table, scratch / str(number)))
        for number, (name, table) in enumerate(value["streams"].items())
    ]
    return RecordedStreams(streams, value["kb"])


def _with_paths(table: dict[str, Any], directory: Path) -> dict[str, Any]:
    directory.mkdir(parents=True)
    for key, name in (("lift", "lift.rq"), ("context", "context.jsonld")):
        if key in table:
            (directory / name).write_text(table[key], "utf-8")
            table[key] = directory / name
    for number, (iri, text) in enumerate(table.get("context_map", {}).items()):
        (directory / f"{number}.jsonld").write_text(text, "utf-8")
        table["context_map"][iri] = directory / f"{number}.jsonld"
    return table
