"""Parts over a knowledge base with too many solutions to keep: searched from what events bind."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from spaseq.algebra.groups import translate_group
from spaseq.gpm.evaluator import GpmEvaluator
from spaseq.limits import Limits
from tests.gpm.graphs import Triple, batch_of, group_of, knowledge_of, oxigraph
from tests.hostile import run_bounded

KB0 = "http://e/kb0"
E = "<http://e/"


def devices(count: int, zones: int) -> list[Triple]:
    """Each device is in a zone and has a room, in a wing, in one of two buildings with a floor."""
    triples = []
    for i in range(count):
        triples.append((f"{E}d{i}>", f"{E}zone>", f"{E}z{i % zones}>"))
        triples.append((f"{E}d{i}>", f"{E}room>", f"{E}r{i}>"))
        triples.append((f"{E}r{i}>", f"{E}in>", f"{E}w{i % 10}>"))
    for i in range(10):
        triples.append((f"{E}w{i}>", f"{E}in>", f"{E}b{i % 2}>"))
        triples.append((f"{E}w{i}>", f"{E}floor>", f'"{i}"'))
    return triples


def orders(count: int, among: int) -> list[list[Triple]]:
    """Events with an order from one device to another; every third has a note on a device."""
    draw = random.Random(5).randrange
    events = []
    for i in range(count):
        event = [(f"{E}o{i}>", f"{E}from>", f"{E}d{draw(among)}>")]
        event.append((f"{E}o{i}>", f"{E}to>", f"{E}d{draw(among)}>"))
        if not i % 3:
            event.append((f"{E}o{i}>", f"{E}note>", f"{E}d{draw(among)}>"))
        events.append(event)
    return events


BLOCK = "GRAPH <http://e/kb0> { ?d :zone ?z . ?e :zone ?z }"
ROOMS = "GRAPH <http://e/kb0> { ?d :room/:in* ?r . ?r :floor ?f }"
PATTERNS = {
    "join": f"{{ ?o :from ?d ; :to ?e {BLOCK} }}",
    "from one end": f"{{ ?o :from ?d {BLOCK} FILTER(?e != ?d) }}",
    "MINUS": f"{{ ?o :from ?d ; :to ?e MINUS {{ {BLOCK} }} }}",
    "NOT EXISTS": f"{{ ?o :from ?d ; :to ?e FILTER NOT EXISTS {{ {BLOCK} }} }}",
    "EXISTS": f"{{ ?o :from ?d ; :to ?e FILTER EXISTS {{ {BLOCK} }} }}",
    "UNION": f"{{ ?o :from ?d ; :to ?e {{ {BLOCK} }} UNION {{ ?o :note ?n }} }}",
    "UNION of graphs": f"{{ ?o :from ?d ; :to ?e {{ {BLOCK} }} UNION {{ {ROOMS} }} }}",
    "OPTIONAL": f"{{ ?o :from ?d ; :to ?e OPTIONAL {{ {BLOCK} }} }}",
    "bound outside an OPTIONAL": f"{{ ?o :from ?d ; :to ?e OPTIONAL {{ ?o :note ?n . {BLOCK} }} }}",
    "OPTIONAL in a graph": """{ ?o :from ?d ; :to ?e GRAPH <http://e/kb0> {
        ?d :zone ?z OPTIONAL { ?e :zone ?z . ?e :room ?r } } }""",
    "MINUS in a graph": """{ ?o :from ?d ; :to ?e GRAPH <http://e/kb0> {
        ?d :zone ?z . ?e :zone ?y MINUS { ?e :zone ?z } } }""",
    "BIND in a graph": """{ ?o :from ?d ; :to ?e GRAPH <http://e/kb0> {
        ?d :zone ?z . ?e :zone ?z BIND(STR(?z) AS ?s) } }""",
    "sub-SELECT": f"{{ ?o :from ?d ; :to ?e {{ SELECT ?d ?e {{ {BLOCK} }} }} }}",
    "name hidden by a sub-SELECT": f"{{ ?o :from ?d ; :to ?z {{ SELECT ?d ?e {{ {BLOCK} }} }} }}",
    "any graph": "{ ?o :from ?d ; :to ?e GRAPH ?g { ?d :zone ?z . ?e :zone ?z } }",
    "path to a term that no graph has": """{ ?o :from ?x ; :to ?e GRAPH <http://e/kb0> {
        ?x :in* :d50 . ?d :zone ?z . ?e :zone ?z } }""",
    "path": f"{{ ?o :from ?d {ROOMS} }}",
    "path within one floor": """{ ?o :from ?d ; :to ?e GRAPH <http://e/kb0> {
        ?d :room/:in* ?w . ?e :room/:in* ?w . ?w :floor ?f FILTER(?f != "3") } }""",
}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=list(PATTERNS))
def test_it_gives_what_oxigraph_gives(pattern: str) -> None:
    """The limit is far below the block's 1,250 solutions and above those of an event."""
    kb = {KB0: devices(50, 2)}
    events = orders(24, 52)
    limits = Limits(solutions=60)
    evaluator = GpmEvaluator(translate_group(group_of(pattern)), knowledge_of(kb), limits=limits)
    found = evaluator.evaluate(batch_of(events))
    assert evaluator.take_exceeding() == {}
    rows: list[Counter[frozenset[tuple[str, str]]]] = [Counter() for _ in events]
    for i, event in enumerate(found.event.tolist()):
        codes = {v: int(column[i]) for v, column in found.columns.items()}
        rows[event][frozenset((v, found.terms[c]) for v, c in codes.items() if c >= 0)] += 1
    assert rows == oxigraph(pattern, events, kb)


