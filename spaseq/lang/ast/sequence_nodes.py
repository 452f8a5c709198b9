"""Sequence expressions: how events follow each other."""

from __future__ import annotations

from typing import Literal as L
from typing import TypeAlias

from spaseq.lang.ast.term_nodes import Node
from spaseq.records import record


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
        scale = {
            "MILLISECONDS": 1,
            "SECONDS": 1000,
            "MINUTES": 60_000,
            "HOURS": 3_600_000,
            "DAYS": 86_400_000,
        }
        return self.amount * scale[self.unit]


OpKind: TypeAlias = L[",", ";", ":"]


@record
class Op(Node):
    """A sequence operator, perhaps with a gap bound."""

    kind: OpKind
    gap: TimeSpan | None = None


@record
class Quantifier(Node):
    """How often a step repeats, and how. `maximum` None means no upper bound.

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
