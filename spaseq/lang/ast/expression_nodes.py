"""Expressions (SPARQL 1.1 section 17, and SPAseq's own functions)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias
from typing import Literal as L

from spaseq.lang.ast.term_nodes import Iri, Literal, Node, Var
from spaseq.records import record

if TYPE_CHECKING:
    from spaseq.lang.ast.pattern_nodes import GroupGraphPattern
    from spaseq.lang.ast.sequence_nodes import Ref


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
