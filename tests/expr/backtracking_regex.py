"""The reference of the tests of regular expressions: plain backtracking by Python's `re`.

Translates XPath regular expressions into Python's (XPath functions 3.1 section 5.6).

The grammar is that of XSD part 2 appendix F, with `^`, `$`, reluctant quantifiers, capturing and
non-capturing groups and back-references. Parts that mean something else in Python are replaced:
`.`, `$`, `\\s`, `\\w`, `\\i`, `\\c`, `\\p{..}` and class subtraction.
"""

from __future__ import annotations

import re

from spaseq.expr.functions import unicode_classes as classes

_FLAGS = frozenset("smixq")
_SPACES = " \t\n\r"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})\??")
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}
_ESCAPABLE = frozenset("\\|.?*+(){}-[]^$")
_CATEGORY = re.compile(r"[pP]\{([A-Za-z0-9-]+)\}")
_BACK_REFERENCE = re.compile(r"[1-9][0-9]*")


def _inside(ranges: classes.Ranges, negated: bool) -> str:
    """The ranges, or their complement, as the inside of a Python character class."""
    chosen = classes.complement(ranges) if negated else ranges
    return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in chosen)


class PatternError(ValueError):
    """A pattern or flags that XPath does not allow."""


def translate(pattern: str, flags: str = "") -> re.Pattern[str]:
    """The Python equivalent of an XPath regular expression; PatternError if it is invalid."""
    if not _FLAGS.issuperset(flags):
        raise PatternError(f"unknown flags in {flags!r}")
    options = re.IGNORECASE if "i" in flags else re.NOFLAG
    if "q" in flags:
        return re.compile(re.escape(pattern), options)
    text = _without_space(pattern) if "x" in flags else pattern
    try:
        return re.compile(_RegexTranslation(text, flags).run(), options)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"cannot read {pattern!r}: {error}") from error


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


class _RegexTranslation:
    """One pass over a pattern; `at` is the offset of the next character."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.closed: set[int] = set()  # groups that a back-reference may name
        self.opened = 0
        self.any = "(?s:.)" if "s" in flags else r"[^\n\r]"
        # In multi-line mode ^ does not match after a newline that ends the text.
        self.start = r"(?:\A|(?<=\n)(?!\Z))" if "m" in flags else r"\A"
        self.end = r"(?=\n|\Z)" if "m" in flags else r"\Z"

    def run(self) -> str:
        text = self.alternatives()
        if self.at < len(self.pattern):
            raise self.error("unbalanced )")
        return text

    def error(self, what: str) -> PatternError:
        return PatternError(f"{what} at position {self.at} of {self.pattern!r}")

    def peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise self.error("unexpected end")
        self.at += 1
        return char

    def alternatives(self) -> str:
        parts: list[str] = []
        while self.peek() not in ("", ")"):
            parts.append("|" if self.peek() == "|" else self.quantified())
            if parts[-1] == "|":
                self.at += 1
        return "".join(parts)

    def quantified(self) -> str:
        atom = self.atom()
        quantifier = _QUANTIFIER.match(self.pattern, self.at)
        if quantifier is None:
            return atom
        self.at = quantifier.end()
        if self.peek() in ("?", "*", "+", "{"):
            raise self.error("a quantifier after a quantifier")
        return f"(?:{atom}){quantifier.group()}"

    def atom(self) -> str:
        char = self.take()
        match char:
            case "(":
                return self.group()
            case "[":
                return self.character_class()
            case "\\":
                return self.escape()
            case ".":
                return self.any
            case "^":
                return self.start
            case "$":
                return self.end
            case "?" | "*" | "+" | "{" | "}" | "]":
                self.at -= 1
                raise self.error(f"unescaped {char}")
        return re.escape(char)

    def group(self) -> str:
        capturing = not self.pattern.startswith("?:", self.at)
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
        if capturing:
            self.closed.add(number)
        return f"({inner})" if capturing else f"(?:{inner})"

    def escape(self) -> str:
        reference = _BACK_REFERENCE.match(self.pattern, self.at)
        if reference is None:
            return f"[{self.escaped_set()}]"
        digits = reference.group()
        while len(digits) > 1 and int(digits) > self.opened:
            digits = digits[:-1]
        if int(digits) not in self.closed:
            raise self.error(f"no group {digits} before this")
        self.at += len(digits)
        # A reference to a group without a match stands for the empty string.
        return rf"(?:(?({digits})\{digits}))"

    def escaped_set(self) -> str:
        """The escape after a backslash, as the inside of a Python character class."""
        category = _CATEGORY.match(self.pattern, self.at)
        if category:
            self.at = category.end()
            inside = classes.category(category.group(1))
            if inside is None:
                raise self.error(f"unknown category {category.group(1)}")
            return _inside(inside, negated=category.group()[0] == "P")
        char = self.take()
        if char in _LETTERS or char in _ESCAPABLE:
            return re.escape(_LETTERS.get(char, char))
        inside = classes.named(char.lower()) if char.isascii() else None
        if inside is None:
            self.at -= 1
            raise self.error(f"unknown escape \\{char}")
        return _inside(inside, negated=char.isupper())

    def character_class(self) -> str:
        """The class after its `[`: ranges, escapes, and perhaps a subtraction `-[...]`."""
        negated = self.peek() == "^"
        self.at += negated
        parts: list[str] = []
        subtracted = ""
        while self.peek() != "]" or not parts:
            if parts and self.pattern.startswith("-[", self.at):
                self.at += 2
                subtracted = self.character_class()
                if self.peek() != "]":
                    raise self.error("only ] may follow a subtraction")
                break
            parts.append(self.class_item())
        self.at += 1
        whole = f"[{'^' if negated else ''}{''.join(parts)}]"
        return f"(?:(?!{subtracted}){whole})" if subtracted else whole

    def class_item(self) -> str:
        low = self.class_character()
        if self.peek() != "-" or self.pattern[self.at + 1 : self.at + 2] in ("]", "[", ""):
            return low
        self.at += 1
        high = self.class_character()
        if max(len(low.lstrip("\\")), len(high.lstrip("\\"))) > 1:
            raise self.error("a range needs two characters")
        return f"{low}-{high}"

    def class_character(self) -> str:
        char = self.take()
        if char == "\\":
            return self.escaped_set()
        if char in "[]":
            raise self.error(f"unescaped {char} in a character class")
        return re.escape(char)
