"""The parts of an RSP-QL or C-SPARQL query that SPARQL does not have."""

from __future__ import annotations

from typing import Literal as L

from spaseq.lang import ast
from spaseq.lang.names import WrittenIri
from spaseq.records import record


@record
class Length(ast.Node):
    """A duration, in milliseconds."""

    ms: int


@record
class WindowExtent(ast.Node):
    """What stands in the brackets of a window; `strange` says what has no counterpart here."""

    length_ms: int = 0
    slide_ms: int = 0
    each_event: int = 0  # ELEMENTS n STEP 1: the number of events
    strange: str | None = None


@record
class StreamWindow(ast.Node):
    """`FROM NAMED WINDOW name ON stream [...]`; in C-SPARQL, whose windows have no names, None."""

    name: ast.Iri | None
    stream: ast.Iri
    extent: WindowExtent


@record
class StoredGraph(ast.Node):
    """`FROM iri` or `FROM NAMED iri`."""

    iri: ast.Iri
    named: bool


@record
class Register(ast.Node):
    """`REGISTER RSTREAM iri AS`; C-SPARQL's names need be no IRIs."""

    operator: str  # RSTREAM, ISTREAM, DSTREAM, STREAM or QUERY
    iri: WrittenIri | None
    name: str | None = None


@record
class AnswerForm(ast.Node):
    """What a query gives; `operator` is the one behind SELECT or CONSTRUCT, in older drafts."""

    kind: L["SELECT", "CONSTRUCT", "ASK"]
    operator: str | None
    template: tuple[ast.Triple, ...] = ()


@record
class RspQuery(ast.Node):
    """A query with its names resolved.

    `select` has what SPARQL has: the projection, the pattern and the solution modifiers. Its WINDOW
    blocks stand there as GRAPH, at the offsets `blocks`.
    """

    prologue: ast.Prologue
    register: Register | None
    form: AnswerForm
    windows: tuple[StreamWindow, ...]
    graphs: tuple[StoredGraph, ...]
    select: ast.SubSelect
    blocks: frozenset[int]
    notes: tuple[str, ...] = ()

    @property
    def operator(self) -> str:
        """RSTREAM, ISTREAM or DSTREAM."""
        said = [self.form.operator, self.register and self.register.operator]
        return next((o for o in said if o in ("ISTREAM", "DSTREAM")), "RSTREAM")

    @property
    def merges(self) -> bool:
        """Whether all streams and stored graphs are one graph, as in C-SPARQL."""
        return any(window.name is None for window in self.windows)
