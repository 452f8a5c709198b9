"""Files of users: opens text and reads TOML that they write, and fills directories for them, each
new or empty.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from spaseq.errors import InputError, UsageError

KeyPath: TypeAlias = "tuple[str | int, ...]"

_TABLE = re.compile(r"\s*(\[\[?)([^\[\]]*)\]")
_KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*[=.]""")


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


class TomlMistakes:
    """The mistakes in a TOML file, each with its line.

    A key path has the names of tables and keys, and the numbers of tables in arrays.
    """

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._found = path, list[tuple[int, str]]()
        self._lines: dict[KeyPath, int] = {}
        for key_path, line in _key_paths(text):
            self._lines.setdefault(key_path, line)

    def line(self, key_path: KeyPath) -> int:
        """The line of a key or of the nearest table around it; 1 if there is none.

        >>> mistakes = TomlMistakes(Path("t.toml"), "[[a]]\\nx = 1\\n[[a]]\\n[a.b]\\ny = 2")
        >>> [mistakes.line(path) for path in (("a", 0, "x"), ("a", 1, "b", "y"), ("c",))]
        [2, 5, 1]
        """
        while key_path and key_path not in self._lines:
            key_path = key_path[:-1]
        return self._lines.get(key_path, 1)

    def add(self, key_path: KeyPath, what: str) -> None:
        """Record a mistake."""
        self._found.append((self.line(key_path), what))

    def check(self) -> None:
        """UsageError if there are mistakes, with all of them in order."""
        if self._found:
            lines = (f"{self._path}:{line}: {what}" for line, what in sorted(self._found))
            raise UsageError("\n".join(lines))


def _key_paths(text: str) -> Iterator[tuple[KeyPath, int]]:
    """The keys of a TOML text with their lines; those in an inline table have its line."""
    table: KeyPath = ()
    last: dict[KeyPath, int] = {}  # the number of the last table of each array
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = ()
            names = [part.strip(" \t\"'") for part in header[2].split(".")]
            for place, name in enumerate(names, 1):
                table = (*table, name)
                yield table, number
                if header[1] == "[[" and place == len(names):
                    last[table] = last.get(table, -1) + 1
                if table in last:
                    table = (*table, last[table])
                    yield table, number
        elif key := _KEY.match(line):
            yield (*table, key[1] or key[2] or key[3]), number


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
