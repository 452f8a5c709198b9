"""The dialect of CSV and TSV files: separators of cells, and the form of numbers."""

from __future__ import annotations

import codecs
import re

from spaseq.errors import UsageError
from spaseq.records import record

KEYS = ("delimiter", "quote", "header", "decimal", "encoding")
_NEXT_KEY = re.compile(r",(?=\s*(?:" + "|".join(KEYS) + r")=)")
_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}


@record
class CsvDialect:
    """The dialect of CSV or TSV.

    Attributes:
        delimiter: between two cells; None: detected for each file.
        quote: around cells with delimiters or line ends; empty if there is none.
        header: whether the first row has the names of the fields; or the names, if it has not.
        decimal: `.` or `,` between the digits of a number.
        encoding: of the text.
    """

    delimiter: str | None = None
    quote: str = '"'
    header: bool | tuple[str, ...] = True
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        for key, sign in (("delimiter", self.delimiter), ("quote", self.quote)):
            if sign is None or (not sign and key == "quote"):
                continue
            if len(sign) != 1 or not sign.isascii() or sign in "\r\n\0":
                raise UsageError(f"--csv {key}={sign}: expected one ASCII character")
        if self.decimal not in (".", ","):
            raise UsageError(f"--csv decimal={self.decimal}: it is . or ,")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise UsageError(f"--csv encoding={self.encoding}: no such encoding") from None

    @property
    def is_utf8(self) -> bool:
        """Whether the text need not be decoded first."""
        return codecs.lookup(self.encoding).name == "utf-8"


DEFAULT_DIALECT = CsvDialect()


def csv_dialect(text: str) -> CsvDialect:
    """Parse a dialect `KEY=VALUE,...`.

    Raises:
        UsageError: a key or a value is unknown.

    >>> csv_dialect("delimiter=;,decimal=,").decimal, csv_dialect("header=a,b,c").header
    (',', ('a', 'b', 'c'))
    """
    values: dict[str, str] = {}
    for part in _NEXT_KEY.split(text):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in KEYS:
            raise UsageError(f"--csv {text}: expected KEY=VALUE,... with keys {', '.join(KEYS)}")
        values[key] = value
    sign = values.get("delimiter")
    header = values.get("header", "true")
    names = tuple(name.strip() for name in re.split(r"\|" if "|" in header else ",", header))
    return CsvDialect(
        None if sign is None else _NAMES.get(sign, sign),
        values.get("quote", '"'),
        {"true": True, "false": False}.get(header, names),
        values.get("decimal", "."),
        values.get("encoding", "utf-8"),
    )
