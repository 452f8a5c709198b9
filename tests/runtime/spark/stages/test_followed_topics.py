"""Topics on Spark: batches, restarts and ties give the answers of a run over a file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from spaseq.errors import RunError
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import BadInput, MessageOptions
from spaseq.runtime.job.job import LateEvent
from tests.runtime.live.live_jobs import event, expected_lines
from tests.runtime.spark.stages.driven_topics import FAR, KB, DrivenTopic, MemoryTopic
from tests.sizes import first_of


def with_ties(count: int, chance: random.Random, partition: int, partitions: int) -> list[bytes]:
    """Events of a partition in order of time; many have the times of other partitions' events."""
    steps = sorted(chance.randrange(count) * 500 for _ in range(count))
    return [
        event(n * partitions + partition, ms, f"x{chance.randrange(3)}", chance.choice(STATES))
        for n, ms in enumerate(steps)
    ]


STATES = ("hot", "cold")


MORE = [pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 12)]


@pytest.mark.parametrize("seed", [0, *MORE])
def test_any_batches_answer_as_a_run_over_a_file(tmp_path: Path, seed: int) -> None:
    chance, partitions = random.Random(seed), 3
    given = [with_ties(20, chance, n, partitions) for n in range(partitions)]
    ends = [event(900 + n, 400_000, "end", "none") for n in range(partitions)]
    expected = expected_lines(tmp_path, [e for own in given for e in own] + ends[:1])
    topic = MemoryTopic([[] for _ in given])
    settings = FileSourceSettings(max_bytes=chance.choice((3000, 10**9)), max_ahead_ms=10**15)
    run = DrivenTopic(tmp_path, topic, settings)
    while any(given):
        for there, own in zip(topic.partitions, given, strict=True):
            there += [own.pop(0) for _ in range(min(len(own), chance.randrange(9)))]
        run.batch(killed=chance.random() < 0.3)
        if chance.random() < 0.3:
            run.restart()
    for there, end in zip(topic.partitions, ends, strict=True):
        there.append(end)
    assert run.all() == expected
    assert len(expected) > 12
    assert not [side for side in run.sides if isinstance(side, BadInput | LateEvent)]
    left = [path.name for path in (tmp_path / "topics").iterdir()]
    assert len(left) <= 3 * partitions  # what no batch needs is removed


def test_blank_nodes_of_two_partitions_are_two(tmp_path: Path) -> None:
    given = [event(n, 1000, "x", state) for n, state in enumerate(("hot", "cold"))]
    topic = MemoryTopic([[text.replace(b"<http://example/x>", b"_:x")] for text in given])
    for n, partition in enumerate(topic.partitions):
        partition.append(event(8 + n, 9000, "x", "none"))
    assert DrivenTopic(tmp_path, topic).all() == []


def test_each_partition_judges_its_late_events(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(1, 9000, "x", "hot")], [event(2, 1000, "x", "hot")]])
    run = DrivenTopic(tmp_path, topic)
    run.batch()
    topic.partitions[0].append(event(3, 8000, "x", "cold"))  # behind its own partition
    topic.partitions[1].append(event(4, 2000, "x", "cold"))  # far behind the other one
    topic.partitions[1].append(event(5, 9000, "x", "none"))
    run.all()
    late = [side.event for side in run.sides if isinstance(side, LateEvent)]
    assert late == ["http://example/e3"]
    assert len(run.found) == 1
    assert '"start": "2026-01-01T00:00:01Z"' in run.found[0]


def test_a_stream_waits_for_its_slowest_partition_unless_that_is_idle(tmp_path: Path) -> None:
    pair = [event(1, 1000, "x", "hot"), event(2, 2000, "x", "cold"), event(3, 9000, "x", "none")]
    topic = MemoryTopic([pair, []])
    settings = FileSourceSettings(max_ahead_ms=10**15, idle_ms=5000)
    run = DrivenTopic(tmp_path, topic, settings)
    assert run.all() == []
    run.now_ms += 6000
    topic.partitions[0].append(event(4, 9500, "x", "none"))
    assert len(run.all()) == 1
    topic.partitions[1].append(event(5, 3000, "y", "hot"))
    run.all()
    assert [side.event for side in run.sides if isinstance(side, LateEvent)] == [
        "http://example/e5"
    ]


def test_a_new_partition_is_read_from_its_first_message(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(1, 1000, "x", "hot"), event(2, 2000, "y", "none")]])
    run = DrivenTopic(tmp_path, topic)
    assert run.all() == []
    topic.partitions.append([event(3, 1500, "z", "hot"), event(4, 2500, "x", "cold")])
    topic.partitions[1].append(event(5, 9000, "x", "none"))
    run.restart()
    run.batch()
    assert run.all() == []  # the first partition stands at 2 s
    topic.partitions[0].append(event(6, 9000, "x", "none"))
    assert len(run.all()) == 1
    assert [side.event for side in run.sides if isinstance(side, LateEvent)] == [
        "http://example/e3"  # behind the watermark that the stream had
    ]


def test_bad_messages_are_named_by_topic_partition_and_offset(tmp_path: Path) -> None:
    topic = MemoryTopic(
        [[], [event(1, 1000, "x", "hot"), b"no quads", b"<a" * 600, event(2, 2000, "x", "hot")]]
    )
    run = DrivenTopic(tmp_path, topic, messages=MessageOptions(max_bytes=1000))
    run.all()
    bad = [side for side in run.sides if isinstance(side, BadInput)]
    assert sorted(b.file.split("/road ")[1] for b in bad) == [
        "message 1 of partition 1",
        "message 2 of partition 1",
    ]
    assert any("has 1200 bytes" in b.reason for b in bad)


