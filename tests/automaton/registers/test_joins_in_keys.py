"""Steps that share terms besides a key, and steps without a key whose numbers are equal.

The register kernel finds the waiting runs by the id of the key and the term, or of the number.
"""

from __future__ import annotations

from random import Random

import pytest

from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.automaton.registers.compiled.shared_ids import JoinedIds
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.terms.term import XSD
from spaseq.stages.sequence import SequenceStage
from tests.automaton.cases import Event, batch, query, run
from tests.automaton.keyed_streams import ODD, agreed, in_pieces, integer, plans
from tests.automaton.registers.test_joined_terms import EQUAL, OF_STEP, SEQUENCES, events_of, used
from tests.thresholds import forced

PARTITIONS = ["", "PARTITION BY (?k)"]


def keyed(sequence: str, within: str, partition: str = "") -> tuple[QueryPlan, QueryPlan]:
    """The plans of a sequence of `CHAIN` whose steps share a key, too."""
    gpms = {name: gpm.replace(" ", " :k ?k ; ", 1) for name, gpm in used(sequence).items()}
    return plans(query(sequence, gpms, within, partition=partition))


def keyed_events(sequence: str, size: int, nodes: int, seed: int, keys: int = 3) -> list[Event]:
    """Events of `CHAIN` with keys."""
    random, events = Random(seed), events_of("".join(sorted(used(sequence))), size, nodes, seed)
    for event in events:
        for found in event.solutions.values():
            for values in found:
                values["k"] = f"<k{random.randrange(keys)}>"
    return events


def joins_of(plan: QueryPlan) -> list[str]:
    """By edge: the number by which waiting runs are found."""
    sequencer = SequenceStage(plan)._sequencer
    assert isinstance(sequencer, RunSequencer)
    joins = sequencer._tables.joins
    return [f"{join.left.measure} {join.left.variable}".strip() if join else "" for join in joins]


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_chains_in_keys(sequence: str, within: str, partition: str) -> None:
    compiled, python = keyed(sequence, within, partition)
    assert agreed(compiled, python, keyed_events(sequence, 300, 3, 7), (37, 1), (60, 150))


@pytest.mark.each_once
@pytest.mark.parametrize("words", ["least", "never"])
@pytest.mark.parametrize(("sequence", "within"), SEQUENCES)
def test_ids_are_released_all_the_time(sequence: str, within: str, words: str) -> None:
    compiled, python = keyed(sequence, within, "PARTITION BY (?k)")
    events = keyed_events(sequence, 240, 3, 8, keys=4)
    expected = run(python, events)[0]
    with forced(words):
        assert in_pieces(compiled, events, (1, 29)) == expected


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("sequence", ["A; B; C", "A: B; C", "A; N!; B; C"])
def test_python_takes_over_the_runs_of_all_keys(sequence: str, partition: str) -> None:
    compiled, python = keyed(sequence, "60 SECONDS", partition)
    events = keyed_events(sequence, 200, 3, 9)
    [values] = next(
        e for e in events[90:] if [*e.solutions] == ["A"] and len(e.solutions["A"]) == 1
    ).solutions["A"]
    values["va"] = integer(2**53 + 1)
    assert agreed(compiled, python, events, (37, 1), (60,))


@pytest.mark.parametrize("key", ["<k0>", "<k2>"])
def test_runs_are_counted_by_key(key: str) -> None:
    both = [(p, SequenceStage(p)) for p in keyed("A; B; C", "600 SECONDS", "PARTITION BY (?k)")]
    events, most = keyed_events("A; B; C", 200, 4, 10), 0
    for i in range(0, len(events), 10):
        states = []
        for plan, stage in both:
            stage.push(batch(plan, events[i : i + 10]))
            stage.advance(events[i + 9].time)
            states.append(stage.live_states(lambda found: found == (key,)))
        assert states[0].waiting == states[1].waiting
        most = max(most, *states[0].waiting.values(), 0)
    assert most > 3


