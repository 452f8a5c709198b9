"""Where a stream's bytes are: options, formats by extension, and paths made into files."""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from glob import glob, has_magic
from pathlib import Path
from typing import IO, cast

from spaseq.errors import InputError, UsageError
from spaseq.rdf.terms import is_absolute_iri
from spaseq.rdf.vocabulary import GENERATED_AT_TIME

STDIN = "-"

READ_ERRORS = (OSError, EOFError, zlib.error)
"""What reading a file that could be opened may raise: a failing disk, a damaged .gz."""


class Format(Enum):
    """The RDF formats that are read; the value is the name used in options."""

    NQUADS = "nquads"
    NTRIPLES = "ntriples"
    TRIG = "trig"
    TURTLE = "turtle"
    JSONLD = "jsonld"
    RDFXML = "rdfxml"
    SPOOL = "spool"  # our own, see `rdf.spool`

    @property
    def has_graphs(self) -> bool:
        """Whether the format has named graphs, so that a graph can be an event."""
        return self in (Format.NQUADS, Format.TRIG, Format.JSONLD, Format.SPOOL)


EXTENSIONS: dict[str, Format] = {
    ".nq": Format.NQUADS,
    ".nquads": Format.NQUADS,
    ".nt": Format.NTRIPLES,
    ".ntriples": Format.NTRIPLES,
    ".trig": Format.TRIG,
    ".ttl": Format.TURTLE,
    ".turtle": Format.TURTLE,
    ".jsonld": Format.JSONLD,
    ".json": Format.JSONLD,
    ".rdf": Format.RDFXML,
    ".xml": Format.RDFXML,
}


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How one stream is read.

    `paths` are files, directories, globs, or `-` (N-Quads on standard input); a `.gz` ending is
    unpacked. `time_predicate` is an IRI. `format` is a format's or an extension's name for files
    whose name does not tell. `triples_per_event` is the n of the formats without graphs, whose
    events take the time of their arrival if `arrival_time` says so. `batch_events` bounds the
    events of one batch. `threads` tokenize N-Quads and N-Triples. If `predicates` (IRIs) are given,
    those formats' triples with others are checked and counted, but not kept. `base` is the IRI that
    relative IRIs of the other formats are relative to, where the document names none.
    """

    iri: str
    paths: tuple[str, ...]
    time_predicate: str = GENERATED_AT_TIME
    triples_per_event: int | None = None
    arrival_time: bool = False
    format: str | None = None
    batch_events: int = 16_384
    threads: int = 1
    predicates: tuple[str, ...] | None = None
    base: str | None = None

    def __post_init__(self) -> None:
        if self.base is not None and not is_absolute_iri(self.base):
            raise UsageError(f"the base {self.base} is no absolute IRI")


def reading_threads() -> int:
    """How many threads read a stream unless it is said: two, where there are two cores."""
    return min(2, os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file (or `-`) and the format it is in."""

    path: str
    format: Format

    def open(self) -> AbstractContextManager[IO[bytes]]:
        """The unpacked bytes; InputError if the file cannot be opened."""
        if self.path == STDIN:
            return nullcontext(sys.stdin.buffer)  # not ours to close
        try:
            if self.path.endswith(".gz"):
                return cast("IO[bytes]", gzip.open(self.path, "rb"))
            return open(self.path, "rb")
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror}") from error


def format_of(path: str) -> Format | None:
    """The format that a file's name tells, a `.gz` at its end not looked at."""
    name = path.removesuffix(".gz")
    return EXTENSIONS.get(Path(name).suffix.lower())


def format_named(name: str) -> Format:
    """The format with this name or extension; InputError with the nearest name if there is none."""
    known = {f.value: f for f in Format} | {e[1:]: f for e, f in EXTENSIONS.items()}
    if (found := known.get(name.lower().lstrip("."))) is not None:
        return found
    raise InputError(
        f"unknown format {name!r}{_nearest(name, known)}; formats are {', '.join(sorted(known))}"
    )


def resolve_paths(options: StreamOptions) -> tuple[InputFile, ...]:
    """The files of a stream in the order in which they are read.

    Files of a directory or glob come in order of name. InputError for a path that is not there, a
    glob without a match, an unknown format, and a format without graphs if nothing says how many
    triples are an event. A directory may be empty.
    """
    forced = format_named(options.format) if options.format is not None else None
    try:
        files = tuple(f for path in options.paths for f in files_at(path, forced))
        for file in files:
            _check_triples_per_event(file, options)
    except InputError as error:
        raise InputError(f"stream <{options.iri}>: {error}") from None
    return files


def files_at(path: str, forced: Format | None = None) -> Sequence[InputFile]:
    """The files that a path stands for: one, those of a directory or glob, by name, or `-`.

    InputError for a path that is not there, a glob without a match, and an unknown format.
    """
    if path == STDIN:
        return [InputFile(STDIN, forced or Format.NQUADS)]
    place = Path(path)
    if place.is_dir():
        return _directory(place, forced)
    if place.exists():
        return [_file(path, forced)]
    if has_magic(path):
        matches = sorted(p for p in glob(path, recursive=True) if Path(p).is_file())
        if not matches:
            raise InputError(f"no file matches {path}")
        return [_file(p, forced) for p in matches]
    raise InputError(f"no such file or directory: {path}{_near_path(place)}")


def _directory(place: Path, forced: Format | None) -> list[InputFile]:
    """The files of a directory; hidden ones and, if no format is forced, foreign ones left out."""
    names = sorted(p.name for p in place.iterdir() if p.is_file() and p.name[0] not in "._")
    found = [(name, forced or format_of(name)) for name in names]
    return [InputFile(str(place / name), f) for name, f in found if f is not None]


def _file(path: str, forced: Format | None) -> InputFile:
    found = forced or format_of(path)
    if found is None:
        known = " ".join(EXTENSIONS)
        raise InputError(f"{path}: unknown format; a name ends in one of {known} (or .gz after it)")
    return InputFile(path, found)


def _check_triples_per_event(file: InputFile, options: StreamOptions) -> None:
    n = options.triples_per_event
    if n is not None and n < 1:
        raise InputError(f"triples_per_event must be at least 1, not {n}")
    if n is None and not file.format.has_graphs:
        raise InputError(
            f"{file.path}: {file.format.value} has no graphs, so say how many triples are one event"
            " (--triples-per-event N, or triples_per_event in Python)"
        )


def _near_path(place: Path) -> str:
    """A hint at the nearest name in the deepest directory of the path that exists."""
    missing = place
    while not missing.parent.is_dir() and missing.parent != missing:
        missing = missing.parent
    try:
        names = [p.name for p in missing.parent.iterdir()]
    except OSError:
        return ""
    close = get_close_matches(missing.name, names, n=1)
    return f"; did you mean {missing.parent / close[0]}?" if close else ""


def _nearest(name: str, known: dict[str, Format]) -> str:
    close = get_close_matches(name.lower(), known, n=1)
    return f", did you mean {close[0]!r}?" if close else ""
