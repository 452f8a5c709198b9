"""The query with its clauses."""

from __future__ import annotations

from typing import Literal as L

from spaseq.lang.ast.expression_nodes import Expr
from spaseq.lang.ast.pattern_nodes import GroupGraphPattern, SelectItem, Triple
from spaseq.lang.ast.sequence_nodes import Ref, Sequence, TimeSpan
from spaseq.lang.ast.term_nodes import Iri, Node, Var
from spaseq.records import record


@record
class Prefix(Node):
    """`PREFIX prefix: <iri>`"""

    prefix: str  # without the colon; "" for the empty prefix
    iri: str


@record
class Prologue(Node):
    """BASE and the PREFIX declarations."""

    base: str | None = None
    prefixes: tuple[Prefix, ...] = ()


@record
class Select(Node):
    """The SELECT clause."""

    items: tuple[SelectItem, ...] | None  # None: *
    distinct: bool = False
    strategy: L["ALL", "NEXT", "LAST", "MAX", "STRICT"] = "ALL"


@record
class Construct(Node):
    """The CONSTRUCT clause."""

    template: tuple[Triple, ...]


@record
class TimeWindow(Node):
    """`WITHIN 5 MINUTES`, sliding or tumbling."""

    length: TimeSpan
    tumbling: bool = False
    origin: str | None = None  # the dateTime after FROM, as written


@record
class CountWindow(Node):
    """`WITHIN n EVENTS`."""

    events: int


@record
class Skip(Node):
    """The AFTER MATCH clause; `gpm` is the name in SKIP TO FIRST and SKIP TO LAST."""

    kind: L[
        "NO SKIP",
        "CONSUME",
        "TO NEXT EVENT",
        "PAST LAST EVENT",
        "TO FIRST",
        "TO LAST",
    ]
    gpm: Ref | None = None


@record
class FromStream(Node):
    """`FROM STREAM name iri`"""

    name: str
    iri: Iri


@record
class FromKb(Node):
    """`FROM NAMED iri`"""

    iri: Iri


@record
class Gpm(Node):
    """`DEFINE GPM name ON streams pattern`"""

    name: str
    streams: tuple[Ref, ...]
    pattern: GroupGraphPattern


@record
class Query(Node):
    """A query."""

    prologue: Prologue
    form: Select | Construct
    sequence: Sequence
    gpms: tuple[Gpm, ...]
    streams: tuple[FromStream, ...]
    kbs: tuple[FromKb, ...] = ()
    register: Iri | None = None
    window: TimeWindow | CountWindow | None = None
    partition: tuple[Var, ...] = ()
    skip: Skip | None = None
    having: Expr | None = None
