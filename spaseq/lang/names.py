"""Resolves the names of a query: prefixed names, relative IRIs, blank nodes.

See SPARQL 1.1 sections 4.1 and 19.6. Undeclared `xsd:`, `rdf:` and `rdfs:` are accepted with a
warning. Blank nodes get the labels `b0`, `b1`, ... in the order of the text, so queries that differ
only in their labels have equal trees.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from spaseq.errors import Span
from spaseq.lang import ast
from spaseq.lang.findings import Findings
from spaseq.lang.iris import is_absolute, resolve
from spaseq.lang.spelling import suggested
from spaseq.lang.variables import rewritten
from spaseq.rdf.geosparql import AGGREGATE_IRIS, GEO, GEOF
from spaseq.records import record

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
REIFIES = RDF + "reifies"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"


@record
class PrefixedName(ast.Node):
    """`prefix:local`, the local name without escapes."""

    prefix: str
    local: str


WrittenIri: TypeAlias = ast.Iri | PrefixedName


@record
class TypedLiteral(ast.Node):
    """`"lexical"^^datatype`."""

    lexical: str
    datatype: WrittenIri


@record
class VersionClause(ast.Node):
    """`VERSION "1.2"`."""

    version: str


@record
class BaseClause(ast.Node):
    """`BASE <iri>`."""

    iri: ast.Iri


@record
class PrefixClause(ast.Node):
    """`PREFIX prefix: <iri>`."""

    prefix: str
    iri: ast.Iri


NodeT = TypeVar("NodeT", bound=ast.Node)

ASSUMED = {"xsd": XSD, "rdf": RDF, "rdfs": RDFS}
WELL_KNOWN = {
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "schema": "http://schema.org/",
    "dcterms": "http://purl.org/dc/terms/",
    "geo": GEO,
    "geof": GEOF,
    "uom": "http://www.opengis.net/def/uom/OGC/1.0/",
    "wgs84": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "cdt": "http://w3id.org/awslabs/neptune/SPARQL-CDTs/",
}
"""Namespaces that a message names, so that the PREFIX line can be copied."""
VERSIONS = ("1.1", "1.2-basic", "1.2")
"""The versions of SPARQL that VERSION may name. Every query is read as one of the last."""
_WITH_NAMES = frozenset(
    {
        PrefixedName,
        ast.Iri,
        TypedLiteral,
        ast.FunctionCall,
        ast.BlankNode,
        ast.TimeWindow,
        ast.Panes,
    }
)
"""The classes of nodes that change when names are resolved."""
_TIMES = (None, XSD + "dateTime", XSD + "dateTimeStamp")


@dataclass
class NameResolver:
    """The names of one query.

    `unreadable` holds the prefixes whose declaration has an error, and `labels` the new labels of
    the tree that is being resolved.
    """

    findings: Findings
    unreadable: frozenset[str] = frozenset()
    base: str | None = None
    prefixes: dict[str, str] = field(default_factory=dict)
    blank_nodes: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    version: str | None = None

    def declare(self, clauses: Iterable[BaseClause | PrefixClause | VersionClause]) -> None:
        """Add the clauses of the prologue, in the order of the text."""
        for clause in clauses:
            if isinstance(clause, VersionClause):
                self._declare_version(clause)
                continue
            iri = self._absolute(clause.iri).value
            if isinstance(clause, PrefixClause):
                self.prefixes[clause.prefix] = iri
            elif is_absolute(iri):
                self.base = iri

    def _declare_version(self, clause: VersionClause) -> None:
        self.version = clause.version
        if self.version not in VERSIONS:
            known = ", ".join(VERSIONS)
            self.findings.warning(
                f'version "{self.version}" is not known; known are {known}',
                clause.span,
                code="unknown-version",
            )

    def prologue(self, span: Span) -> ast.Prologue:
        """The prologue, with the assumed prefixes."""
        prefixes = tuple(ast.Prefix(*item) for item in self.prefixes.items())
        return ast.Prologue(self.base, prefixes, self.version, span=span)

    def resolved(self, tree: NodeT) -> NodeT:
        """`tree` with every name resolved; labels of blank nodes are local to the tree."""
        self.labels = {}
        return rewritten(tree, self._look_up)

    def _look_up(self, node: ast.Node) -> ast.Node | None:
        if type(node) not in _WITH_NAMES:
            return None
        match node:
            case PrefixedName() | ast.Iri():
                return self._iri(node)
            case TypedLiteral():
                return self._literal(node)
            case ast.FunctionCall(name, (operand,), distinct) if self._is_aggregate(name):
                iri = self._iri(name).value
                inner = rewritten(operand, self._look_up)
                return ast.Aggregate(iri, inner, distinct, span=node.span)
            case ast.BlankNode(label):
                return ast.BlankNode(self._label(label), span=node.span)
            case ast.TimeWindow():
                origin = self._origin("TUMBLING", node.origin)
                return ast.TimeWindow(node.length, node.tumbling, origin, span=node.span)
            case ast.Panes():
                origin = self._origin("SLIDE", node.origin)
                return ast.Panes(node.length, node.slide, origin, span=node.span)
        return None

    def _iri(self, written: WrittenIri) -> ast.Iri:
        if isinstance(written, ast.Iri):
            return self._absolute(written)
        namespace = self.prefixes.get(written.prefix)
        if namespace is None:
            namespace = self._undeclared(written)
        return ast.Iri(namespace + written.local, span=written.span)

    def _is_aggregate(self, written: WrittenIri) -> bool:
        """Whether a call by this name is one of a set function of places."""
        if isinstance(written, PrefixedName):
            return self.prefixes.get(written.prefix, "") + written.local in AGGREGATE_IRIS
        return written.value in AGGREGATE_IRIS

    def _undeclared(self, name: PrefixedName) -> str:
        prefix = name.prefix
        if prefix in self.unreadable:
            return f"{prefix}:"
        if prefix in ASSUMED:
            self.findings.warning(
                f"prefix {prefix}: is not declared; add PREFIX {prefix}: <{ASSUMED[prefix]}>, "
                "which is assumed",
                name.span,
                code="assumed-prefix",
            )
            return self.prefixes.setdefault(prefix, ASSUMED[prefix])
        near = suggested(prefix, self.prefixes)
        namespace = WELL_KNOWN.get(prefix, "http://...")
        self.findings.error(
            f"prefix {prefix}: is not declared; add PREFIX {prefix}: <{namespace}> at the top",
            Span(name.span.start, name.span.start + len(prefix) + 1),
            code="undeclared-prefix",
            suggestion=None if near is None else f"{near}:",
        )
        return f"{prefix}:"

    def _absolute(self, iri: ast.Iri) -> ast.Iri:
        if is_absolute(iri.value):
            return iri
        if self.base is not None:
            return ast.Iri(resolve(iri.value, self.base), span=iri.span)
        self.findings.warning(
            "a relative IRI without BASE stays as it is written", iri.span, code="relative-iri"
        )
        return iri

    def _literal(self, written: TypedLiteral) -> ast.Literal:
        datatype = self._iri(written.datatype).value
        is_string = datatype == XSD + "string"
        return ast.Literal(written.lexical, None if is_string else datatype, span=written.span)

    def _label(self, written: str) -> str:
        if written not in self.labels:
            self.labels[written] = f"b{self.blank_nodes}"
            self.blank_nodes += 1
        return self.labels[written]

    def _origin(self, clause: str, origin: Any) -> str | None:
        """The text of a start; the grammar puts the node of a literal there."""
        if isinstance(origin, TypedLiteral):
            origin = self._literal(origin)
        if not isinstance(origin, ast.Literal):
            text: str | None = origin
            return text
        if origin.datatype not in _TIMES or origin.language:
            self.findings.error(
                f"{clause} FROM takes an xsd:dateTime", origin.span, expected=("a dateTime",)
            )
        return origin.lexical
