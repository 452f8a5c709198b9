"""`spaseq.testing` from a user's view, and the tables of the language reference run with it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
import rdflib

from spaseq import testing
from spaseq.errors import InputError, UsageError
from tests.language.tables import LETTERS, SELECTION, Row
from tests.language.test_tables import RUNTIMES

QUERY = """PREFIX : <http://example/>
SELECT ?card ?spent WITHIN 10 SECONDS FROM STREAM Payments <http://example/payments>
FROM STREAM Alarms <http://example/alarms> FROM NAMED <http://example/kb>
WHERE { SEQ(A; B!)
  DEFINE GPM A ON Payments {
    [] a :Payment ; :card ?card ; :amount ?spent GRAPH <http://example/kb> { ?card :holder ?who } }
  DEFINE GPM B ON Alarms { [] :card ?card } }"""

HOLDERS = "<http://example/c1> <http://example/holder> 1 ."
KB = {"http://example/kb": rdflib.Graph().parse(data=HOLDERS)}


def payment(amount: object) -> dict[str, object]:
    return {"a": ":Payment", ":card": ":c1", ":amount": amount}


@pytest.mark.parametrize("row", LETTERS + SELECTION, ids=lambda row: row.id)
def test_tables_of_the_language_page(row: Row) -> None:
    query = testing.letter_query(row.sequence, row.within, row.select, row.after_match)
    found = testing.words(query, testing.letters(row.values))
    assert sorted(found) == sorted(row.expected)


def test_an_absence_is_known_when_the_clock_says_so() -> None:
    with testing.Harness(QUERY, KB) as bench:
        bench.push("Payments", payment(Decimal("9.5")), at=0)
        bench.push("Alarms", {":card": ":c2"}, at=4)
        bench.advance(9)
        assert bench.answers == []
        bench.advance(10)
        assert bench.answers == [{"card": "http://example/c1", "spent": Decimal("9.5")}]
        bench.push("Payments", payment(3), at=20)
        bench.push("Alarms", "[] :card :c1", at=datetime(1970, 1, 1, 0, 0, 21, tzinfo=UTC))
    assert len(bench.answers) == 1


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_replay_gives_the_same_answers(runtime: str) -> None:
    with testing.Harness(QUERY, KB, limit_per_event=5) as bench:
        for amount in (1, 2, 3):
            bench.push("http://example/payments", payment(amount))
    assert [answer["spent"] for answer in bench.answers] == [1, 2, 3]
    assert bench.replay(runtime) == bench.answers  # type: ignore[arg-type]


def test_a_graph_can_have_many_forms() -> None:
    graph = rdflib.Graph().parse(data='<http://example/e> <http://example/word> "a1" .')
    bench = testing.Harness(testing.letter_query("A"))
    for form in (
        graph,
        list(graph),
        '<http://example/e> <http://example/word> "a1" .',
        '[] :word "a1"',
        {":word": ["a1", "x:y"]},
        {"@id": "<http://example/e>", "<http://example/word>": "a1"},
    ):
        bench.push("S", form)
    assert [answer for _, answer in bench.closed()] == [{"wA": "a1"}] * 6


def test_wrong_use() -> None:
    bench = testing.Harness(testing.letter_query("A"))
    with pytest.raises(InputError, match="not a graph"):
        bench.push("S", "no turtle")
    with pytest.raises(UsageError, match="no stream T"):
        bench.push("T", {":word": "a"})
    bench.advance(5)
    with pytest.raises(UsageError, match="goes back"):
        bench.push("S", {":word": "a"}, at=2)


def test_a_block_that_raises_is_not_closed() -> None:
    with pytest.raises(KeyError), testing.Harness(testing.letter_query("A")) as bench:
        bench.push("S", {":word": "a"})
        raise KeyError
    assert bench.matches == []
    bench.close()
    assert len(bench.matches) == 1