def test_events_without_a_time_get_that_of_their_message(tmp_path: Path) -> None:
    bare = b'<http://example/x> <http://example/is> "hot" <http://example/e1> .'
    run = DrivenTopic(tmp_path, MemoryTopic([[bare]]), messages=MessageOptions(time="message"))
    run.all()
    marks = [side.watermarks for side in run.sides if getattr(side, "watermarks", None)]
    assert list(marks[-1].values()) == [777]


def test_messages_that_the_server_dropped_unread_are_reported(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(n, n * 1000, "x", "hot") for n in range(9)]])
    topic.partitions[0][3:], rest = [], topic.partitions[0][3:]
    run = DrivenTopic(tmp_path, topic)
    run.all()
    topic.partitions[0] += rest
    topic.low[0] = 5
    run.restart()
    run.all()
    bad = [side.reason for side in run.sides if isinstance(side, BadInput)]
    assert len(bad) == 1
    assert "at offsets 3 to 4 of partition 0" in bad[0]


def test_a_topic_that_was_made_anew_is_refused(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(n, n * 1000, "x", "hot") for n in range(9)]])
    run = DrivenTopic(tmp_path, topic)
    run.all()
    del topic.partitions[0][2:]
    with pytest.raises(RunError, match="recreated"):
        run.all()


def test_nothing_is_planned_while_the_servers_are_away(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(1, 1000, "x", "hot")]])
    run = DrivenTopic(tmp_path, topic)
    run.all()
    topic.partitions[0].append(event(2, 2000, "x", "cold"))
    topic.is_away = True
    assert not run.batch()
    topic.is_away = False
    topic.partitions[0].append(event(3, 3000, "x", "none"))
    assert len(run.all()) == 1


def test_no_partition_is_idle_while_the_servers_are_away(tmp_path: Path) -> None:
    """What they keep meanwhile must not be late, nor what they get until the time is over again."""
    topic = MemoryTopic([[event(1, 9000, "y", "none")], [event(2, 1000, "x", "hot")]])
    run = DrivenTopic(tmp_path, topic, FileSourceSettings(max_ahead_ms=10**15, idle_ms=5000))
    assert run.all() == []
    topic.is_away = True
    assert not run.batch()
    run.now_ms += 60_000
    assert not run.batch()
    topic.partitions[0].append(event(3, 9500, "y", "none"))
    topic.is_away = False
    run.batch()
    run.now_ms += 4000
    topic.partitions[1] += [event(4, 2000, "x", "cold"), event(5, 9500, "y", "none")]
    assert len(run.all()) == 1
    assert not [side for side in run.sides if isinstance(side, LateEvent)]


def test_a_run_that_starts_late_leaves_out_what_is_there(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(1, 1000, "x", "hot")]], starts_late=True)
    run = DrivenTopic(tmp_path, topic)
    run.batch()
    topic.partitions[0] += [event(2, 2000, "x", "cold"), event(3, 3000, "y", "none")]
    run.all()
    assert sum(getattr(side, "events", 0) for side in run.sides) == 2


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    topic = MemoryTopic([[event(1, 1000, "x", "hot")]])
    run = DrivenTopic(tmp_path, topic, FAR)
    run.all()
    file = tmp_path / "topics" / "0-0-1.range"
    file.write_bytes(file.read_bytes()[:-3] + b"xyz")
    run.restart()
    with pytest.raises(RunError, match=r"0-0-1\.range is damaged"):
        run.batch()


OWNED = f"""SELECT ?x ?o WITHIN 1 HOURS FROM STREAM S <http://example/s> FROM NAMED <{KB}>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x <http://example/is> "hot"
  GRAPH <{KB}> {{ ?x <http://example/owner> ?o }} }} }}"""
LATER = f"""SELECT ?x ?o WITHIN 1 HOURS FROM STREAM S <http://example/s> FROM NAMED <{KB}>
WHERE {{ SEQ(B; A) DEFINE GPM B ON S {{ ?x <http://example/is> "cold" }}
  DEFINE GPM A ON S {{ ?y <http://example/is> "hot"
    OPTIONAL {{ GRAPH <{KB}> {{ ?x <http://example/owner> ?o }} }} FILTER (?x = ?y) }} }}"""


def owner(number: int) -> tuple[str, str]:
    """The name of a knowledge base, and its triple."""
    return f"kb-{number}", f'<http://example/x> <http://example/owner> "{number}" .'


@pytest.mark.each_once
@pytest.mark.parametrize("query", [OWNED, LATER], ids=["owned", "later"])
@pytest.mark.parametrize("seed", first_of(range(6), 3))
def test_batches_are_evaluated_with_what_was_current_when_they_were_planned(
    tmp_path: Path, seed: int, query: str
) -> None:
    """Also batches that are run again, and runs that start again."""
    chance, now, ms = random.Random(seed), 0, 0
    topic = MemoryTopic([[]])
    run = DrivenTopic(tmp_path, topic, query=query, refreshes=True)
    run.use(*owner(0))
    expected = list[str]()
    for number in range(20):
        ms += 1000
        state = "cold" if query == LATER and number % 2 == 0 else "hot"
        later = event(100 + number, ms + 500, "y", "none")  # brings the watermark
        topic.partitions[0] += [event(number, ms, "x", state), later]
        run.batch(killed=chance.random() < 0.4)
        expected += [str(now)] if state == "hot" else []
        if chance.random() < 0.4:
            now += 1
            run.use(*owner(now))
        if chance.random() < 0.3:
            run.restart()
    topic.partitions[0].append(event(99, ms + 10_000, "end", "none"))
    found = [json.loads(line)["bindings"]["o"]["value"] for line in run.all()]
    assert found == expected
