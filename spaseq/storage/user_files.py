"""Files of users: opens text and reads TOML that they write, and fills directories for them, each
new or empty.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spaseq.errors import InputError, UsageError


def read_user_text(path: Path | str, most: int = -1) -> str:
    """The text of a UTF-8 file, at most `most` characters; a byte order mark is skipped.

    Raises:
        OSError: the file cannot be read.
        UnicodeDecodeError: it is no UTF-8.
    """
    with open(path, encoding="utf-8-sig") as file:
        return file.read(most)


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text and the tables of a file; a byte order mark is skipped.

    Raises:
        InputError: the file cannot be read, or is no UTF-8.
        UsageError: it is no TOML.
    """
    import tomllib  # most runs read no TOML

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


def check_new(directory: Path) -> None:
    """Check that a directory is not there, or empty.

    Raises:
        UsageError: it has files, or is a file.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UsageError(f"{directory} is there already; name a new directory")


def write_copy(files: Path, directory: Path) -> None:
    """Copy the files of a directory into a new one.

    Raises:
        UsageError: as `check_new`.
        InputError: it cannot be written.
    """
    import shutil  # it imports the libraries of compression

    try:
        check_new(directory)
        unwanted = shutil.ignore_patterns("__pycache__", "__init__.py")
        shutil.copytree(
            files, directory, ignore=unwanted, copy_function=shutil.copyfile, dirs_exist_ok=True
        )
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror or error}") from None