def test_what_waits_by_keys_and_terms() -> None:
    for partition in PARTITIONS:
        chain = keyed("A; N!; B; C", "1 MINUTES", partition)[0]
        assert joins_of(chain) == ["", "joined term q", "joined term r"]
        assert joins_of(keyed("A; M!; B", "1 MINUTES", partition)[0]) == ["", ""]
        assert joins_of(keyed("A, B", "1 MINUTES", partition)[0]) == ["", ""]
        assert joins_of(keyed("A; B", "9 EVENTS", partition)[0]) == ["", ""]


@pytest.mark.parametrize("sequence", ["A; B", "A: B; C", "A; N!; D", "A; L+", "A; L+ UNTIL N; D"])
def test_equal_terms_in_keys(sequence: str) -> None:
    gpms = {
        n: g.replace(" ", " :k ?k ; ", 1)
        for n, g in EQUAL.items()
        if n in sequence[:1] + sequence[1:].replace("UNTIL", "")
    }
    compiled, python = plans(query(sequence, gpms, "60 SECONDS", partition="PARTITION BY (?k)"))
    random, events = Random(sequence), list[Event]()
    for i in range(220):
        name = random.choice(sorted(gpms))
        subject, variable = OF_STEP[name]
        values: dict[str, str | None] = {
            subject: f"<e{random.randrange(4)}>",
            variable: f"<n{random.randrange(5)}>",
            f"v{name.lower()}": integer(random.randrange(50)),
            "k": f"<k{random.randrange(3)}>",
        }
        events.append(Event(1000 * i, 0, i % 2, {name: [values]}))
    assert agreed(compiled, python, events, (37, 1), (60,))


# --- numbers that are equal, without a key --------------------------------------------------------

NUMBERS = {
    "A": "?a :v ?va",
    "B": "?b :v ?vb FILTER(?vb = ?va)",
    "C": "?c :v ?vc FILTER(?vc = COALESCE(?vb, ?va) + 1 && ?c != ?a)",
    "D": "?d :v ?vd FILTER(?va = ?vd && ?vd >= ?vb)",
    "N": "?n :v ?vn FILTER(?vn = ?va)",
    "M": "?m :v ?vm FILTER(?vm > ?va)",
    "R": "?r :v ?vr FILTER(?vr = COALESCE(PREV(?vr), ?va) + 1)",
    "S": "?s :v ?vs FILTER(?vs = MAX(?vr))",
    "E": "?e :v ?ve FILTER(?ve = ?va && ?e = ?a)",
}

OF_NUMBERS = [
    ("A; B", "30 SECONDS"),
    ("A: B", "20 SECONDS"),
    ("A; B; C", "60 SECONDS"),
    ("A; N!; B", "60 SECONDS"),
    ("A; M!; B", "60 SECONDS"),
    ("A; B?; C", "60 SECONDS"),
    ("A; R+", "20 SECONDS"),
    ("A; R++; C", "30 SECONDS"),
    ("A; R+; S", "30 SECONDS"),
    ("A; R+ UNTIL N; C", "40 SECONDS"),
    ("A; (B | E)", "40 SECONDS"),
    ("A; E: C", "40 SECONDS"),
    ("A; B: D", "40 SECONDS"),
    ("A; B; N!", "20 SECONDS"),
    ("A;[9 SECONDS] B", "60 SECONDS"),
    ("A; B", "30 SECONDS TUMBLING"),
    ("A; B; C", "30 EVENTS"),
    ("A, B; C", "60 SECONDS"),
]


def _of_numbers(sequence: str, within: str) -> tuple[QueryPlan, QueryPlan]:
    names = sequence.replace("UNTIL", "").replace("SECONDS", "")
    return plans(query(sequence, {n: g for n, g in NUMBERS.items() if n in names}, within))


