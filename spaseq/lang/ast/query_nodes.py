"""The query with its clauses."""

from __future__ import annotations

from typing import Literal as L
from typing import TypeAlias

from spaseq.lang.ast.pattern_nodes import (
    Expr,
    GroupGraphPattern,
    Ref,
    SelectItem,
    Sequence,
    TimeSpan,
    Triple,
)
from spaseq.lang.ast.term_nodes import Iri, Node, Var
from spaseq.records import record


@record
class Prefix(Node):
    """`PREFIX prefix: <iri>`"""

    prefix: str  # without the colon; "" for the empty prefix
    iri: str


@record
class Prologue(Node):
    """VERSION, BASE and the PREFIX declarations."""

    base: str | None = None
    prefixes: tuple[Prefix, ...] = ()
    version: str | None = None  # the last one


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
class Maintain(Node):
    """The MAINTAIN clause: the changes that each answer makes to a graph of the knowledge base.

    `deleted` are triple patterns: a variable that the answer does not bind, or a blank node, is a
    wildcard. `inserted` is a template, as in CONSTRUCT.
    """

    graph: Iri
    deleted: tuple[Triple, ...] = ()
    inserted: tuple[Triple, ...] = ()


Form: TypeAlias = Select | Construct | Maintain
"""The form of an answer."""


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
    """The AFTER MATCH clause; `gpm` is the name in SKIP TO FIRST and SKIP TO LAST.

    `mute` is the time after an answer in which further ones are dropped.
    """

    kind: L["NO SKIP", "CONSUME", "TO NEXT EVENT", "PAST LAST EVENT", "TO FIRST", "TO LAST"]
    gpm: Ref | None = None
    mute: TimeSpan | None = None


@record
class FromStream(Node):
    """`FROM STREAM name iri`"""

    name: str
    iri: Iri


@record
class EachEvent(Node):
    """`RANGE 5 MINUTES EACH EVENT`, or a number of events: a window that ends with each event."""

    length: TimeSpan | int


@record
class Session(Node):
    """`SESSION 5 MINUTES`: events that are less than the gap apart."""

    gap: TimeSpan


@record
class Panes(Node):
    """`RANGE 5 MINUTES SLIDE 1 MINUTES`: windows that close at regular times.

    Without `slide` they tumble. `origin` is the dateTime after FROM, as written.
    """

    length: TimeSpan
    slide: TimeSpan | None = None
    origin: str | None = None


@record
class FromWindow(Node):
    """`FROM WINDOW name ON streams extent KEY { pattern }`"""

    name: str
    streams: tuple[Ref, ...]
    extent: Panes | EachEvent | Session
    key: GroupGraphPattern | None = None


@record
class FromKb(Node):
    """`FROM NAMED iri`"""

    iri: Iri


@record
class GpmSource(Ref):
    """The source of a GPM: a stream, a window, or the changes of a window."""

    change: L["NEW", "GONE"] | None = None


@record
class Gpm(Node):
    """`DEFINE GPM name ON sources pattern`"""

    name: str
    streams: tuple[GpmSource, ...]
    pattern: GroupGraphPattern


@record
class Query(Node):
    """A query."""

    prologue: Prologue
    form: Form
    sequence: Sequence
    gpms: tuple[Gpm, ...]
    streams: tuple[FromStream, ...]
    kbs: tuple[FromKb, ...] = ()
    register: Iri | None = None
    window: TimeWindow | CountWindow | None = None
    partition: tuple[Var, ...] = ()
    skip: Skip | None = None
    having: Expr | None = None
    windows: tuple[FromWindow, ...] = ()
