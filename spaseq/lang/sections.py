"""Cuts the text of a query into sections that are parsed independently.

The cuts are at keywords and brackets, also in text with errors: an unclosed clause ends where the
next one begins, an unclosed GPM at the next DEFINE. A misspelt keyword opens its section like the
right one; the reader reports the mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from spaseq.errors import Span
from spaseq.lang.scan import Lexeme, closing_brace, nesting
from spaseq.lang.spelling import nearest
from spaseq.records import record

PROLOGUE = ("BASE", "PREFIX", "VERSION")
FORMS = ("SELECT", "CONSTRUCT", "MAINTAIN")
TEMPLATES = ("CONSTRUCT", "DELETE", "INSERT")
"""Keywords before the braces of a template."""
OPENINGS = (*PROLOGUE, "REGISTER", *FORMS, "WITHIN", "PARTITION", "AFTER", "FROM", "WHERE")
_WITHIN_CLAUSES = frozenset(
    """STREAM AS DISTINCT ALL NEXT LAST MAX STRICT MILLISECONDS SECONDS MINUTES HOURS DAYS
    MILLISECOND SECOND MINUTE HOUR DAY EVENTS EVENT TUMBLING BY MATCH NO SKIP CONSUME TO PAST FIRST
    MUTE NAMED GRAPH DELETE INSERT WINDOW RANGE SLIDE SESSION EACH KEY ON""".split()  # noqa: SIM905
)


@record
class Section:
    """A keyword and the text after it.

    `keyword` is the intended keyword, `opening` the written one (None: it is missing). The text
    after the keyword has the offsets [body, end).
    """

    keyword: str
    opening: Lexeme | None
    body: int
    end: int

    @property
    def start(self) -> int:
        """The offset of the keyword, or of the text if the keyword is missing."""
        return self.body if self.opening is None else self.opening.start


@record
class GpmSection:
    """The head of a GPM, and the span of its group graph pattern (None: it has no brace)."""

    head: Section
    pattern: Span | None


@record
class Stray:
    """A lexeme (None: the end of the query) where only `expected` may stand."""

    lexeme: Lexeme | None
    expected: tuple[str, ...]
    after: Section | None = None  # if this section has errors, the lexeme may belong to it


@record
class Layout:
    """The sections of a query, each list in the order of the text."""

    clauses: tuple[Section, ...]
    header_end: int
    sequence: Section | None
    gpms: tuple[GpmSection, ...]
    having: Section | None
    strays: tuple[Stray, ...]


def cut(lexemes: Sequence[Lexeme], length: int) -> Layout:
    """The layout of a query of `length` characters; `lexemes` has no comments."""
    return _Cutter(lexemes, length).layout()


@dataclass
class _Cutter:
    """Indexes refer to `lexemes`; len(lexemes) stands for the end of the text."""

    lexemes: Sequence[Lexeme]
    length: int
    strays: list[Stray] = field(default_factory=list)

    def layout(self) -> Layout:
        seq = self.find_sequence()
        anchors = self.find_gpms(0 if seq is None else seq + 1)
        body = anchors[0] if anchors else len(self.lexemes)
        header = self.header_length(seq, body)
        clauses = self.clauses(header)
        sequence, after, having = None, body, None
        gpms: tuple[GpmSection, ...] = ()
        if seq is not None:
            after = self.sequence_end(seq, body)
            sequence = self.section("SEQ", seq, after)
        if seq == header:  # SEQ stands outside the braces
            after = self.body_brace(after, body, sequence)
        if seq is not None or anchors:
            gpms, after = self.gpms(anchors, after, sequence)
            having = self.tail(after, gpms[-1].head if gpms else sequence)
        return Layout(
            clauses, self.offset(header), sequence, gpms, having, strays=tuple(self.strays)
        )

    # --- keywords and brackets

    def keyword(self, index: int) -> str:
        return self.lexemes[index].keyword if 0 <= index < len(self.lexemes) else ""

    def is_punct(self, index: int, mark: str) -> bool:
        return 0 <= index < len(self.lexemes) and self.lexemes[index].mark == mark

    def offset(self, index: int) -> int:
        return self.lexemes[index].start if index < len(self.lexemes) else self.length

    def section(self, keyword: str, opening: int, end: int) -> Section:
        lexeme = self.lexemes[opening]
        return Section(keyword, lexeme, lexeme.end, self.offset(end))

    def stray(self, index: int, *expected: str, after: Section | None = None) -> None:
        lexeme = self.lexemes[index] if index < len(self.lexemes) else None
        self.strays.append(Stray(lexeme, expected, after))

    def find_sequence(self) -> int | None:
        """SEQ before a bracket, else SEQ anywhere, else a similar word before a bracket."""
        bare = [i for i, lexeme in enumerate(self.lexemes) if lexeme.keyword == "SEQ"]
        exact = [i for i in bare if self.is_punct(i + 1, "(")]
        if bare:
            return (exact or bare)[0]
        words = (i for i, lexeme in enumerate(self.lexemes) if lexeme.keyword)
        called = (i for i in words if self.is_punct(i + 1, "("))
        return next((i for i in called if nearest(self.keyword(i), ["SEQ", "SEQUENCE"])), None)

    def find_gpms(self, start: int) -> list[int]:
        """The positions where GPMs begin: at DEFINE, or at the word before GPM (DEFINE may be
        misspelt).
        """
        anchors: list[int] = []
        head_end = start  # earlier lexemes belong to the heads in `anchors`
        for i in range(start, len(self.lexemes)):
            keyword = self.lexemes[i].keyword
            if i < head_end:
                continue
            if keyword == "DEFINE":
                anchors.append(i)
                head_end = i + 3
            elif keyword == "GPM" and self.keyword(i + 1):
                anchors.append(i - 1 if i > head_end and self.keyword(i - 1) else i)
                head_end = i + 2
        return anchors

    def header_length(self, seq: int | None, body: int) -> int:
        """The end of the header: SEQ, the brace before it, or the begin of the body."""
        if seq is not None:
            if self.keyword(seq - 1) and self.is_punct(seq - 2, "{"):
                self.stray(seq - 1, "SEQ")
                return seq - 2
            return seq - 1 if self.is_punct(seq - 1, "{") else seq
        outer = [i for i, depth in enumerate(nesting(self.lexemes[:body])) if depth == 0]
        braces = (
            i
            for i in outer
            if self.is_punct(i, "{") and self.keyword(i - 1) not in (*TEMPLATES, "KEY")
        )
        return next(braces, body)

    # --- the header

    def clauses(self, end: int) -> tuple[Section, ...]:
        depths = nesting(self.lexemes[:end])
        keywords = {i: self.intended(i) for i in range(end) if depths[i] == 0}
        starts = [i for i, keyword in keywords.items() if keyword]
        if end and starts[:1] != [0]:
            self.stray(0, *OPENINGS)
        return tuple(self.section(keywords[i] or "", i, j) for i, j in pairwise([*starts, end]))

    def intended(self, index: int) -> str | None:
        """The keyword of the clause that the word at `index` opens; None if it opens none."""
        word = self.keyword(index)
        if not word:
            return None
        before = self.keyword(index - 1)
        is_stream_name = before == "STREAM" and self.keyword(index - 2) != "REGISTER"
        is_gpm_name = before in ("FIRST", "LAST") and self.keyword(index - 2) == "TO"
        is_origin = (before, word) == ("TUMBLING", "FROM") and not self.keyword(index + 1)
        # FROM WINDOW: names, and the start of the first window
        is_window_name = before in ("WINDOW", "ON") or self.is_punct(index - 1, ",")
        is_origin |= (self.keyword(index - 3), word) == ("SLIDE", "FROM") and not self.keyword(
            index + 1
        )
        if is_stream_name or is_gpm_name or is_origin or is_window_name:
            return None
        if word in OPENINGS:
            return word
        meant = None if word in _WITHIN_CLAUSES else nearest(word, OPENINGS, at_least=0.7)
        if meant == "FROM" and not nearest(self.keyword(index + 1), ["STREAM", "NAMED", "WINDOW"]):
            return None
        return meant

    # --- the body

    def sequence_end(self, seq: int, limit: int) -> int:
        """The index after the bracket that closes the sequence, or where the sequence must end."""
        depth = 0
        has_bracket = self.is_punct(seq + 1, "(")
        for index in range(seq + 1, limit):
            if self.is_punct(index, "}") and not self.in_quantifier(index - 1):
                return index
            if self.is_punct(index, "{") and not self.in_quantifier(index + 1):
                return index
            depth += self.is_punct(index, "(") - self.is_punct(index, ")")
            if has_bracket and depth == 0:
                return index + 1
        return limit

    def in_quantifier(self, index: int) -> bool:
        """Whether the lexeme beside a brace shows that the brace belongs to `{n,m}`."""
        return index < len(self.lexemes) and (
            self.lexemes[index].kind == "number" or self.lexemes[index].is_punct(",")
        )

    def body_brace(self, index: int, limit: int, sequence: Section | None) -> int:
        """The index after the brace that opens the body."""
        if not self.is_punct(index, "{"):
            self.stray(index, "'{'", after=sequence)
        return next((i + 1 for i in range(index, limit) if self.is_punct(i, "{")), limit)

    def gpms(
        self, anchors: Sequence[int], after: int, sequence: Section | None
    ) -> tuple[tuple[GpmSection, ...], int]:
        """The GPMs, and the index after the last; the first should begin at `after`."""
        gpms: list[GpmSection] = []
        for anchor, limit in pairwise([*anchors, len(self.lexemes)]):
            if after < anchor:
                self.stray(after, "DEFINE", "'}'", after=gpms[-1].head if gpms else sequence)
            gpm, after = self.gpm(anchor, limit)
            gpms.append(gpm)
        return tuple(gpms), after

    def gpm(self, anchor: int, limit: int) -> tuple[GpmSection, int]:
        brace = next((i for i in range(anchor, limit) if self.is_punct(i, "{")), None)
        head_end = limit if brace is None else brace
        if self.keyword(anchor) == "GPM":
            start = self.offset(anchor)
            head = Section("DEFINE", None, start, self.offset(head_end))
        else:
            head = self.section("DEFINE", anchor, head_end)
        if brace is None:
            return GpmSection(head, None), limit
        closing = closing_brace(self.lexemes, brace, limit)
        end = self.offset(limit) if closing is None else self.lexemes[closing].end
        after = limit if closing is None else closing + 1
        return GpmSection(head, Span(self.offset(brace), end)), after

    def tail(self, index: int, before: Section | None) -> Section | None:
        """HAVING, if it follows the closing brace after the last GPM (`before`)."""
        rest = range(index, len(self.lexemes))
        if self.is_punct(index, "}"):
            index += 1
        else:
            self.stray(index, "DEFINE", "'}'", after=before)
            index = next((i for i in rest if self.keyword(i) == "HAVING"), len(self.lexemes))
        if index == len(self.lexemes):
            return None
        if nearest(self.keyword(index), ["HAVING"]):
            return self.section("HAVING", index, len(self.lexemes))
        self.stray(index, "HAVING", "the end of the query")
        return None
