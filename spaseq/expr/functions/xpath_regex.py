"""Reads XPath regular expressions into a tree (XPath functions 3.1 section 5.6).

The grammar is that of XSD part 2 appendix F, with `^`, `$`, reluctant quantifiers, capturing and
non-capturing groups and back-references. Everything that matches one character becomes a set of
characters: letters, `.`, classes with their subtractions, and `\\p{..}`. Flag i adds the case
variants to letters and classes, as section 5.6.1.1 says.
"""

from __future__ import annotations

from typing import TypeAlias

import spaseq.expr.functions.unicode_classes as classes
from spaseq.expr.functions.unicode_classes import Ranges
from spaseq.records import record
from spaseq.text_patterns import late_pattern

MOST_CHARACTERS = 20_000
"""Longest pattern."""

MOST_RANGES = 100_000
"""Most ranges of characters in all sets of a pattern."""

MOST_NESTED = 100
"""Deepest nesting of groups and of subtracted classes."""

_FLAGS = frozenset("smixq")
_SPACES = " \t\n\r"
_QUANTIFIER = late_pattern(r"(?:[?*+]|\{([0-9]{1,9})(?:(,)([0-9]{1,9})?)?\})(\?)?")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPABLE = frozenset("\\|.?*+(){}-[]^$")
_CATEGORY = late_pattern(r"[pP]\{([A-Za-z0-9-]+)\}")
_BACK_REFERENCE = late_pattern(r"[1-9][0-9]{0,8}")
_LINE_ENDS: Ranges = ((0xA, 0xA), (0xD, 0xD))
_ANY = classes.complement(())


class PatternError(ValueError):
    """A pattern or flags that XPath does not allow, or that are too large."""


@record
class CharacterSet:
    """One character of a set."""

    ranges: Ranges


@record
class Assertion:
    """`^` or `$`; with `multiline`, at the start or end of each line."""

    sign: str
    multiline: bool


@record
class BackReference:
    """The text of a group again; the empty text if the group has no match."""

    group: int
    any_case: bool


@record
class RegexGroup:
    """A group in parentheses."""

    inner: RegexNode
    capturing: bool


@record
class Quantified:
    """A repetition; `most` is None for any number."""

    inner: RegexNode
    least: int
    most: int | None
    reluctant: bool


@record
class RegexSequence:
    """One part after the other; without parts, the empty text."""

    parts: tuple[RegexNode, ...]


@record
class RegexChoice:
    """One of several alternatives; the first that leads to a match counts."""

    alternatives: tuple[RegexNode, ...]


RegexNode: TypeAlias = (
    CharacterSet | Assertion | BackReference | RegexGroup | Quantified | RegexSequence | RegexChoice
)


def parse_regex(pattern: str, flags: str = "") -> tuple[RegexNode, int]:
    """The tree of an XPath regular expression, and the number of its capturing groups.

    Raises:
        PatternError: it is invalid, or too large.
    """
    if not _FLAGS.issuperset(flags):
        raise PatternError(f"unknown flags in {flags[:20]!r}")
    if len(pattern) > MOST_CHARACTERS:
        raise PatternError(f"a pattern has at most {MOST_CHARACTERS:,} characters")
    reader = _RegexReader(_without_space(pattern) if "x" in flags else pattern, flags)
    if "q" in flags:
        return RegexSequence(tuple([reader.letter(c) for c in pattern])), 0
    return reader.whole(), reader.opened


def _without_space(pattern: str) -> str:
    """The pattern under flag x: without white space outside character classes."""
    kept: list[str] = []
    depth = 0
    escaped = False
    for char in pattern:
        if not escaped:
            depth += (char == "[") - (char == "]")
        if depth > 0 or char not in _SPACES:
            kept.append(char)
            escaped = char == "\\" and not escaped
    return "".join(kept)


