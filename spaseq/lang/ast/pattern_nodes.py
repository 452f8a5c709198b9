"""Expressions, group graph patterns, and sequence expressions.

Expressions are defined in SPARQL 1.1 section 17, with SPAseq's functions in addition; patterns and
sub-queries in sections 5 to 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as L
from typing import TypeAlias

from spaseq.lang.ast.term_nodes import Iri, Literal, Node, Path, Term, TripleTerm, Var
from spaseq.rdf.terms.times import UNITS
from spaseq.records import record


@record
class Or(Node):
    """`a || b || ...`"""

    operands: tuple[Expr, ...]


@record
class And(Node):
    """`a && b && ...`"""

    operands: tuple[Expr, ...]


@record
class Not(Node):
    """`!a`"""

    operand: Expr


@record
class Compare(Node):
    """A comparison of two values."""

    op: L["=", "!=", "<", "<=", ">", ">="]
    left: Expr
    right: Expr


@record
class Arithmetic(Node):
    """A sum, difference, product or quotient."""

    op: L["+", "-", "*", "/"]
    left: Expr
    right: Expr


@record
class Sign(Node):
    """Unary plus or minus."""

    op: L["+", "-"]
    operand: Expr


@record
class In(Node):
    """`a IN (...)` or `a NOT IN (...)`."""

    operand: Expr
    options: tuple[Expr, ...]
    negated: bool = False


@record
class Call(Node):
    """A built-in call; `function` is its upper-case SPARQL name (`STR`, `BOUND`, `IF`, ...)."""

    function: str
    args: tuple[Expr, ...]


@record
class FunctionCall(Node):
    """A call by IRI: a cast (`xsd:integer(?x)`) or an extension function."""

    function: Iri
    args: tuple[Expr, ...]
    distinct: bool = False


@record
class Exists(Node):
    """`EXISTS { ... }` or `NOT EXISTS { ... }`."""

    pattern: GroupGraphPattern
    negated: bool = False


@record
class Aggregate(Node):
    """A call of an aggregate, or of SPAseq's FIRST, LAST or LIST of a group variable.

    The aggregates are COUNT, SUM, AVG, MIN, MAX, GROUP_CONCAT and SAMPLE. `operand` None stands for
    COUNT(*).
    """

    function: str
    operand: Expr | None
    distinct: bool = False
    separator: str | None = None


@record
class Prev(Node):
    """`PREV(?v)`: the value of a group variable in the repetition before."""

    var: Var


@record
class Timestamp(Node):
    """`TIMESTAMP(A)`: the time of the last event of a GPM."""

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


# --- group graph patterns and sub-queries ---------------------------------------------------------


@record
class Triple(Node):
    """A triple pattern; its predicate may be a property path."""

    subject: Term
    predicate: Var | Path
    object: Term


@record
class Triples(Node):
    """A block of triple patterns, in the order of the text."""

    triples: tuple[Triple, ...]


@record
class Filter(Node):
    """A FILTER; it applies to the whole group."""

    expr: Expr


@record
class OptionalGraphPattern(Node):
    """`OPTIONAL { ... }`"""

    pattern: GroupGraphPattern


@record
class GroupOrUnionGraphPattern(Node):
    """`{ ... } UNION { ... } ...`"""

    alternatives: tuple[GroupGraphPattern, ...]  # two or more; one group alone stays a group


@record
class MinusGraphPattern(Node):
    """`MINUS { ... }`"""

    pattern: GroupGraphPattern


@record
class GraphGraphPattern(Node):
    """`GRAPH name { ... }`"""

    name: Var | Iri
    pattern: GroupGraphPattern


@record
class ServiceGraphPattern(Node):
    """`SERVICE [SILENT] name { ... }`"""

    name: Var | Iri
    pattern: GroupGraphPattern
    silent: bool = False


@record
class EventGraphPattern(Node):
    """`EVENT ON stream ?event AT ?time { ... }`: a pattern on each event of a window."""

    stream: Ref | None
    event: Var | None
    time: Var | None
    pattern: GroupGraphPattern


@record
class Bind(Node):
    """`BIND(expr AS ?v)`"""

    expr: Expr
    var: Var


@record
class Values(Node):
    """Inline data: a row of values for the variables, per solution."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | TripleTerm | None, ...], ...]  # None: UNDEF


@record
class SelectItem(Node):
    """`?v` (expr None), `(expr AS ?v)`, or in GROUP BY a bare expression (var None)."""

    var: Var | None
    expr: Expr | None = None


@record
class OrderCondition(Node):
    """A condition of ORDER BY."""

    expr: Expr
    descending: bool = False


@record
class SubSelect(Node):
    """A sub-query, with the VALUES that may follow it."""

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


@record
class GroupGraphPattern(Node):
    """`{ ... }`, its elements in the order of the text."""

    elements: tuple[Element, ...]


Element: TypeAlias = (
    Triples
    | Filter
    | OptionalGraphPattern
    | GroupOrUnionGraphPattern
    | MinusGraphPattern
    | GraphGraphPattern
    | ServiceGraphPattern
    | EventGraphPattern
    | Bind
    | Values
    | SubSelect
    | GroupGraphPattern
)


@record
class Ref(Node):
    """A name that refers to a GPM or a stream."""

    name: str


@record
class TimeSpan(Node):
    """An amount of time in one unit."""

    amount: int
    unit: L["MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"]

    @property
    def ms(self) -> int:
        """The duration in milliseconds."""
        return self.amount * UNITS[self.unit]


OpKind: TypeAlias = L[";", ":", ","]


@record
class OperatorWords:
    """The description of a sequence operator, in words.

    Attributes:
        meaning: a sentence for editors.
        ignored: the events that a waiting run ignores there.
        legend: the text below a picture.
    """

    meaning: str
    ignored: str
    legend: str


OPERATORS: Mapping[OpKind, OperatorWords] = {
    ";": OperatorWords(
        "Skip-till-next: the next event that matches.",
        "IGNORE until it matches (skip-till-next)",
        "; the next that matches",
    ),
    ":": OperatorWords(
        "Skip-till-any: every later event that matches.",
        "IGNORE any (skip-till-any)",
        ": any later one",
    ),
    ",": OperatorWords(
        "Strict contiguity: the next event of the query's streams.",
        "IGNORE nothing (strict contiguity)",
        ", at the very next instant",
    ),
}
"""The sequence operators by their signs, in the order of legends."""


@record
class Op(Node):
    """A sequence operator, perhaps with a gap bound."""

    kind: OpKind
    gap: TimeSpan | None = None


@record
class Quantifier(Node):
    """The quantifier of a step. `maximum` None means no upper bound.

    `+` is (1, None), `*` is (0, None) and `?` is (0, 1). A second `+` makes the loop `greedy`.
    `own` is the operator in brackets that joins the repetitions; `until` is the GPM that ends the
    loop.
    """

    minimum: int
    maximum: int | None
    greedy: bool = False
    own: Op | None = None
    until: Ref | None = None


@record
class Bracket(Node):
    """`( ... )`: a plain sequence, or a binary step.

    A plain sequence has one operand and kind None; a binary step has two or more operands.
    """

    kind: L["|", "&", "AND"] | None
    operands: tuple[Sequence, ...]


@record
class Step(Node):
    """A GPM or a bracket, perhaps repeated or negated."""

    atom: Ref | Bracket
    quantifier: Quantifier | None = None
    negated: bool = False


@record
class Sequence(Node):
    """Steps and the operators between them."""

    steps: tuple[Step, ...]
    ops: tuple[Op, ...]  # len(steps) - 1; ops[i] stands before steps[i + 1]
