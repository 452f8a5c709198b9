"""Regular expressions of SPARQL's terminals (SPARQL 1.2 section 19.8)."""

from __future__ import annotations

import re
from functools import cached_property

_BASE = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d"
    "\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_U = _BASE + "_"
"""PN_CHARS_U, for use inside [...]."""

_COMBINING = "\u00b7\u0300-\u036f\u203f-\u2040"
_CHARS = f"{_U}0-9{_COMBINING}-"  # the hyphen comes last, because this goes into [...]
"""PN_CHARS without the dot, for use inside [...]."""

_ESCAPED = r"%[0-9A-Fa-f]{2}|\\[_~.!$&'()*+,;=/?#@%-]"
"""PLX: an escaped character of a local name."""

NAME = rf"[{_U}][{_U}0-9]*"
"""The name of a GPM or stream."""

VARIABLE = rf"[?$][{_U}0-9][{_U}0-9{_COMBINING}]*"
"""VAR1 and VAR2."""

PREFIX = rf"(?:[{_BASE}](?:[{_CHARS}.]*[{_CHARS}])?)?:"
"""PNAME_NS: a prefix with its colon."""

LOCAL = rf"(?:[{_U}:0-9]|{_ESCAPED})(?:(?:[{_CHARS}.:]|{_ESCAPED})*(?:[{_CHARS}:]|{_ESCAPED}))?"
"""PN_LOCAL: the part of a prefixed name after the colon."""

IRI_REF = r'<[^<>"{}|^`\\\x00-\x20]*>'
BLANK_NODE = rf"_:[{_U}0-9](?:[{_CHARS}.]*[{_CHARS}])?"
LANGUAGE_TAG = r"@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl)(?![A-Za-z]))?"

_CHARACTER_ESCAPE = r"""\\[tbnrf"'\\]"""
_SHORT_STRINGS = (
    rf'"(?:[^"\\\n\r]|{_CHARACTER_ESCAPE})*"',
    rf"'(?:[^'\\\n\r]|{_CHARACTER_ESCAPE})*'",
)
STRING = "|".join(
    (
        rf'"""(?:"{{0,2}}(?:[^"\\]|{_CHARACTER_ESCAPE}))*"""',
        rf"'''(?:'{{0,2}}(?:[^'\\]|{_CHARACTER_ESCAPE}))*'''",
        *_SHORT_STRINGS,
    )
)
SHORT_STRING = rf"""(?!"{{3}}|'{{3}})(?:{"|".join(_SHORT_STRINGS)})"""
"""A string on one line, between single quotation marks."""

# The letter after a backslash in a string -> its character.
CHARACTERS = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}

_EXPONENT = r"[eE][+-]?[0-9]+"
DOUBLE = rf"[+-]?(?:[0-9]+\.[0-9]*{_EXPONENT}|\.?[0-9]+{_EXPONENT})"
DECIMAL = r"[+-]?[0-9]*\.[0-9]+"
INTEGER = r"[+-]?[0-9]+"
DATE_TIME = r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9]{2}:[0-9]{2})?"

_BEYOND_ASCII = re.compile("[^\x00-\x7f](?:-[^\x00-\x7f])?")


class NamePattern:
    """A regular expression with names, for texts that are mostly ASCII.

    The sets of all letters that names may have take long to compile. An expression without the
    letters beyond ASCII serves until a text has one.

    >>> NamePattern(NAME).match("a\u00e4").end(), NamePattern(NAME).match("ab").end()
    (2, 2)
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    @cached_property
    def _ascii(self) -> re.Pattern[str]:
        return re.compile(_BEYOND_ASCII.sub("", self.pattern))

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    def match(self, text: str, place: int = 0) -> re.Match[str] | None:
        """Like `re.Pattern.match`."""
        return (self._ascii if text.isascii() else self._whole).match(text, place)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Like `re.Pattern.fullmatch`."""
        return (self._ascii if text.isascii() else self._whole).fullmatch(text)
