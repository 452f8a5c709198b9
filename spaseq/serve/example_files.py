"""`spaseq serve --init`: an example that runs as it is."""

from __future__ import annotations

import shutil
from pathlib import Path

from spaseq.errors import InputError, UsageError

EXAMPLE = Path(__file__).parent / "example"
"""The files of the example."""

CONFIGURATION = "spaseq.toml"


def write_example(directory: Path) -> Path:
    """Write the example into a new or empty directory; returns the path of its configuration.

    Raises:
        UsageError: the directory has files.
        InputError: it cannot be written.
    """
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UsageError(f"{directory} is there already; name a new directory")
        unwanted = shutil.ignore_patterns("__pycache__", "__init__.py")
        shutil.copytree(
            EXAMPLE, directory, ignore=unwanted, copy_function=shutil.copyfile, dirs_exist_ok=True
        )
    except OSError as error:
        raise InputError(f"{directory}: {error.strerror or error}") from None
    return directory / CONFIGURATION
