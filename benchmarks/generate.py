#!/usr/bin/env python3
"""Generates the streams of a use case, or synthetic streams, at any size.

    python benchmarks/generate.py traffic --events 1000000 --seed 7 --out DIR
    python benchmarks/generate.py synthetic --events 1000000 --out - | spaseq run ...

DIR receives one file per stream, as N-Quads unless `--format` says otherwise, and `kb.ttl`. `-`
writes one stream to standard output as N-Quads (`--stream NAME` chooses it if there are several).
Memory does not grow with the number of events. Equal arguments give equal bytes; `--seed 1` without
other options gives the files in `streams/`.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import TextIO

from generators import CASES, Case, Dice, Generated, synthetic
from generators.nquads import trig

FORMATS = ("nq", "nq.gz", "trig")


def arguments() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("case", choices=[*CASES, "synthetic"])
    parser.add_argument("--events", type=int, help="events of all streams together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keys", type=int, help="homes, vessels, cards, tickers, towns")
    parser.add_argument("--out", default="-", help="a directory, or - (the default)")
    parser.add_argument("--format", choices=FORMATS, default="nq", help="of files")
    parser.add_argument("--stream", help="the stream to write to standard output")
    only = parser.add_argument_group("synthetic only")
    only.add_argument("--types", type=int, default=3, help="types besides T0 (default 3)")
    only.add_argument("--selectivity", type=float, default=0.1, help="share of each (default 0.1)")
    only.add_argument("--streams", type=int, default=1)
    only.add_argument(
        "--values",
        type=int,
        default=1000,
        help="number of different values (default 1000, as integers; more are doubles)",
    )
    only.add_argument("--triples", type=int, default=5, help="of an event, 1 to 5 (default 5)")
    only.add_argument(
        "--step-ms", type=int, default=1, help="time between events of a stream; 0: all tie"
    )
    return parser


def chosen_case(options: argparse.Namespace) -> Case:
    """The case that the command line asks for."""
    if options.case != "synthetic":
        return CASES[options.case]
    names = (field.name for field in fields(synthetic.Settings))
    return synthetic.case(synthetic.Settings(**{name: getattr(options, name) for name in names}))


def generate(case: Case, events: int, seed: int, keys: int | None) -> Iterator[Generated]:
    """The first `events` events of a case."""
    keys = case.default_keys if keys is None else keys
    most = case.max_keys or keys
    if not 1 <= keys <= most:
        raise ValueError(f"{case.name} takes 1 to {most} keys, not {keys}")
    return islice(case.events(Dice(seed), keys), events)


def opened(path: Path) -> TextIO:
    """A new text file; compressed if its name ends in `.gz`."""
    if path.suffix == ".gz":
        return gzip.open(path, "wt", compresslevel=6, encoding="utf-8", newline="\n")
    return path.open("w", encoding="utf-8", newline="\n")


def write_files(
    case: Case, events: Iterator[Generated], keys: int, folder: Path, form: str = "nq"
) -> None:
    """Write each stream to a separate file, and the knowledge base."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        files = [stack.enter_context(opened(folder / f"{name}.{form}")) for name in case.streams]
        for event in events:
            text = trig(event.graph, event.text) if form == "trig" else event.text
            files[event.stream].write(text)
    if case.knowledge:
        text = case.knowledge(keys)
        (folder / "kb.ttl").write_text(text, encoding="utf-8", newline="\n")


def write_stream(
    case: Case, events: Iterator[Generated], stream: str | None, target: TextIO
) -> None:
    """Write one stream to an open file."""
    if stream is None and len(case.streams) > 1:
        raise ValueError(f"which --stream of {', '.join(case.streams)}?")
    if stream is not None and stream not in case.streams:
        raise ValueError(f"no stream {stream}; {case.name} has {', '.join(case.streams)}")
    wanted = case.streams.index(stream) if stream else 0
    target.writelines(event.text for event in events if event.stream == wanted)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = arguments()
    options = parser.parse_args(argv)
    try:
        case = chosen_case(options)
        count = case.default_events if options.events is None else options.events
        events = generate(case, count, options.seed, options.keys)
        folder = Path(options.out)
        if options.out == "-":
            write_stream(case, events, options.stream, sys.stdout)
        else:
            write_files(case, events, options.keys or case.default_keys, folder, options.format)
    except ValueError as error:
        parser.error(str(error))
    except BrokenPipeError:
        # The reader has closed the pipe; keep the interpreter from flushing into it.
        sys.stderr.close()
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