def test_an_event_with_more_solutions_than_it_may_have_is_bad_alone() -> None:
    """Devices of zone z0 have 90 neighbours, others 10; an event may have 50 solutions."""
    kb = [(f"{E}d{i}>", f"{E}zone>", f"{E}z{0 if i < 90 else 1}>") for i in range(100)]
    events = [[(f"{E}o>", f"{E}from>", f"{E}d{i}>")] for i in (5, 95, 50, 99)]
    algebra = translate_group(group_of(PATTERNS["from one end"]))
    evaluator = GpmEvaluator(algebra, knowledge_of({KB0: kb}), limits=Limits(solutions=50))
    for numbers in ([0, 1, 2, 3], [1], [0]):
        found = evaluator.evaluate(batch_of([events[i] for i in numbers]))
        good = [place for place, i in enumerate(numbers) if i in (1, 3)]
        assert Counter(found.event.tolist()) == Counter(dict.fromkeys(good, 9))
        exceeding = evaluator.take_exceeding()
        assert [*exceeding] == [place for place in range(len(numbers)) if place not in good]
        assert set(exceeding.values()) <= {
            "a graph pattern has more than 50 intermediate solutions (--max-solutions)"
        }


def test_a_block_that_no_binding_leads_to_names_its_own_bound() -> None:
    algebra = translate_group(group_of(f"{{ ?o :from ?x {BLOCK} }}"))
    knowledge = knowledge_of({KB0: devices(50, 2)})
    evaluator = GpmEvaluator(algebra, knowledge, limits=Limits(solutions=60))
    evaluator.evaluate(batch_of(orders(1, 50)))
    assert evaluator.take_exceeding() == {
        0: "of the part that reads no event: a graph pattern has more than 680 intermediate "
        "solutions (--max-solutions)"
    }


HEADER = "PREFIX : <http://e/> SELECT ?o WITHIN 1 SECONDS FROM STREAM S <http://e/s> "


def written(directory: Path, count: int, zones: int, pattern: str) -> list[list[Triple]]:
    """Write the knowledge base, the stream and the query of a run; gives the events."""
    triples = (f"{' '.join(t)} .\n" for t in devices(count, zones))
    (directory / "kb.nt").write_text("".join(triples))
    events = orders(300, count)
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    with open(directory / "s.nq", "w", encoding="utf-8") as stream:
        for i, event in enumerate(events):
            stream.writelines(f"{' '.join(t)} {E}g{i}> .\n" for t in event)
            moment = f'"{i * 1000}"^^<http://www.w3.org/2001/XMLSchema#long>'
            stream.write(f"{E}g{i}> {time} {moment} .\n")
    where = f"WHERE {{ SEQ(A) DEFINE GPM A ON S {pattern} }}"
    (directory / "q.rq").write_text(f"{HEADER} FROM NAMED <{KB0}> {where}")
    return events


ON_SPARK = pytest.mark.spark(apart=True)


def run(directory: Path, *options: str) -> tuple[int, set[str], str]:
    """The status, the orders answered and stderr of `spaseq run`."""
    files = ["run", "q.rq", "--stream", "S=s.nq", "--kb", f"{KB0}=kb.nt", "--format", "csv"]
    done = run_bounded([*files, *options], cwd=directory, memory=4 << 30, seconds=300)
    rows = (line.split(",") for line in done.stdout.splitlines()[1:])
    return done.returncode, {cell for row in rows for cell in row if "/o" in cell}, done.stderr


def numbers(event: list[Triple]) -> list[int]:
    return [int(triple[2][len(E) + 1 : -1]) for triple in event]


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(8_000, marks=pytest.mark.thorough),
        pytest.param(100_000, marks=pytest.mark.thorough),
    ],
)
@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=ON_SPARK)])
def test_a_run_over_many_devices(tmp_path: Path, count: int, runtime: str) -> None:
    """8,000 devices in 5 zones are 12.8 million pairs."""
    events = written(tmp_path, count, 5, PATTERNS["join"])
    status, found, stderr = run(tmp_path, "--runtime", runtime)
    alike = [i for i, own in enumerate(events) if numbers(own)[0] % 5 == numbers(own)[1] % 5]
    assert (status, found) == (0, {f"http://e/o{i}" for i in alike}), stderr


@pytest.mark.parametrize(
    "runtime",
    ["local", pytest.param("spark", marks=[ON_SPARK, pytest.mark.thorough])],
)
def test_a_run_whose_every_event_exceeds_a_limit_has_status_3(tmp_path: Path, runtime: str) -> None:
    written(tmp_path, 300, 2, PATTERNS["from one end"])
    status, found, stderr = run(tmp_path, "--runtime", runtime, "--max-solutions", "100")
    assert (status, found) == (3, set())
    assert "all input is bad: every event exceeds a limit" in stderr
