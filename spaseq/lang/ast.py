"""The abstract syntax tree of a SPAseq query (LANGUAGE section 2).

Nodes are frozen dataclasses; every node carries the span of its text, which takes no part in
equality, so a query and its canonical text parse to equal trees. Prefixed names are already
resolved to IRIs; `Prologue` keeps the prefixes so that the formatter can write them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as L
from typing import TypeAlias

from spaseq.errors import NOWHERE, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    span: Span = field(default=NOWHERE, compare=False, repr=False)


# --- terms -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Var(Node):
    name: str  # without ? or $


@dataclass(frozen=True, slots=True)
class Iri(Node):
    value: str  # absolute, without angle brackets


@dataclass(frozen=True, slots=True)
class Literal(Node):
    lexical: str
    datatype: str | None = None  # None: xsd:string, or rdf:langString when language is given
    language: str | None = None  # lower case


@dataclass(frozen=True, slots=True)
class BlankNode(Node):
    label: str  # unique per written label or per [] within the query


Term: TypeAlias = Var | Iri | Literal | BlankNode


# --- expressions (SPARQL 1.1 section 17, and SPAseq's own) -------------------------------------


@dataclass(frozen=True, slots=True)
class Or(Node):
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class And(Node):
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    operand: Expr


@dataclass(frozen=True, slots=True)
class Compare(Node):
    op: L["=", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    op: L["+", "-", "*", "/"]
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Sign(Node):
    op: L["+", "-"]
    operand: Expr


@dataclass(frozen=True, slots=True)
class In(Node):
    operand: Expr
    options: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A built-in call; `function` is its upper-case SPARQL name (`STR`, `BOUND`, `IF`, ...)."""

    function: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall(Node):
    """A call by IRI: a cast (`xsd:integer(?x)`) or an extension function."""

    function: Iri
    args: tuple[Expr, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Exists(Node):
    pattern: GroupGraphPattern
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """COUNT SUM AVG MIN MAX GROUP_CONCAT SAMPLE, and SPAseq's FIRST LAST LIST over a group
    variable; `operand` None is COUNT(*)."""

    function: str
    operand: Expr | None
    distinct: bool = False
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class Prev(Node):
    var: Var


@dataclass(frozen=True, slots=True)
class Timestamp(Node):
    gpm: Ref


Expr: TypeAlias = (
    Var
    | Iri
    | Literal
    | Or
    | And
    | Not
    | Compare
    | Arithmetic
    | Sign
    | In
    | Call
    | FunctionCall
    | Exists
    | Aggregate
    | Prev
    | Timestamp
)


# --- property paths (SPARQL 1.1 section 9) -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class PathSequence(Node):
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathAlternative(Node):
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PathInverse(Node):
    path: Path


@dataclass(frozen=True, slots=True)
class PathFromNode(Node):
    """`path` from IRIs and blank nodes only: a property that an ontology's inverses entail.

    No text says this; it is part of patterns that have been rewritten (`algebra.entailment`).
    """

    path: Path


@dataclass(frozen=True, slots=True)
class PathRepeat(Node):
    path: Path
    modifier: L["*", "+", "?"]


@dataclass(frozen=True, slots=True)
class PathNegated(Node):
    forward: tuple[Iri, ...]
    inverse: tuple[Iri, ...]


Path: TypeAlias = (
    Iri | PathSequence | PathAlternative | PathInverse | PathFromNode | PathRepeat | PathNegated
)


# --- group graph patterns ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Triple(Node):
    subject: Term
    predicate: Var | Path
    object: Term


@dataclass(frozen=True, slots=True)
class Triples(Node):
    triples: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class Filter(Node):
    expr: Expr


@dataclass(frozen=True, slots=True)
class OptionalGraphPattern(Node):
    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class GroupOrUnionGraphPattern(Node):
    alternatives: tuple[
        GroupGraphPattern, ...
    ]  # a lone nested group is a Group, not a Union of one


@dataclass(frozen=True, slots=True)
class MinusGraphPattern(Node):
    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class GraphGraphPattern(Node):
    name: Var | Iri
    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class ServiceGraphPattern(Node):
    name: Var | Iri
    pattern: GroupGraphPattern
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Bind(Node):
    expr: Expr
    var: Var


@dataclass(frozen=True, slots=True)
class Values(Node):
    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]  # None: UNDEF


