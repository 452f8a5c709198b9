"""Recognises queries whose texts differ in constants only, without parsing them.

A `TextTemplate` is made from one parsed query. It is a regular expression of the query's text, with
a group in place of each constant that another query may replace. A group takes constants of the
form that the query itself has there, such as whole numbers or the local parts of prefixed names
with one prefix. A text that fits has the same tokens up to these constants, and so the same syntax
tree. Forms are narrow: a text that could have an error, a warning or another meaning does not fit,
and is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from spaseq.errors import NOWHERE
from spaseq.lang import ast
from spaseq.lang.format import format_query
from spaseq.lang.format_triples import TermText
from spaseq.lang.names import RDF
from spaseq.lang.shapes import Constant
from spaseq.lang.variables import rewritten, walk
from spaseq.rdf.terms.term import literal_text
from spaseq.records import record

_CONSTANT = re.compile(
    r"""<[^<>"{}|^`\\\s]*>|"[^"\n]*"|'[^'\n]*'|(?<=:)\w[\w-]*|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"""
)
_CUT = "\0"
"""Stands for a constant in an outline, and around the number of one in a canonical text."""

_SLOT = re.compile(f"<{_CUT}([0-9]+){_CUT}>")

_NUMBERS = (
    r"[0-9]{1,15}",
    r"[0-9]{0,9}\.[0-9]{1,6}",
    r"[0-9]{1,9}\.?[0-9]{0,6}[eE][+-]?[0-9]{1,2}",
)
_TEXT = r"(?![-+.0-9])[^{quote}\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]+"
_IRI = r"[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9/#?_.~%:=&+,;@!$*()-]*"
_LOCAL = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
_SIGN = re.compile(r"[+-]\s*")


@lru_cache(maxsize=1)  # a query that fits no template comes here twice
def outline(text: str) -> str:
    """The text without possible constants: texts of one template have equal outlines.

    >>> outline("FILTER (?v > 5)") == outline("FILTER (?v > 17)")
    True
    """
    return _CONSTANT.sub(_CUT, text)


@record
class _Form:
    """How a constant is written: `start` and `end` stay, and a text that fits `middle` varies.

    The constant is `like` with `before` and such a text as its IRI or lexical form.
    """

    start: str
    middle: str
    end: str
    like: Constant
    before: str

    def made(self, varies: str) -> Constant:
        """The constant for a text."""
        if isinstance(self.like, ast.Iri):
            return ast.Iri(self.before + varies)
        return ast.Literal(self.before + varies, self.like.datatype, self.like.language)

    def term(self, varies: str) -> str:
        """The canonical N-Triples text of that constant. No IRI or number needs an escape."""
        if isinstance(self.like, ast.Iri):
            return f"<{self.before}{varies}>"
        datatype = self.like.datatype
        if datatype is None:
            return literal_text(varies, language=self.like.language)
        return f'"{self.before}{varies}"^^<{datatype}>'


@record
class TextTemplate:
    """The texts of queries that differ from one in constants, and these constants.

    `slots` has the group of each constant of the shape; -1 for a common one. `pattern` says which
    groups have equal constants. No group has one of `others`. The groups of a text are kept as one
    string, from which everything else is computed.
    """

    expression: re.Pattern[str]
    forms: tuple[_Form, ...]
    slots: tuple[int, ...]
    own: tuple[Constant, ...]
    own_terms: tuple[str, ...]
    pattern: tuple[int, ...]
    others: frozenset[Constant]
    written: tuple[str, ...]  # the text before, between and after the groups
    pieces: tuple[str, ...]  # the canonical text, with the number of a group at each odd place
    terms: TermText

    @classmethod
    def of(
        cls, text: str, query: ast.Query, constants: Sequence[Constant], terms: Sequence[str]
    ) -> TextTemplate | None:
        """The template of a query without findings; None if none of its constants may vary.

        Args:
            text: the query's text.
            query: the query, with the spans of this text.
            constants: the constants of the query's shape, with their spans.
            terms: their canonical N-Triples texts.
        """
        if "\\" in text or _CUT in text:
            return None
        spans = sorted({(c.span.start, c.span.end) for c in constants if c.span != NOWHERE})
        of_span = {(c.span.start, c.span.end): c for c in constants}
        forms = {s: f for s in spans if (f := _form(text[slice(*s)], of_span[s])) is not None}
        if not forms:
            return None
        places = {span: number for number, span in enumerate(forms)}
        varying = [of_span[span] for span in forms]
        written = _written(text, forms)
        template = cls(
            re.compile(_expression(written, forms.values())),
            tuple(forms.values()),
            tuple(places.get((c.span.start, c.span.end), -1) for c in constants),
            tuple(constants),
            tuple(terms),
            _pattern(varying),
            frozenset(_others(query, places)),
            written,
            _pieces(query, places, _pattern(varying)),
            TermText(query.prologue),
        )
        given = template.given(text)
        if given is None or template.constants(given) != template.own:
            return None
        if template.constant_texts(given) != template.own_terms:
            return None
        return template if template.canonical(given) == format_query(query) else None

    def given(self, text: str) -> str | None:
        """The groups of a text, as one string; None if it does not fit."""
        match = self.expression.fullmatch(text)
        if match is None:
            return None
        varying = self._made(match.groups())
        if _pattern(varying) != self.pattern or not self.others.isdisjoint(varying):
            return None
        return _CUT.join(match.groups())

    def text(self, given: str) -> str:
        """The text that has this in its groups."""
        parts = chain.from_iterable(zip(self.written, given.split(_CUT), strict=False))
        return "".join([*parts, self.written[-1]])

    def constants(self, given: str) -> tuple[Constant, ...]:
        """The constants of the shape of the text that has this in its groups."""
        varying = self._made(given.split(_CUT))
        pairs = zip(self.slots, self.own, strict=True)
        return tuple([fixed if slot < 0 else varying[slot] for slot, fixed in pairs])

    def constant_texts(self, given: str) -> tuple[str, ...]:
        """The canonical N-Triples texts of these constants."""
        texts: list[str] = []
        for number, varies in enumerate(given.split(_CUT)):
            first = self.pattern[number]  # equal texts are one object
            texts.append(texts[first] if first < number else self.forms[number].term(varies))
        pairs = zip(self.slots, self.own_terms, strict=True)
        return tuple([fixed if slot < 0 else texts[slot] for slot, fixed in pairs])

    def _made(self, groups: Iterable[str]) -> list[Constant]:
        """The constants of the groups."""
        return [form.made(given) for form, given in zip(self.forms, groups, strict=True)]

    def canonical(self, given: str) -> str:
        """The canonical text of the query that has this in its groups."""
        known = self._made(given.split(_CUT))
        pieces = [*self.pieces]
        for place in range(1, len(pieces), 2):
            pieces[place] = self.terms.term(known[int(pieces[place])])
        return "".join(pieces)


