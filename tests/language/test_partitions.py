"""The events of a partition (docs/meaning.md, Partition)."""

from __future__ import annotations

import pytest

import spaseq
from spaseq.compile import compile_query
from tests.language.test_tables import RUNTIMES

QUERY = """PREFIX : <http://example/>
SELECT ?a ?b WITHIN 1 HOURS PARTITION BY (?k)
FROM STREAM S :S FROM STREAM T :T
WHERE {{ SEQ({sequence})
  DEFINE GPM A ON S {{ :it :a ?a ; :key ?k }}
  DEFINE GPM B ON S {{ :it :b ?b ; :key ?k }}
  {gpm} }}"""


def graph(predicate: str) -> str:
    """The triples of an event with a key."""
    return f'<http://example/it> <http://example/{predicate}> "1" ; <http://example/key> "k" .'


@pytest.mark.each_once
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(
    ("gpm", "answers"),
    [
        ("", 1),
        ("DEFINE GPM X ON S { :it :x ?x ; :key ?k }", 0),
        ("DEFINE GPM X ON S { :it :x ?x ; :key ?k FILTER(?x > 5) }", 0),
        ("DEFINE GPM X ON S { :it :x ?x OPTIONAL { :it :key ?k } }", 0),
        ("DEFINE GPM X ON S { :it :x ?x OPTIONAL { :it :nokey ?k } }", 1),
        ("DEFINE GPM X ON S { :it :x ?x }", 1),
        ("DEFINE GPM X ON T { :it :x ?x ; :key ?k }", 1),
    ],
)
def test_a_gpm_outside_the_sequence_counts(
    gpm: str, answers: int, runtime: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An event that only an unused GPM matches can stand between A and B."""
    stream = tmp_path_factory.mktemp("stream") / "s.trig"
    stream.write_text(
        "".join(
            f"<http://example/g{i}> {{ {graph(predicate)} "
            f"<http://example/g{i}> <http://www.w3.org/ns/prov#generatedAtTime> {i} . }}\n"
            for i, predicate in enumerate("axb")
        )
    )
    query = QUERY.format(sequence="A, B", gpm=gpm)
    found = spaseq.run(query, {"S": str(stream), "T": []}, runtime=runtime)
    assert len(list(found)) == answers


def test_a_negated_gpm_that_may_bind_the_variables_counts() -> None:
    """The event x is in the partition of its key: the GPM X has a solution that binds ?k."""
    gpm = "DEFINE GPM X ON S { :it :x ?x OPTIONAL { :it :key ?k } }"
    engine = spaseq.Engine(QUERY.format(sequence="A, X!, B", gpm=gpm))
    found = []
    for i, predicate in enumerate("axb"):
        first, second = graph(predicate).split(" ; ")
        found += engine.push("S", f"{first} .\n<http://example/it> {second}", time=1000 * i)
    found += engine.close()
    assert found == []


def test_readers_keep_what_decides_partitions() -> None:
    gpm = "DEFINE GPM X ON S { :it :x ?x ; :key ?k }"
    strict = compile_query(QUERY.format(sequence="A, B", gpm=gpm))
    relaxed = compile_query(QUERY.format(sequence="A; B", gpm=gpm))
    assert "http://example/x" in (strict.inputs.predicates[0] or ())
    assert "http://example/x" not in (relaxed.inputs.predicates[0] or ())
    assert [own.gpm for own in strict.patterns.memberships] == ["A", "B", "X"]
    assert relaxed.patterns.memberships == ()
