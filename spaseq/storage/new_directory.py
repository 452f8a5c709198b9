"""Directories that commands fill for users: each is new, or empty."""

from __future__ import annotations

import shutil
from pathlib import Path

from spaseq.errors import InputError, UsageError


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
    try:
        check_new(directory)
        unwanted = shutil.ignore_patterns("__pycache__", "__init__.py")
        shutil.copytree(
            files, directory, ignore=unwanted, copy_function=shutil.copyfile, dirs_exist_ok=True
        )
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror or error}") from None
