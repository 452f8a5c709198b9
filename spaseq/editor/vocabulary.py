"""The classes, properties and labels of knowledge bases, ontologies and streams."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from spaseq.kb.quads import OxigraphStore, QuadSource, sources_at, texts_of
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.inputs.files import InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.terms.term import OWL, RDF, RDFS, split_literal

TermKind: TypeAlias = Literal["class", "property"]
Texts: TypeAlias = tuple[str, str, str]

MOST_TRIPLES = 3_000_000
"""After this number of triples a source is read no further."""

MOST_STREAM_TRIPLES = 100_000
"""Number of triples of a stream that are read for classes and properties."""

MOST_LABELS = 500_000

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_TYPE, _SUBCLASS = f"<{RDF}type>", f"<{RDFS}subClassOf>"
_SUBPROPERTY, _DOMAIN, _RANGE = (f"<{RDFS}{n}>" for n in ("subPropertyOf", "domain", "range"))
_CLASSES = frozenset({f"<{RDFS}Class>", f"<{OWL}Class>"})
_PROPERTIES = frozenset(
    {f"<{RDF}Property>"}
    | {f"<{OWL}{kind}Property>" for kind in ("Object", "Datatype", "Annotation")}
)
_LABELS = frozenset({f"<{RDFS}label>", f"<{_SKOS}prefLabel>"})
_COMMENTS = frozenset({f"<{RDFS}comment>", f"<{_SKOS}definition>"})
_LINE = re.compile(
    rb'[ \t]*(<[^<>]*>|_:[^ \t]+)[ \t]*(<[^<>]*>)[ \t]*(<[^<>]*>|"(?:[^"\\]|\\.)*"(?:@[\w-]+)?)'
)


@dataclass
class Vocabulary:
    """The classes, properties and labels in sources. Labels in English, or without a language, come
    first.
    """

    classes: set[str] = field(default_factory=set)
    properties: set[str] = field(default_factory=set)
    labels: dict[str, str] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    _preferred: set[tuple[str, str]] = field(default_factory=set)

    def add(self, triples: Iterable[Texts]) -> None:
        """Add the contents of triples, as N-Triples texts."""
        for s, p, o in triples:
            self._use(self.properties, p)
            if p in _LABELS:
                self._say(self.labels, s, o, "label")
            elif p in _COMMENTS:
                self._say(self.comments, s, o, "comment")
            elif p == _TYPE:
                self._use(self.classes, o)
                if o in _CLASSES:
                    self._use(self.classes, s)
                elif o in _PROPERTIES:
                    self._use(self.properties, s)
            elif p == _SUBCLASS:
                self._use(self.classes, s, o)
            elif p == _SUBPROPERTY:
                self._use(self.properties, s, o)
            elif p in (_DOMAIN, _RANGE):
                self._use(self.properties, s)
                self._use(self.classes, o)

    def kind(self, iri: str) -> TermKind | None:
        """Whether an IRI is a class or a property; None if it is neither."""
        if iri in self.classes:
            return "class"
        return "property" if iri in self.properties else None

    def _use(self, names: set[str], *texts: str) -> None:
        names.update(text[1:-1] for text in texts if text.startswith("<") and text[1] != "<")

    def _say(self, said: dict[str, str], s: str, o: str, what: str) -> None:
        if not s.startswith("<") or not o.startswith('"') or len(said) >= MOST_LABELS:
            return
        lexical, _, language = split_literal(o)
        preferred = language is None or language.lower().split("-")[0] == "en"
        iri = s[1:-1]
        if iri not in said or (preferred and (what, iri) not in self._preferred):
            said[iri] = lexical
        if preferred:
            self._preferred.add((what, iri))


def add_source(vocabulary: Vocabulary, path: str, most: int = MOST_TRIPLES) -> None:
    """Add the first triples of the files or of the store at a path.

    Raises:
        InputError: it cannot be read.
    """
    for source in sources_at(path):
        vocabulary.add(islice(_triples(source), most))


def _triples(source: QuadSource) -> Iterator[Texts]:
    match source:
        case InputFile(format=Format.NQUADS | Format.NTRIPLES):
            yield from _line_triples(source)
        case OxigraphStore():
            yield from texts_of(source, None)
        case _:
            yield from texts_of(source, Path(source.path).absolute().as_uri())


def _line_triples(file: InputFile) -> Iterator[Texts]:
    """The triples of lines. No kernel reads them, so an editor waits for no compiler."""
    with file.open(DEFAULT_LIMITS) as data:
        while line := data.readline(DEFAULT_LIMITS.line_bytes):
            match = _LINE.match(line)
            if match is not None:
                s, p, o = (part.decode("utf-8", "replace") for part in match.groups())
                yield s, p, o


def loaded(sources: Mapping[str, int], failed: Callable[[str, Exception], None]) -> Vocabulary:
    """The vocabulary of sources: each path with the number of triples that are read of it.

    `failed` is called for each source that cannot be read; the others still count.
    """
    vocabulary = Vocabulary()
    for path, most in sources.items():
        try:
            add_source(vocabulary, path, most)
        except Exception as error:  # a file of any content; the editor continues without it
            failed(path, error)
    return vocabulary
