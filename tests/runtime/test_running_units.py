"""Of many queries a pushed event reaches those that it may concern, and the others miss nothing."""

from __future__ import annotations

from random import Random

from spaseq import Engine
from spaseq.api.match import Match
from tests.oracle.choices import seeded
from tests.oracle.strategies import EVERYTHING, case
from tests.sizes import sizes
from tests.thresholds import Force

NAME = "http://example.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
STREAMS = tuple(f"{NAME}stream/{number}" for number in (1, 2, 3))


def drawn_queries(seed: int, count: int) -> list[str]:
    """Queries of the oracle's generator; half of them look at one kind of event."""
    found = []
    for number in range(count):
        text = case(seeded(f"possible{seed}:{number}"), EVERYTHING.difference({"GRAPH"})).query
        if number % 2:
            kind = f"_:kind <http://e/kind> <http://e/k{number % 3}> ."
            text = text.replace(" ON S1 {", f" ON S1 {{ {kind}")
        found.append(text)
    return found


def drawn_event(random: Random) -> str:
    """An event over the vocabulary of the oracle, with some of its triples."""
    lines = [f"<{NAME}e> <http://e/kind> <http://e/k{random.randrange(4)}> ."]
    for _ in range(random.randrange(3)):
        thing = random.choice([f"<{NAME}o1>", f"<{NAME}o2>", "_:x"])
        lines += [
            f"{thing} <{NAME}is> <{NAME}{random.choice('ABCDE')}> .",
            f'{thing} <{NAME}v> "{random.randrange(4)}"^^<{XSD}integer> .',
            f"{thing} <{NAME}k> <{NAME}k{random.randrange(2)}> .",
        ]
    return "\n".join(random.sample(lines, random.randint(0, len(lines))))


def answers(queries: list[str], more: list[str], seed: int) -> list[list[Match]]:
    """The answers of each call of an engine to which queries come, and which others leave."""
    random, found = Random(seed), []
    with Engine(queries) as engine:
        streams = [iri for iri in STREAMS if iri in "".join(queries)]
        for number in range(60):
            if number % 8 == 7 and more:
                engine.add(more.pop(), name=f"new{number}")
            if number % 20 == 19:
                engine.remove(engine.queries[seed % 5])
            found.append(engine.push(random.choice(streams), drawn_event(random), 1000 * number))
        found.append(engine.close())
    return found


@sizes(2, 4, 100)
def test_drawn_queries_have_the_answers_that_they_have_if_each_is_asked(
    examples: int, force: Force
) -> None:
    count = 0
    for seed in range(examples):
        queries, more = drawn_queries(seed, 40), drawn_queries(1000 + seed, 6)
        force("template_queries=never")
        expected = answers(queries, [*more], seed)
        force("template_queries=least")
        found = answers(queries, [*more], seed)
        assert [[*map(repr, own)] for own in found] == [[*map(repr, own)] for own in expected]
        count += sum(map(len, expected))
    assert count > 50
