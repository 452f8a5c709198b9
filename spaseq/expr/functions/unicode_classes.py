"""The character classes of XPath regular expressions, as ranges of code points."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]
"""Disjoint ranges of code points in ascending order, with both ends."""

_LAST = sys.maxunicode

# NameStartChar and NameChar of XML 1.0, fifth edition
_NAME_START: Ranges = (
    (0x3A, 0x3A),
    (0x41, 0x5A),
    (0x5F, 0x5F),
    (0x61, 0x7A),
    (0xC0, 0xD6),
    (0xD8, 0xF6),
    (0xF8, 0x2FF),
    (0x370, 0x37D),
    (0x37F, 0x1FFF),
    (0x200C, 0x200D),
    (0x2070, 0x218F),
    (0x2C00, 0x2FEF),
    (0x3001, 0xD7FF),
    (0xF900, 0xFDCF),
    (0xFDF0, 0xFFFD),
    (0x10000, 0xEFFFF),
)
_NAME_MORE: Ranges = ((0x2D, 0x2E), (0x30, 0x39), (0xB7, 0xB7), (0x300, 0x36F), (0x203F, 0x2040))

# Common Unicode blocks, by their names in \p{Is...}
_BLOCKS: dict[str, tuple[int, int]] = {
    "BasicLatin": (0x0, 0x7F),
    "Latin-1Supplement": (0x80, 0xFF),
    "LatinExtended-A": (0x100, 0x17F),
    "LatinExtended-B": (0x180, 0x24F),
    "IPAExtensions": (0x250, 0x2AF),
    "SpacingModifierLetters": (0x2B0, 0x2FF),
    "CombiningDiacriticalMarks": (0x300, 0x36F),
    "Greek": (0x370, 0x3FF),
    "GreekandCoptic": (0x370, 0x3FF),
    "Cyrillic": (0x400, 0x4FF),
    "Armenian": (0x530, 0x58F),
    "Hebrew": (0x590, 0x5FF),
    "Arabic": (0x600, 0x6FF),
    "Devanagari": (0x900, 0x97F),
    "Thai": (0xE00, 0xE7F),
    "HangulJamo": (0x1100, 0x11FF),
    "LatinExtendedAdditional": (0x1E00, 0x1EFF),
    "GreekExtended": (0x1F00, 0x1FFF),
    "GeneralPunctuation": (0x2000, 0x206F),
    "SuperscriptsandSubscripts": (0x2070, 0x209F),
    "CurrencySymbols": (0x20A0, 0x20CF),
    "LetterlikeSymbols": (0x2100, 0x214F),
    "NumberForms": (0x2150, 0x218F),
    "Arrows": (0x2190, 0x21FF),
    "MathematicalOperators": (0x2200, 0x22FF),
    "BoxDrawing": (0x2500, 0x257F),
    "GeometricShapes": (0x25A0, 0x25FF),
    "CJKSymbolsandPunctuation": (0x3000, 0x303F),
    "Hiragana": (0x3040, 0x309F),
    "Katakana": (0x30A0, 0x30FF),
    "CJKUnifiedIdeographs": (0x4E00, 0x9FFF),
    "HangulSyllables": (0xAC00, 0xD7AF),
    "PrivateUse": (0xE000, 0xF8FF),
    "HalfwidthandFullwidthForms": (0xFF00, 0xFFEF),
}


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    """The ranges of every two-letter general category, from one pass over Unicode."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    start, current = 0, unicodedata.category("\0")
    for code in range(1, _LAST + 2):
        category = unicodedata.category(chr(code)) if code <= _LAST else ""
        if category != current:
            ranges.setdefault(current, []).append((start, code - 1))
            start, current = code, category
    return ranges


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of any ranges."""
    union: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if union and low <= union[-1][1] + 1:
            union[-1] = (union[-1][0], max(high, union[-1][1]))
        else:
            union.append((low, high))
    return tuple(union)


def complement(ranges: Ranges) -> Ranges:
    """All code points outside the ranges."""
    edges = [-1, *(edge for low, high in ranges for edge in (low, high)), _LAST + 1]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return tuple((low + 1, high - 1) for low, high in pairs if low + 1 <= high - 1)


@cache
def category(name: str) -> Ranges | None:
    """A general category (`L`, `Lu`) or block (`IsGreek`); None if unknown."""
    if name.startswith("Is"):
        block = _BLOCKS.get(name.removeprefix("Is"))
        return (block,) if block else None
    ranges = [r for c, some in _categories().items() if c.startswith(name) for r in some]
    return merged(ranges) or None


@cache
def named(letter: str) -> Ranges | None:
    """The class of the escape `\\s`, `\\d`, `\\w`, `\\i` or `\\c`; None for other letters."""
    match letter:
        case "s":
            return (0x9, 0xA), (0xD, 0xD), (0x20, 0x20)
        case "d":
            return category("Nd")
        case "w":
            return complement(merged(r for c in "PZC" for r in category(c) or ()))
        case "i":
            return _NAME_START
        case "c":
            return merged(_NAME_START + _NAME_MORE)
    return None


def without(ranges: Ranges, taken: Ranges) -> Ranges:
    """The ranges without some others."""
    return complement(merged((*complement(ranges), *taken))) if taken else ranges


_CASED = ((0x0, 0x2FFF), (0xA640, 0xABFF), (0xFB00, 0xFFFF), (0x10400, 0x1EFFF))
"""Code points with case variants lie in these ranges."""


@cache
def _variants() -> dict[int, frozenset[int]]:
    """By code point, its other case variants: characters with the same lower or upper case."""
    alike: dict[tuple[str, str], list[int]] = {}
    for low, high in _CASED:
        for code in range(low, high + 1):
            char = chr(code)
            lower, upper = char.lower(), char.upper()
            if lower != upper:
                alike.setdefault(("lower", lower), []).append(code)
                alike.setdefault(("upper", upper), []).append(code)
    variants: dict[int, set[int]] = {}
    for codes in alike.values():
        for code in codes if len(codes) > 1 else ():
            variants.setdefault(code, set()).update(codes)
    return {code: frozenset(codes - {code}) for code, codes in variants.items()}


def case_variants(ranges: Ranges) -> Ranges:
    """The ranges and the case variants of their characters (XPath functions 3.1, 5.6.1.1)."""
    variants = _variants()
    if sum(high - low + 1 for low, high in ranges) < len(variants):
        codes = (c for low, high in ranges for c in range(low, high + 1) if c in variants)
    else:
        codes = (c for c in variants if any(low <= c <= high for low, high in ranges))
    more = [(v, v) for code in codes for v in variants[code]]
    return merged((*ranges, *more)) if more else ranges
