"""The sentence about a variable that never has the same term in both steps."""

from __future__ import annotations

from collections.abc import Sequence

from spaseq.diagnosis.nearest_terms import as_written, number
from spaseq.diagnosis.report import Cause
from spaseq.diagnosis.step_places import taken_gpms
from spaseq.diagnosis.step_text import StepText


def join_cause(at: StepText) -> Cause:
    """The cause in a variable that the last step shares with those before."""
    earlier = {n for link in at.steps.before for n in taken_gpms(link)}
    partition = at.steps.plan.sequence.partition
    binds = at.steps.resolved.binds
    own = {v for name in at.steps.names for v in binds[name]}
    shared = own & {v for name in earlier for v in binds[name]}
    ordered = [*partition, *sorted(shared - {*partition})]
    for variable in [v for v in ordered if v in shared]:
        left = at.rows.distinct(variable, earlier)
        right = at.rows.distinct(variable, at.steps.names)
        if left and right and not set(left) & set(right):
            return _no_common(at, variable, left, right, variable in partition)
    names = ", ".join(f"?{v}" for v in ordered)
    text = f"no {at.step} after {at.last_before} has the same {names}"
    text += ", although each value occurs in both steps"
    text += "; rename the variable if the values need not be equal"
    return at.cause("equality-join-empty", text, term=names or None)


def _no_common(
    at: StepText, variable: str, left: Sequence[str], right: Sequence[str], partition: bool
) -> Cause:
    terms = at.question.terms
    like = next(((a, b) for a in left[:1000] for b in right[:1000] if _alike(a, b)), None)
    one, other = like or (left[0], right[0])
    text = f"?{variable} is never equal: {as_written(terms, one)} in {at.last_before}, "
    text += f"{as_written(terms, other)} in {at.step}"
    if partition:
        text += "; so no partition has events of both"
    if like is not None and _type(one) == _type(other) == "number":
        text += "; they are equal by value, but a join needs the same term"
        text += f": use another variable and FILTER(?x = ?{variable})"
    elif like is not None:
        text += "; they look alike, but a join needs the same term"
        text += f": use another variable and FILTER(STR(?x) = STR(?{variable}))"
    else:
        text += "; rename the variable in one step if the values need not be equal"
    example = f"{as_written(terms, one)} and {as_written(terms, other)}"
    return at.cause("equality-join-empty", text, term=f"?{variable}", example=example)


def _type(text: str) -> str:
    return "number" if number(text) is not None else text[:1]


def _alike(one: str, other: str) -> bool:
    """Whether two terms are equal by value, or would be with another type."""
    values = number(one), number(other)
    if values[0] is not None and values[0] == values[1]:
        return True
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    """The characters of a term without its kind, case or last slash."""
    if text.startswith('"'):
        return text[1:].rpartition('"')[0].strip().casefold()
    return text.strip("<>").rstrip("/#").casefold()
