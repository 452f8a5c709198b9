"""Small JSON files that a run resumes from: replaced whole, and with a checksum as last line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from spaseq.errors import RunError
from spaseq.storage.checksums import with_checksum_line, without_checksum_line

T = TypeVar("T")

_WRONG = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""The errors that another value than the expected one raises."""


def write_json(path: Path, value: object, indent: int | None = None) -> None:
    """Replace a file, or leave it as it is, whenever the process is killed."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(with_checksum_line(json.dumps(value, indent=indent)), "utf-8")
    fresh.replace(path)


def read_json(path: Path, use: Callable[[Any], T]) -> T:
    """The result of `use` for the value in a file that `write_json` wrote.

    Earlier versions wrote no checksum.

    Raises:
        RunError: the file cannot be read, is damaged, or `use` cannot take its value.
    """
    try:
        text = path.read_text("utf-8")
        content = without_checksum_line(text)
        return use(json.loads(text if content is None else content))
    except (OSError, *_WRONG) as error:
        raise damaged(path, error) from error


def damaged(path: Path, reason: object) -> RunError:
    """The error for a file that a run cannot resume from."""
    return RunError(
        f"{path} is damaged, so the run cannot go on: {reason}. Restore its directory from a "
        "copy, or start again with an empty one"
    )
