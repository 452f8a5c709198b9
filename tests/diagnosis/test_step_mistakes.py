"""Right queries over real streams with one mistake between steps: the report names it first."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.diagnosis.right_queries import CARDS, DATA, RISE, ROAD, SLOW, Right
from tests.sizes import first_of

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"no data in {DATA}")


class StepMistake(NamedTuple):
    """One change of a right query, and the first cause that the report names.

    `at` begins at the place of the cause in the changed query.
    """

    right: Right
    old: str
    new: str
    kind: str
    gpm: str | None
    step: int | None
    at: str
    says: str = ""


MISTAKES = (
    StepMistake(
        RISE, "COALESCE(PREV(?c2), ?c1)", "PREV(?c2)", "condition-false", "B", 2, "FILTER(?c2 >",
        "PREV(?c2) is unbound, so the FILTER is an error in the first repetition",
    ),
    StepMistake(
        RISE, "?c3 < ?c1", "?c3 < ?c1 - 1000", "condition-false", "C", 3, "FILTER(?c3 <", "nearest"
    ),
    StepMistake(RISE, "B{2}", "B{40}", "repetition", "B", 2, "B{40}", "times in a row where 40"),
    StepMistake(RISE, "30 MINUTES", "30 SECONDS", "window", "B", 2, "B{2}", "1 minute"),
    StepMistake(RISE, "; C)", ";[20 SECONDS] C)", "gap-bound", "C", 3, "C)", "1 minute"),
    StepMistake(
        RISE, ":volume ?n3", ":volume ?c1", "equality-join-empty", "C", 3, "C)", "?c1 is never"
    ),
    StepMistake(RISE, "(?c3 < 100000", "(?c3 < 1", "having", None, None, "?c3 < 1", "nearest"),
    StepMistake(
        RISE, "A, B{2}; C", "A, B{2} UNTIL U; C", "until", "U", 2, "U; C", "has an event that U"
    )._replace(right=Right(RISE.text.replace("?c4 > 100000", "?c4 > 0"), RISE.streams, RISE.kb)),
    StepMistake(
        RISE, "A, B{2}; C", "A; C++; U", "greedy", "C", 2, "C++", "which U needs"
    )._replace(right=Right(RISE.text.replace("?c4 > 100000", "?c4 < ?c1"), RISE.streams, RISE.kb)),
    StepMistake(
        CARDS, "?card ex:amount ?a1", "?x ex:amount ?a1 ; ex:id ?card",
        "equality-join-empty", "B", 2, "B)", "no partition has events of both",
    ),
    StepMistake(
        CARDS, "(?a2 > 200)", "(?a2 > 1000 * ?a1 + 500)", "condition-false", "B", 2, "FILTER(?a2"
    ),
    StepMistake(SLOW, "A; P; B", "A; P, B", "contiguity", "B", 3, "B)", "stands between"),
    StepMistake(SLOW, "WITHIN 1 HOURS", "WITHIN 2 EVENTS", "window", "P", 2, "P;", "events"),
    StepMistake(SLOW, "?v2 < ?v1)", "?v2 < ?v1 - 25)", "condition-false", "B", 3, "FILTER(?v2 <"),
    StepMistake(SLOW, "SELECT ", "SELECT STRICT ", "selection", None, None, "SELECT", "STRICT"),
    StepMistake(ROAD, "(B & C)", "(B & P)", "simultaneity", None, 2, "(B & P)", "apart"),
    StepMistake(ROAD, "(B & C); P", "N!; P", "negation", "N", 2, "N!", "has an event that N!"),
    StepMistake(
        ROAD, "A; (B & C); P; W", "W; A", "order", "A", 2, "A)", "no A comes after W"
    )._replace(
        right=Right(
            ROAD.text.replace(
                ":temperature ?degrees FILTER(?degrees > -50)",
                "a sosa:Observation FILTER NOT EXISTS { ?w :temperature ?degrees }",
            ),
            ROAD.streams,
            {},
        )
    ),
    StepMistake(
        ROAD, "WITHIN 3 HOURS", "WITHIN 5 MINUTES TUMBLING", "window", None, 2, "(B & C)", "WITHIN"
    ),
)  # fmt: skip


def _name(mistake: StepMistake) -> str:
    return f"{mistake.new}-{mistake.kind}"


@pytest.mark.parametrize("mistake", first_of(MISTAKES, 5), ids=_name)
def test_the_first_cause_is_the_mistake_between_steps(mistake: StepMistake) -> None:
    report = mistake.right.why(mistake.old, mistake.new)
    assert report.answers == 0
    cause = report.causes[0]
    assert (cause.kind, cause.gpm, cause.step) == (mistake.kind, mistake.gpm, mistake.step), cause
    assert cause.line is not None and cause.column is not None
    lines = mistake.right.changed(mistake.old, mistake.new).split("\n")
    assert lines[cause.line - 1][cause.column - 1 :].startswith(mistake.at), cause
    assert mistake.says in cause.text
    assert cause.count > 0


@pytest.mark.parametrize("right", [RISE, ROAD, SLOW, CARDS], ids=["rise", "road", "slow", "cards"])
def test_a_right_query_has_no_cause(right: Right) -> None:
    report = right.why()
    assert report.answers > 0
    assert report.causes == ()
    assert all(step.reached > 0 for step in report.steps)
