"""`why` looks at graphs of the knowledge base as they are at the times of events."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import rdflib

import spaseq

E = "http://example/"
HEAD = f"PREFIX : <{E}>\nSELECT * WITHIN 1 HOURS FROM STREAM S :s FROM NAMED :owners\n"
OWNED = (
    HEAD + "WHERE { SEQ(A) DEFINE GPM A ON S { ?d :alarm ?x GRAPH :owners { ?d :owner :eve } } }"
)
ALARM = f'<{E}d> <{E}alarm> "x" .'
BEGIN = datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000
MINUTE = 60_000


def owned_by(*names: str) -> rdflib.Graph:
    lines = (f"<{E}d> <{E}owner> <{E}{name}> ." for name in names)
    return rdflib.Graph().parse(data="\n".join(lines), format="nt")


def report(minutes: list[int], first: str, versions: list[tuple[int, str]]) -> spaseq.Report:
    """The report on alarms at some minutes, with versions of the owner from a minute on."""
    alarms = [spaseq.Event(ALARM, int(BEGIN) + at * MINUTE) for at in minutes]
    changes = [(int(BEGIN) + at * MINUTE, owned_by(name)) for at, name in versions]
    graphs = {f"{E}owners": owned_by(first)}
    return spaseq.why(OWNED, {f"{E}s": alarms}, graphs, kb_changes={f"{E}owners": changes})


@pytest.mark.parametrize(
    ("minutes", "first", "versions", "answers"),
    [
        ([5, 15, 20, 25], "eve", [(20, "bob")], 2),
        ([5, 15, 20, 25], "bob", [(10, "eve"), (20, "bob")], 1),
        ([5, 15, 20, 25], "bob", [(20, "eve")], 2),
        ([5, 15], "bob", [(1, "eve"), (5, "bob"), (15, "eve")], 1),
    ],
)
def test_each_event_sees_the_graph_of_its_time(
    minutes: list[int], first: str, versions: list[tuple[int, str]], answers: int
) -> None:
    assert report(minutes, first, versions).answers == answers


@pytest.mark.parametrize(
    ("minutes", "first", "versions", "says"),
    [
        ([30], "eve", [(20, "bob")], ":d :owner :eve held until 2026-01-01T00:20"),
        ([30, 40], "eve", [(10, "eve"), (20, "bob"), (35, "ann")], "held until 2026-01-01T00:20"),
        ([5], "bob", [(20, "ann"), (30, "eve")], ":d :owner :eve holds from 2026-01-01T00:30 on"),
        ([30], "ann", [(20, "bob")], None),
    ],
)
def test_a_triple_that_held_before_or_after_is_named(
    minutes: list[int], first: str, versions: list[tuple[int, str]], says: str | None
) -> None:
    found = report(minutes, first, versions)
    (cause,) = found.causes
    assert found.answers == 0
    assert (says in cause.text) if says else ("held" not in cause.text)


KEEPER = f"""PREFIX : <{E}>
MAINTAIN GRAPH :owners AS DELETE {{ ?device :owner ?any }} INSERT {{ ?device :owner ?owner }}
WITHIN 1 HOURS FROM STREAM Moves :moves
WHERE {{ SEQ(A) DEFINE GPM A ON Moves {{ ?device :handedTo ?owner }} }}"""


@pytest.mark.parametrize(
    ("alarms", "answers", "says"),
    [
        ([5, 9, 15, 20, 35], 3, None),
        ([15, 20, 29], 0, ":d :owner :eve held until 2026-01-01T00:10"),
        ([10, 30], 1, None),
    ],
)
def test_maintained_graphs_are_as_they_are_at_each_event(
    alarms: list[int], answers: int, says: str | None
) -> None:
    moves = [(10, "ann"), (20, "bob"), (30, "eve")]
    given = {
        f"{E}s": [spaseq.Event(ALARM, int(BEGIN) + at * MINUTE) for at in alarms],
        f"{E}moves": [
            spaseq.Event(f"<{E}d> <{E}handedTo> <{E}{who}> .", int(BEGIN) + at * MINUTE)
            for at, who in moves
        ],
    }
    found = spaseq.why([OWNED, KEEPER], given, {f"{E}owners": owned_by("eve")})
    assert found.answers == answers
    assert says is None or says in found.causes[0].text


WINDOWED = f"""PREFIX : <{E}>
SELECT ?d FROM STREAM S :s FROM WINDOW W ON S RANGE 10 SECONDS SLIDE 10 SECONDS
FROM NAMED :owners WHERE {{ SEQ(A) DEFINE GPM A ON W {{
    {{ SELECT ?d (COUNT(*) AS ?n) {{ EVENT {{ ?d :alarm ?x }} }} GROUP BY ?d }}
    GRAPH :owners {{ ?d :owner :eve }} }} }}"""


@pytest.mark.parametrize(
    ("seconds", "versions", "answers"),
    [
        ([1, 12, 22, 31], [], 4),
        ([1, 12, 22, 31], [(15, "ann")], 1),
        ([1, 12, 22, 31], [(20, "ann")], 1),
        ([1, 12, 22, 31], [(21, "ann"), (25, "eve")], 4),
        ([1, 12, 22, 31], [(31, "ann")], 3),
        ([1, 12, 22, 31], [(5, "ann"), (35, "eve")], 1),
        ([1, 12, 22, 31], [(41, "ann")], 4),
    ],
)
def test_a_window_event_sees_the_graph_of_its_close(
    seconds: list[int], versions: list[tuple[int, str]], answers: int
) -> None:
    """Windows close at 10, 20, 30 and 40 seconds."""
    alarms = [spaseq.Event(ALARM, second * 1_000) for second in seconds]
    changes = {f"{E}owners": [(second * 1_000, owned_by(name)) for second, name in versions]}
    graphs = {f"{E}owners": owned_by("eve")}
    assert spaseq.why(WINDOWED, {f"{E}s": alarms}, graphs, kb_changes=changes).answers == answers


@pytest.mark.parametrize(
    ("seconds", "first", "versions", "says"),
    [
        ([1], "eve", [(5, "ann")], "held until 1970-01-01T00:00:05"),
        ([1], "eve", [(10, "ann")], "held until 1970-01-01T00:00:10"),
        ([1, 12], "bob", [(5, "eve"), (8, "ann"), (35, "bob")], "held until 1970-01-01T00:00:08"),
        ([1], "bob", [(5, "ann"), (11, "eve")], "holds from 1970-01-01T00:00:11 on"),
        ([31], "eve", [(5, "ann"), (20, "eve"), (33, "bob")], "held until 1970-01-01T00:00:33"),
        ([1, 12], "bob", [(15, "ann")], None),
    ],
)
def test_what_held_before_or_after_the_closes_is_named(
    seconds: list[int], first: str, versions: list[tuple[int, str]], says: str | None
) -> None:
    """The times of the events are not those at which the graph is looked at."""
    alarms = [spaseq.Event(ALARM, second * 1_000) for second in seconds]
    changes = {f"{E}owners": [(second * 1_000, owned_by(name)) for second, name in versions]}
    graphs = {f"{E}owners": owned_by(first)}
    found = spaseq.why(WINDOWED, {f"{E}s": alarms}, graphs, kb_changes=changes)
    assert found.answers == 0
    texts = [cause.text for cause in found.causes]
    assert any(says in text for text in texts) if says else not any("hel" in t for t in texts)


JOINED = HEAD + (
    "WHERE { SEQ(A) DEFINE GPM A ON S "
    "{ ?d :alarm ?x GRAPH :owners { ?d :owner ?o } FILTER (?o = ?x) } }"
)


def test_conditions_see_the_value_of_each_event() -> None:
    """The owner at each event is another one than the alarm's, though it is its owner at last."""
    alarms = [
        spaseq.Event(f"<{E}d> <{E}alarm> <{E}{name}> .", int(BEGIN) + at * MINUTE)
        for at, name in ((5, "bob"), (15, "bob"), (25, "ann"))
    ]
    changes = [
        (int(BEGIN) + at * MINUTE, owned_by(name)) for at, name in ((10, "ann"), (20, "bob"))
    ]
    graphs = {f"{E}owners": owned_by("eve")}
    found = spaseq.why(JOINED, {f"{E}s": alarms}, graphs, kb_changes={f"{E}owners": changes})
    assert found.answers == 0
    (cause,) = found.causes
    assert (cause.kind, cause.count, cause.example) == ("filter-false", 3, "?o = :eve, ?x = :bob")
