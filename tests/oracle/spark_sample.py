"""Many examples in one run of the Spark runtimes, each with separate streams.

All queries run in one job, so the start of a session and the fixed costs of a batch occur only
once. The groups of stage 2 are (query, bucket).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from spaseq.algebra.answers import Answer
from spaseq.errors import QueryError
from spaseq.kb.load import load_kb
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.sources.files import FileSource
from tests.oracle.agreement import comparables, expected_of
from tests.oracle.choices import seeded
from tests.oracle.draw_events import NS, Arrivals, knowledge, term
from tests.oracle.engine import parsed
from tests.oracle.model import TooBig
from tests.oracle.patterns import nt
from tests.oracle.report import disagreement
from tests.oracle.strategies import Case, case

LONG_AFTER = 10**9
"""Time in ms of an event that closes all windows."""


@dataclass(frozen=True)
class Example:
    """A case, the oracle's answers, and the plan of an evaluator that can run the case."""

    case: Case
    expected: list[Any]
    plan: QueryPlan


def sample(size: int, seed: str) -> list[Example]:
    """`size` examples that engine and oracle both accept; half of them have answers."""
    found: list[Example] = []
    silent = 0
    for number in count():
        if len(found) == size:
            return found
        drawn = apart(case(seeded(f"{seed}:{number}")), number)
        try:
            query, plans = parsed(drawn.query)
            expected = expected_of(query, drawn)
        except (TooBig, QueryError):
            continue
        if not expected:
            if silent >= size // 2:
                continue
            silent += 1
        plan = Random(f"{seed}/{number}").choice(list(plans.values()))
        plan = replace(plan, identity=replace(plan.identity, name=str(number)))
        found.append(Example(drawn, expected, plan))
    raise AssertionError


def apart(drawn: Case, number: int) -> Case:
    """The case with unique stream IRIs.

    N-Quads cannot express an event without triples; such an event gets a triple that no query uses.
    """
    streams = {
        iri.replace(NS, f"{NS}{number}/"): [
            (time, name, triples or [(term("nothing"),) * 3]) for time, name, triples in events
        ]
        for iri, events in drawn.streams.items()
    }
    query = drawn.query.replace(f"<{NS}stream/", f"<{NS}{number}/stream/")
    return replace(drawn, query=query, streams=streams)


def nquads(events: Arrivals) -> str:
    """Events as N-Quads, each followed by its time."""
    lines = []
    for time, iri, triples in events:
        lines += [f"{nt(s)} {nt(p)} {nt(o)} <{iri}> ." for s, p, o in triples]
        stamp = f'"{time}"^^<http://www.w3.org/2001/XMLSchema#long>'
        lines.append(f"<{iri}> <http://www.w3.org/ns/prov#generatedAtTime> {stamp} .")
    return "".join(f"{line}\n" for line in lines)


def job(examples: Sequence[Example], directory: Path) -> Job:
    """A run of all examples."""
    kb = load_kb(list(knowledge().items()))
    plans = tuple(e.plan for e in examples)
    return Job(plans, directories([e.case for e in examples], directory), kb)


def directories(cases: Sequence[Case], directory: Path) -> tuple[StreamOptions, ...]:
    """A directory for each stream."""
    streams = []
    for each in cases:
        for iri in each.streams:
            place = _place(directory, iri)
            place.mkdir(parents=True)
            streams.append(FileSource(StreamOptions(iri, (str(place),))))
    return tuple(streams)


def _place(directory: Path, iri: str) -> Path:
    return directory / iri.removeprefix(NS)


def deliver(examples: Sequence[Example], directory: Path) -> None:
    """Write all events to the directory."""
    for example in examples:
        for iri, events in example.case.streams.items():
            put(_place(directory, iri) / "all.nq", events)


def put(path: Path, events: Arrivals) -> None:
    """Write a file that appears atomically, as required in a followed directory."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(nquads(events), encoding="utf-8")
    unfinished.rename(path)


def deliver_in_turns(
    cases: Sequence[Case], directory: Path, turn: int, turns: int, random: Random
) -> None:
    """Write more of the events to the directory, in up to three files per stream.

    The last turn writes all remaining events and an event that closes all windows. Cuts may fall
    between events of equal time.
    """
    for each in cases:
        for iri, events in each.streams.items():
            place = _place(directory, iri)
            done = place / ".taken"
            at = int(done.read_text()) if done.exists() else 0
            last = turn == turns - 1
            upto = len(events) if last else random.randint(at, len(events))
            rest = list(events[at:upto])
            if last:
                rest.append((LONG_AFTER, f"{iri}/end", [(term("nothing"),) * 3]))
            done.write_text(str(upto))
            for part in count():
                if not rest:
                    break
                size = len(rest) if part == 2 else random.randint(1, len(rest))
                put(place / f"{turn}-{part}.nq", rest[:size])
                rest = rest[size:]


def disagreements(examples: Sequence[Example], answers: Sequence[tuple[int, Answer]]) -> list[str]:
    """Reports on wrong answers of a run, one page per example."""
    pages = []
    for number, example in enumerate(examples):
        found = [answer for query, answer in answers if query == number]
        if comparables(found) != comparables(example.expected):
            page = disagreement(example.case, example.expected, found)
            pages.append(
                f"case {example.plan.identity.name} by {example.plan.sequence.evaluator.name}{page}"
            )
    return pages
