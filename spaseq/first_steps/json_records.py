"""The objects of a user's JSON file: its lines, an array, or the objects that a document lists."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from spaseq.records import record

Object = Mapping[str, Any]


@record
class JsonRecords:
    """Objects, each a row.

    Attributes:
        objects: the objects.
        field: the field of a document whose list they are; "" if the document is the list, None if
            the file's own rows are these objects.
    """

    objects: Sequence[Object]
    field: str | None


def json_records(path: Path, most: int) -> JsonRecords:
    """The first objects of a file, or all that a document lists."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode(
        "utf-8-sig", errors="replace"
    )
    try:
        whole = json.loads(text)
    except ValueError:
        return JsonRecords([*islice(_lines(text), most)], None)
    linked = ".jsonld" in path.name.lower()  # which streams of rows are not read from
    if isinstance(whole, dict):
        field = _listing(whole)
        objects = [whole] if field is None else _dicts(whole[field])
        return JsonRecords(objects, "" if linked and field is None else field)
    objects = _dicts(whole) if isinstance(whole, list) else []
    return JsonRecords(objects, "") if linked else JsonRecords(objects[:most], None)


def lines_of(objects: Sequence[Object]) -> str:
    """The objects as JSON lines."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in objects)


def _listing(document: Object) -> str | None:
    """The only field of a document that lists several objects; None if there is no such one."""
    if "@graph" in document:
        return "@graph"
    found = [name for name, value in document.items() if len(_dicts(value)) > 1]
    return found[0] if len(found) == 1 and found != ["@context"] else None


def _dicts(value: Any) -> list[Object]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _lines(text: str) -> Iterator[Object]:
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