@dataclass(frozen=True, slots=True)
class OrderCondition(Node):
    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class SubSelect(Node):
    items: tuple[SelectItem, ...] | None  # None: *
    pattern: GroupGraphPattern
    distinct: bool = False
    reduced: bool = False
    group_by: tuple[SelectItem, ...] = ()  # an expression without AS has var None
    having: tuple[Expr, ...] = ()
    order_by: tuple[OrderCondition, ...] = ()
    limit: int | None = None
    offset: int | None = None
    values: Values | None = None


@dataclass(frozen=True, slots=True)
class GroupGraphPattern(Node):
    elements: tuple[Element, ...]


Element: TypeAlias = (
    Triples
    | Filter
    | OptionalGraphPattern
    | GroupOrUnionGraphPattern
    | MinusGraphPattern
    | GraphGraphPattern
    | ServiceGraphPattern
    | Bind
    | Values
    | SubSelect
    | GroupGraphPattern
)


# --- sequences ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """A name that refers to a GPM or a stream."""

    name: str


@dataclass(frozen=True, slots=True)
class TimeSpan(Node):
    amount: int
    unit: L["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]

    @property
    def ms(self) -> int:
        """The duration in milliseconds."""
        scale = {
            "MILLISECONDS": 1,
            "SECONDS": 1000,
            "MINUTES": 60_000,
            "HOURS": 3_600_000,
            "DAYS": 86_400_000,
        }
        return self.amount * scale[self.unit]


@dataclass(frozen=True, slots=True)
class Op(Node):
    kind: L[",", ";", ":"]
    gap: TimeSpan | None = None


@dataclass(frozen=True, slots=True)
class Quantifier(Node):
    """How often a step repeats; `maximum` None is unbounded. `+` `*` `?` are (1,-) (0,-) (0,1)."""

    minimum: int
    maximum: int | None


@dataclass(frozen=True, slots=True)
class Bracket(Node):
    """`( ... )`: one operand and kind None for a plain sequence, else two or more of one kind."""

    kind: L["|", "&", "AND"] | None
    operands: tuple[Sequence, ...]


@dataclass(frozen=True, slots=True)
class Step(Node):
    atom: Ref | Bracket
    quantifier: Quantifier | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    steps: tuple[Step, ...]
    ops: tuple[Op, ...]  # len(steps) - 1; ops[i] stands before steps[i + 1]


# --- the query ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prefix(Node):
    prefix: str  # without the colon; "" for the empty prefix
    iri: str


@dataclass(frozen=True, slots=True)
class Prologue(Node):
    base: str | None = None
    prefixes: tuple[Prefix, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectItem(Node):
    """`?v` (expr None), `(expr AS ?v)`, or in GROUP BY a bare expression (var None)."""

    var: Var | None
    expr: Expr | None = None


@dataclass(frozen=True, slots=True)
class Select(Node):
    items: tuple[SelectItem, ...] | None  # None: *
    distinct: bool = False
    strategy: L["ALL", "NEXT", "LAST", "MAX", "STRICT"] = "ALL"


@dataclass(frozen=True, slots=True)
class Construct(Node):
    template: tuple[Triple, ...]


@dataclass(frozen=True, slots=True)
class TimeWindow(Node):
    length: TimeSpan
    tumbling: bool = False
    origin: str | None = None  # the dateTime after FROM, as written


@dataclass(frozen=True, slots=True)
class CountWindow(Node):
    events: int


@dataclass(frozen=True, slots=True)
class Skip(Node):
    kind: L[
        "NO SKIP",
        "CONSUME",
        "TO NEXT EVENT",
        "PAST LAST EVENT",
        "TO FIRST",
        "TO LAST",
    ]
    gpm: Ref | None = None


@dataclass(frozen=True, slots=True)
class FromStream(Node):
    name: str
    iri: Iri


@dataclass(frozen=True, slots=True)
class FromKb(Node):
    iri: Iri


@dataclass(frozen=True, slots=True)
class Gpm(Node):
    name: str
    streams: tuple[Ref, ...]
    pattern: GroupGraphPattern


@dataclass(frozen=True, slots=True)
class Query(Node):
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
