"""Lifts rows of a text, and gives events and bad rows as plain values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from spaseq.lift.cells import field_types
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted_source import LiftedFiles
from spaseq.lift.row_blocks import RowBlock
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions

XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIXES = f"""PREFIX : <http://e/>
PREFIX xsd: <{XSD}>
PREFIX prov: <http://www.w3.org/ns/prov#>
"""
ALWAYS = '"2020-01-01T00:00:00Z"^^xsd:dateTime'

Event = tuple[str | None, str, frozenset[tuple[str, str, str]]]
"""(name, time literal, triples) of an event."""


def lift_of(template: str, where: str = "") -> str:
    """A lift whose events have no name, and one time."""
    time = f":t prov:generatedAtTime {ALWAYS}"
    return f"{PREFIXES}CONSTRUCT {{ {time} . {template} }} WHERE {{ {where} }}"


def lifted(path: Path, lift: str, types: str = "") -> tuple[list[Event], list[BadInput]]:
    """The events of a file, and its bad rows."""
    bad: list[BadInput] = []
    source = LiftedFiles(
        StreamOptions("http://e/s", (str(path),)), compiled_lift(lift), field_types(types)
    )
    source.check()
    events = []
    for batch in source.lifted(bad.append):
        found = batch.events
        for i, time in enumerate(batch.time_texts()):
            rows = range(int(found.start[i]), int(found.start[i + 1]))
            triples = frozenset(
                (found.terms[found.s[j]], found.terms[found.p[j]], found.terms[found.o[j]])
                for j in rows
            )
            events.append((found.graph[i], time, triples))
    return events, bad


def as_lists(block: RowBlock) -> RowBlock:
    """The rows of a table as lists of cells, as few rows have them."""
    columns = {name: block.cells(name) for name in block.columns}
    return replace(block, columns=columns, is_table=False)


def objects(
    path: Path, lift: str, types: str = ""
) -> tuple[list[Any], list[tuple[int | None, str]]]:
    """The objects of `:v` in each event, sorted, and (line, reason) of each bad row."""
    events, bad = lifted(path, lift, types)
    found = [sorted(o for _, p, o in triples if p == "<http://e/v>") for _, _, triples in events]
    return found, [(b.line, b.reason) for b in bad]


def integer(value: int | str) -> str:
    """The N-Triples text of an xsd:integer."""
    return typed(str(value), "integer")


def typed(lexical: str, datatype: str) -> str:
    """The N-Triples text of a literal of an XSD datatype."""
    return f'"{lexical}"^^<{XSD}{datatype}>'