class _RegexReader:
    """One pass over a pattern; `at` is the offset of the next character."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.closed: set[int] = set()  # groups that a back-reference may name
        self.opened = self.depth = self.ranges = 0
        self.any_case = "i" in flags
        self.multiline = "m" in flags
        self.any = _ANY if "s" in flags else classes.complement(_LINE_ENDS)

    def whole(self) -> RegexNode:
        tree = self.alternatives()
        if self.at < len(self.pattern):
            raise self.error("unbalanced )")
        return tree

    def error(self, what: str) -> PatternError:
        near = self.pattern[max(0, self.at - 20) : self.at + 20]
        return PatternError(f"{what} at position {self.at}, near {near!r}")

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise self.error("unexpected end")
        self.at += 1
        return char

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise self.error(f"groups and classes are nested deeper than {MOST_NESTED}")

    def one_of(self, ranges: Ranges) -> CharacterSet:
        self.ranges += len(ranges)
        if self.ranges > MOST_RANGES:
            raise self.error("the character classes are too large")
        return CharacterSet(ranges)

    def letter(self, char: str) -> CharacterSet:
        ranges = ((ord(char), ord(char)),)
        return self.one_of(classes.case_variants(ranges) if self.any_case else ranges)

    def alternatives(self) -> RegexNode:
        choices: list[RegexNode] = []
        parts: list[RegexNode] = []
        while self.peek() not in ("", ")"):
            if self.peek() == "|":
                self.at += 1
                choices.append(RegexSequence(tuple(parts)))
                parts = []
            else:
                parts.append(self.quantified())
        last = RegexSequence(tuple(parts))
        return RegexChoice((*choices, last)) if choices else last

    def quantified(self) -> RegexNode:
        atom = self.atom()
        match = _QUANTIFIER.match(self.pattern, self.at)
        if match is None:
            return atom
        self.at = match.end()
        if self.peek() in ("?", "*", "+", "{"):
            raise self.error("a quantifier after a quantifier")
        low, comma, high, reluctant = match.groups()
        least = int(low) if low else int(match.group()[0] == "+")
        most = int(high) if high else None
        if match.group()[0] == "?":
            most = 1
        elif low and not comma:
            most = least
        if most is not None and most < least:
            raise self.error("the quantifier's range is empty")
        return Quantified(atom, least, most, reluctant is not None)

    def atom(self) -> RegexNode:
        char = self.take()
        match char:
            case "(":
                return self.group()
            case "[":
                return self.one_of(self.character_class())
            case "\\":
                return self.escape()
            case ".":
                return self.one_of(self.any)
            case "^" | "$":
                return Assertion(char, self.multiline)
            case "?" | "*" | "+" | "{" | "}" | "]":
                self.at -= 1
                raise self.error(f"unescaped {char}")
        return self.letter(char)

    def group(self) -> RegexNode:
        capturing = not self.pattern.startswith("?:", self.at)
        self.deeper()
        if capturing:
            if self.peek() == "?":
                raise self.error("unknown group")
            self.opened += 1
            number = self.opened
        else:
            self.at += 2
        inner = self.alternatives()
        if self.peek() != ")":
            raise self.error("missing )")
        self.at += 1
        self.depth -= 1
        if capturing:
            self.closed.add(number)
        return RegexGroup(inner, capturing)

    def escape(self) -> RegexNode:
        reference = _BACK_REFERENCE.match(self.pattern, self.at)
        if reference is None:
            escaped = self.escaped_set()
            return self.letter(escaped) if isinstance(escaped, str) else self.one_of(escaped)
        digits = reference.group()
        while len(digits) > 1 and int(digits) > self.opened:
            digits = digits[:-1]
        if int(digits) not in self.closed:
            raise self.error(f"no group {digits} before this")
        self.at += len(digits)
        return BackReference(int(digits), self.any_case)

    def escaped_set(self) -> Ranges | str:
        """The escape after a backslash: one character, or a set."""
        category = _CATEGORY.match(self.pattern, self.at)
        if category:
            self.at = category.end()
            inside = classes.category(category.group(1))
            if inside is None:
                raise self.error(f"unknown category {category.group(1)[:40]}")
            return classes.complement(inside) if category.group()[0] == "P" else inside
        char = self.take()
        if char in _LETTERS or char in _ESCAPABLE:
            return _LETTERS.get(char, char)
        inside = classes.named(char.lower()) if char.isascii() else None
        if inside is None:
            self.at -= 1
            raise self.error(f"unknown escape \\{char}")
        return classes.complement(inside) if char.isupper() else inside

    def character_class(self) -> Ranges:
        """The class after its `[`: ranges, escapes, and perhaps a subtraction `-[...]`."""
        negated = self.peek() == "^"
        self.at += negated
        self.deeper()
        parts: list[Ranges] = []
        subtracted: Ranges = ()
        while self.peek() != "]" or not parts:
            if parts and self.pattern.startswith("-[", self.at):
                self.at += 2
                subtracted = self.character_class()
                if self.peek() != "]":
                    raise self.error("only ] may follow a subtraction")
                break
            parts.append(self.class_item())
        self.at += 1
        self.depth -= 1
        whole = classes.merged(pair for part in parts for pair in part)
        return classes.without(classes.complement(whole) if negated else whole, subtracted)

    def class_item(self) -> Ranges:
        low = self.class_character()
        following = self.pattern[self.at + 1 : self.at + 2]
        if self.peek() == "-" and following not in ("]", "[", ""):
            self.at += 1
            high = self.class_character()
            if not isinstance(low, str) or not isinstance(high, str):
                raise self.error("a range needs two characters")
            if high < low:
                raise self.error("the range is empty")
            ranges = ((ord(low), ord(high)),)
        elif isinstance(low, str):
            ranges = ((ord(low), ord(low)),)
        else:
            self.ranges += len(low)  # also what a subtraction takes away costs time
            return low
        return classes.case_variants(ranges) if self.any_case else ranges

    def class_character(self) -> Ranges | str:
        char = self.take()
        if char == "\\":
            return self.escaped_set()
        if char in "[]":
            raise self.error(f"unescaped {char} in a character class")
        return char
