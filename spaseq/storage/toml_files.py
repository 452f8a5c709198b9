"""Reads TOML files that users write."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from spaseq.errors import InputError, UsageError
from spaseq.storage.user_text import read_user_text


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text and the tables of a file; a byte order mark is skipped.

    Raises:
        InputError: the file cannot be read, or is no UTF-8.
        UsageError: it is no TOML.
    """
    try:
        text = read_user_text(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8"
        raise InputError(f"{path}: {reason}") from None
    try:
        return text, tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError) as error:  # or a number with too many digits
        raise UsageError(f"{path}: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: it has too many brackets within each other") from None
