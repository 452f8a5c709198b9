"""The planner's rules: each can be disabled by name without a change in answers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaseq
from spaseq.algebra.answers import Answer
from spaseq.cli.main import cli
from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import QueryError, UsageError
from spaseq.kb.load import load_kb
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.rules import NAMES
from tests.language import tables
from tests.language.tables import Row
from tests.oracle.agreement import comparables
from tests.oracle.choices import seeded
from tests.oracle.engine import Arrival, solved
from tests.oracle.strategies import Case, case
from tests.sizes import first_of, sizes

ROWS = [*tables.NUMBERS, *tables.LETTERS, *tables.SELECTION]


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.id)
@pytest.mark.parametrize("nth", first_of([4, 1], 1))
def test_the_tables_with_any_rule_disabled(row: Row, nth: int, tmp_path: Path) -> None:
    """By default each row disables every fourth rule, so that some rows disable each."""
    path = tmp_path / "stream.nq"
    path.write_text(tables.nquads(row.values))

    def answers(*disable: str) -> list[object]:
        found = spaseq.run(
            tables.row_query(row), {"S": path}, runtime="local", threads=1, disable=disable
        )
        return comparables([m.answer for m in found])

    whole = answers()
    assert bool(whole) == bool(row.expected)
    for name in [*NAMES][ROWS.index(row) % nth :: nth]:
        assert answers(name) == whole, name
    assert answers(*NAMES) == whole


def run(example: Case, disable: tuple[str, ...]) -> list[Answer]:
    """The engine's answers to an example."""
    plan = compile_query(example.query, options=CompileOptions(disable=disable))
    arrival = Arrival(knowledge=load_kb(list(example.kb.items())))
    times = sorted(time for events in example.streams.values() for time, _, _ in events)
    return arrival.answers(plan, solved(plan, example.streams, example.kb, None), times)


@sizes(4, 10, 25)
def test_generated_queries_with_any_rule_disabled(examples: int) -> None:
    compared = 0
    for number in count():
        example = case(seeded(f"rules:{number}"))
        try:
            whole = comparables(run(example, ()))
        except QueryError:
            continue
        for disable in (*((name,) for name in NAMES), NAMES):
            assert comparables(run(example, disable)) == whole, (disable, example.query)
        compared += bool(whole)
        if compared == examples:
            break


SEQUENCE = """PREFIX : <http://e/>
    SELECT ?k WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE {{ SEQ({steps})
    DEFINE GPM A ON S {{ ?a :key ?k ; :low ?l }}
    DEFINE GPM B ON S {{ ?b :key ?k ; :high ?h {condition} }} }}"""


@pytest.mark.parametrize(
    ("steps", "condition", "disable", "evaluator"),
    [
        ("A; B", "", [], "compiled-chain"),
        ("A; B", "", ["compiled-runs"], "compiled-chain"),
        ("A; B", "", ["shared-runs"], "compiled-registers"),
        ("A: B", "FILTER (?h > ?l)", [], "compiled-registers"),
        ("A: B", "FILTER (?h > ?l)", ["compiled-runs"], "registers"),
        ("A: B", "FILTER REGEX(?h, ?l)", [], "compiled-registers"),
        ("A: B", "FILTER (?h > ?l + RAND())", [], "registers"),
        ("A; B", "FILTER (?h > ?l)", [], "compiled-registers"),
        ("A; B", "FILTER (?h > ?l)", ["compiled-runs"], "registers"),
        ("A; B", "", NAMES, "registers"),
        ("A: B", "FILTER (?h > ?l)", NAMES, "registers"),
    ],
)
def test_evaluators_are_chosen_by_rules(
    steps: str, condition: str, disable: Sequence[str], evaluator: str
) -> None:
    text = SEQUENCE.format(steps=steps, condition=condition)
    assert (
        compile_query(text, options=CompileOptions(disable=disable)).sequence.evaluator.name
        == evaluator
    )


def test_other_rules_change_what_they_say() -> None:
    text = SEQUENCE.format(steps="A; B", condition="")
    plan = compile_query(text)
    assert stream_predicates([plan], "http://e/s") is not None
    without = compile_query(text, options=CompileOptions(disable=["pushed-predicates"]))
    assert stream_predicates([plan, without], "http://e/s") is None
    assert any(gpm.private for gpm in plan.patterns.gpms)
    assert not any(
        g.private
        for g in compile_query(
            text, options=CompileOptions(disable=["pruned-columns"])
        ).patterns.gpms
    )


def test_a_rule_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"did you mean shared-runs.*rare-triples-first"):
        compile_query(
            SEQUENCE.format(steps="A; B", condition=""),
            options=CompileOptions(disable=["shared-run"]),
        )


def test_explain_shows_the_rules(tmp_path: Path) -> None:
    path = tmp_path / "q.rq"
    path.write_text(SEQUENCE.format(steps="A; B", condition=""))
    command = ["explain", str(path), "--disable", "shared-runs", "--disable", "lazy-operands"]
    shown = CliRunner().invoke(cli, command, catch_exceptions=False).output
    assert "rule       shared-runs (disabled)\n" in shown
    assert "rule       lazy-operands (disabled)\n" in shown
    assert "rule       pruned-columns: " in shown
    assert (
        "evaluator compiled-registers (threshold-sequence kernel): shared-runs is disabled" in shown
    )