def _expression(written: Sequence[str], forms: Iterable[_Form]) -> str:
    """The regular expression of the texts with these parts before, between and after constants."""
    groups = (f"({form.middle})" for form in forms)
    parts = chain.from_iterable(zip(map(re.escape, written), groups, strict=False))
    return "".join([*parts, re.escape(written[-1])])


def _written(text: str, forms: dict[tuple[int, int], _Form]) -> tuple[str, ...]:
    """The parts of a text before, between and after the variable parts of some constants."""
    parts, copied = list[str](), 0
    for (begin, end), form in forms.items():
        parts.append(text[copied:begin] + form.start)
        copied = end - len(form.end)
    return (*parts, text[copied:])


def _pattern(constants: Sequence[Constant]) -> tuple[int, ...]:
    """For each constant the number of the first that equals it."""
    seen: dict[Constant, int] = {}
    return tuple([seen.setdefault(c, number) for number, c in enumerate(constants)])


def _others(query: ast.Query, places: dict[tuple[int, int], int]) -> Iterator[Constant]:
    """The constants of a query that all queries of the template have, and the end of RDF lists."""
    yield ast.Iri(f"{RDF}nil")
    constants = (node for node in walk(query) if isinstance(node, ast.Iri | ast.Literal))
    for constant in constants:
        if (constant.span.start, constant.span.end) not in places:
            yield constant


def _pieces(
    query: ast.Query, places: dict[tuple[int, int], int], pattern: Sequence[int]
) -> tuple[str, ...]:
    """The canonical text of a query in pieces, with numbers of groups between them."""

    def marked(node: ast.Node) -> ast.Node | None:
        if isinstance(node, ast.Iri | ast.Literal):
            number = places.get((node.span.start, node.span.end))
            if number is not None:
                return ast.Iri(f"{_CUT}{pattern[number]}{_CUT}", span=node.span)
        return None

    return tuple(_SLOT.split(format_query(rewritten(query, marked))))


def _form(text: str, constant: Constant) -> _Form | None:
    """The form of a constant, given its text; None if it has no form that may vary."""
    for form in _forms(text, constant):
        varies = text[len(form.start) : len(text) - len(form.end)]
        if re.fullmatch(form.middle, varies) and form.made(varies) == constant:
            return form
    return None


def _forms(text: str, constant: Constant) -> Iterator[_Form]:
    """The forms that a constant may have."""
    if isinstance(constant, ast.Iri):
        yield _Form("<", _IRI, ">", constant, "")
        prefix, colon, local = text.partition(":")
        if colon and constant.value.endswith(local):
            namespace = constant.value[: len(constant.value) - len(local)]
            yield _Form(prefix + colon, _LOCAL, "", constant, namespace)
        return
    if text[:1] not in "\"'":
        sign = _SIGN.match(text)
        written = "" if sign is None else sign.group()
        for middle in _NUMBERS:
            yield _Form(written, middle, "", constant, written.strip())
        return
    quote = text[0]
    end = text.rfind(quote)
    if text[:3] == 3 * quote or end < 2:
        return
    # A number in quotes may be an error, so other texts of the same datatype do not fit.
    middles = _NUMBERS if constant.datatype else (_TEXT.replace("{quote}", quote),)
    for middle in middles:
        yield _Form(quote, middle, text[end:], constant, "")