def _numbers(sequence: str, size: int, seed: int, values: list[str]) -> list[Event]:
    """Events a second apart or at the instant before, with one or two solutions each."""
    names = sequence.replace("UNTIL", "").replace("SECONDS", "")
    random, events, time = Random(seed), list[Event](), 0
    for i in range(size):
        name = random.choice([name for name in NUMBERS if name in names])
        low, time = name.lower(), time + (1000 if i % 4 else 0)
        found = {
            random.choice(values): random.randrange(4) for _ in range(random.choice((1, 1, 2)))
        }
        solutions = [{low: f"<e{e}>", f"v{low}": value} for value, e in found.items()]
        events.append(Event(time, 0, i % 2, {name: solutions}))
    return events


WHOLE = [integer(i) for i in range(7)]
MIXED = [
    *WHOLE[:3],
    *(f'"{i}.0"^^<{XSD}decimal>' for i in range(3)),
    *(f'"{i}.5"^^<{XSD}decimal>' for i in range(2)),
    *(f'"{i}e0"^^<{XSD}double>' for i in (0, 1, 1.5, "-0")),
    f'"NaN"^^<{XSD}double>',
    f'"INF"^^<{XSD}double>',
    integer(-1),
]


@pytest.mark.parametrize("values", [WHOLE, MIXED], ids=["whole", "mixed"])
@pytest.mark.parametrize(("sequence", "within"), OF_NUMBERS)
def test_equal_numbers(sequence: str, within: str, values: list[str]) -> None:
    compiled, python = _of_numbers(sequence, within)
    assert agreed(compiled, python, _numbers(sequence, 260, 3, values), (37, 1), (60, 150))


@pytest.mark.each_once
@pytest.mark.parametrize("words", ["least", "never"])
@pytest.mark.parametrize(("sequence", "within"), OF_NUMBERS)
def test_ids_of_numbers_are_released(sequence: str, within: str, words: str) -> None:
    compiled, python = _of_numbers(sequence, within)
    events = _numbers(sequence, 220, 4, MIXED)
    expected = run(python, events)[0]
    with forced(words):
        assert in_pieces(compiled, events, (1, 29)) == expected


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("sequence", ["A; B", "A: B; C", "A; N!; B"])
def test_a_number_that_float64_does_not_decide(sequence: str, odd: str) -> None:
    """As many of them as of others: equal ones are found, too."""
    compiled, python = _of_numbers(sequence, "40 SECONDS")
    events = _numbers(sequence, 100, 5, WHOLE[:4])
    events += [
        Event(event.time + 100_000, 0, event.stream, event.solutions)
        for event in _numbers(sequence, 120, 6, [*WHOLE[:4], ODD[odd], integer(2**53)])
    ]
    assert agreed(compiled, python, events, (37, 1), (60, 150))


def test_what_waits_by_numbers() -> None:
    def joins(sequence: str) -> list[str]:
        return joins_of(_of_numbers(sequence, "1 MINUTES")[0])

    assert joins("A; B; C") == ["", "joined value vb", "joined value vc"]
    assert joins("A; N!; B") == ["", "joined value vb"]
    assert joins("A; M!; B") == ["", ""]
    assert joins("A; R+; S") == ["", "joined value vr", "joined value vr", ""]


@pytest.mark.parametrize("words", ["few_rows=0", "few_rows=never"])
def test_ids_of_pairs(words: str) -> None:
    """Pairs have the same id if their slots and their numbers are equal, in columns or not."""
    import numpy as np

    slots = np.array([0, 1, 0, 1, 0, 0, 0], np.int32)
    numbers = np.array([2.5, 2.5, 0.0, 2.5, -0.0, np.nan, np.inf])
    ids = JoinedIds()
    with forced(words):
        found = ids.of_rows(slots, numbers)
        again = ids.of_rows(slots[::-1].copy(), numbers[::-1].copy())[::-1]
    assert np.array_equal(found, again, equal_nan=True)
    assert np.isnan(found).tolist() == [False] * 5 + [True, False]
    assert found[1] == found[3] and found[2] == found[4]
    assert len({*found[[0, 1, 2, 6]]}) == 4 == ids.bound
