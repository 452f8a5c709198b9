"""Engine and oracle agree on steps that a term in a key, a number or a FILTER over texts joins."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.oracle.agreement import Tally, compare
from tests.oracle.draw_events import NS, STREAMS, Arrivals, number, term
from tests.oracle.strategies import Case
from tests.oracle.test_counterexamples import query
from tests.thresholds import forced

IN_KEY = {
    "A": "[] ex:is ex:A ; ex:k ?k ; ex:to ?x ; ex:v ?a",
    "B": "?x ex:is ex:B ; ex:k ?k ; ex:to ?y ; ex:v ?b FILTER(?b >= ?a)",
    "C": "?z ex:is ex:C ; ex:k ?k ; ex:v ?c FILTER(?z = ?y)",
    "D": "?d ex:is ex:D ; ex:k ?k ; ex:to ?x",
    "N": "?x ex:is ex:N ; ex:k ?k ; ex:v ?n FILTER(?n > ?a)",
    "R": "?x ex:is ex:R ; ex:k ?k ; ex:v ?r",
}
EQUAL = {
    "A": "[] ex:is ex:A ; ex:v ?a",
    "B": "[] ex:is ex:B ; ex:v ?b FILTER(?b = ?a)",
    "C": "[] ex:is ex:C ; ex:v ?c FILTER(?c = ?b + 1)",
    "D": "?s ex:is ex:D ; ex:v ?d FILTER(?a = ?d && ?s != ex:o1)",
    "N": "[] ex:is ex:N ; ex:v ?n FILTER(?n = ?a)",
    "R": "[] ex:is ex:R ; ex:v ?r FILTER(?r = COALESCE(PREV(?r), ?a))",
}
OVER_TEXTS = {
    "A": "?i ex:is ex:A ; ex:to ?x ; ex:v ?a",
    "B": "?j ex:is ex:B ; ex:to ?y FILTER(STRENDS(STR(?y), SUBSTR(STR(?x), 20)))",
    "C": "?l ex:is ex:C ; ex:v ?c FILTER(CONTAINS(CONCAT(STR(?l), STR(?c)), STR(?a)))",
    "D": "?m ex:is ex:D ; ex:v ?d FILTER(STRLEN(STR(?m)) + ?d > STRLEN(STR(?x)) + ?a)",
    "N": "?o ex:is ex:N ; ex:to ?w FILTER(STRSTARTS(STR(?w), STR(?x)))",
    "R": "?q ex:is ex:R ; ex:to ?u FILTER(STRAFTER(STR(?u), 'o') != STRAFTER(STR(?x), 'o'))",
}

FORMS = {
    "a term in a partition": (IN_KEY, "PARTITION BY (?k)"),
    "a term in a common key": (IN_KEY, ""),
    "equal numbers": (EQUAL, ""),
    "equal numbers in a partition": (
        {name: gpm.replace(" ;", " ; ex:k ?k ;", 1) for name, gpm in EQUAL.items()},
        "PARTITION BY (?k)",
    ),
    "a FILTER over texts": (OVER_TEXTS, ""),
}

SEQUENCES = [
    "A ; B ; C",
    "A : B",
    "A ; N! ; B",
    "A ; R+ ; B",
    "A ; R++ ; B",
    "A ; (B | D)",
    "A : B : D",
    "A ; R+ UNTIL N ; D",
    "A ; B ; N!",
    "A , B ; D",
    "A ; (B AND D)",
    "A ; B? ; D",
]
WINDOWS = ["WITHIN 9 SECONDS", "WITHIN 8 EVENTS", "WITHIN 8 SECONDS TUMBLING"]


def events_of(random: Random, sequence: str, size: int) -> Arrivals:
    """Events up to two seconds apart, with one or two solutions of a step each."""
    names = sorted({*re.findall(r"\b[A-Z]\b", sequence)})
    rows, time = Arrivals(), 0
    for i in range(size):
        name, triples = random.choice(names), []
        for subject in sorted(
            {random.choice(("o1", "o1", "o2", "o10")) for _ in range(random.choice((1, 1, 2)))}
        ):
            own = term(subject)
            triples += [
                (own, term("is"), term(name)),
                (own, term("k"), term(random.choice(("k1", "k1", "k1", "k2")))),
                (own, term("to"), term(random.choice(("o1", "o1", "o2", "o10")))),
                (own, term("v"), number(random.choice(("0", "1", "1", "2")))),
            ]
        time += random.choice((0, 1000, 1000, 2000))
        rows.append((time, f"{NS}event/{i}", triples))
    return rows


@pytest.mark.each_once
@pytest.mark.parametrize("words", ["", "least", "never"])
@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("form", FORMS)
def test_joined_steps(form: str, sequence: str, words: str) -> None:
    patterns, partition = FORMS[form]
    random, tally = Random(f"{sequence} on {form}"), Tally()
    for window in WINDOWS[:: 2 if sequence.endswith("!") else 1]:  # no end of a window of events
        text = query(sequence, f"{window} {partition}", patterns)
        for _ in range(5):
            example = Case(text, frozenset(), {STREAMS[0]: events_of(random, sequence, 16)})
            with forced(words):
                wrong = compare(example, tally, random)
            assert wrong is None, f"{wrong.kind}\n{wrong.text}"
    assert tally.compared > 3
    if "," not in sequence:  # such matches are rare
        assert tally.by["(all)", "compiled-registers"]
