"""A stream log holds each message once and knows the last place of each partition."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.errors import RunError
from spaseq.logs.messages import UNNUMBERED, Message, MessageColumns, by_partition
from spaseq.logs.segment_log import SegmentLog
from spaseq.logs.stream_log import Heartbeat, Marks, Partitions, StreamLog


def message(offset: int, partition: int = 0) -> Message:
    return Message(b"%d" % offset, partition, offset, "application/n-quads", 1000 + offset)


MORE: list[tuple[int | None, bytes | None, str]] = [
    (None, None, ""),
    (-5, None, ""),
    (None, b"", ""),
    (7, b"\0k", "road.é"),
]
"""Time, key and topic."""


def entries(log: StreamLog, index: int = 0) -> list[Any]:
    """What a log has from an index on, the messages of blocks one by one."""
    reader, found = log.reader(index), list[Any]()
    while some := reader.read():
        for entry in some:
            found += entry if isinstance(entry, MessageColumns) else [entry]
    return found


def offsets(log: StreamLog) -> list[tuple[int, int]]:
    return [(m.partition, m.offset) for m in entries(log) if isinstance(m, Message)]


def test_a_message_comes_back_as_it_was(tmp_path: Path) -> None:
    given_messages = [Message(b"", 3, 2**40, "", 5), Message(b"\0\xff", 2**31, 0, "a/b", -1)]
    given_messages += [Message(b"x", 0, n, "a", 5, *more) for n, more in enumerate(MORE, 1)]
    log = StreamLog(tmp_path)
    log.append(given_messages)
    log.append(given_messages[:0])
    log.append([message(9, 9)], arrival=17)
    log.commit()
    given_messages.append(replace(message(9, 9), arrival=17))
    for index in range(8):
        assert entries(log, index) == given_messages[index:]
    assert log.log.end == 7


def test_a_log_of_an_earlier_version_is_read_and_goes_on(tmp_path: Path) -> None:
    """It has a record for each message; the version before blocks wrote it."""
    shutil.copytree(Path(__file__).with_name("earlier_log"), tmp_path, dirs_exist_ok=True)
    earlier = [
        Partitions(3),
        Message(b"a quad", 0, 7, "application/n-quads", 1000),
        Message(b"", 2, 2**40, "", 1000, -5, b"k", "road.\u00e9"),
        Heartbeat(1, 77),
        Message(b"marked", 1, 1, "", 2000),
        Message(b"\0\xff\n", 0, 8, "", 2000, None, b"", "t"),
        Marks({"m": "1"}),
    ]
    log = StreamLog(tmp_path)
    assert entries(log) == earlier
    assert log.places == {0: 8, 1: 1, 2: 2**40}
    assert log.marks == {"m": "1"}
    assert log.append([message(8), message(9)]) == 1
    log.commit()
    assert entries(log, 5) == [*earlier[5:], message(9)]
    log.close()
    assert entries(StreamLog(tmp_path)) == [*earlier, message(9)]


PAYLOADS = st.lists(st.binary(max_size=4), max_size=6)


@given(st.lists(PAYLOADS, max_size=4), st.data())
@settings(deadline=None, max_examples=60)
def test_a_block_is_the_sequence_of_its_messages(parts: list[list[bytes]], data: Any) -> None:
    given_messages = [
        [Message(p, n % 2, n, "", part, key=p or None, topic=str(n)) for n, p in enumerate(some)]
        for part, some in enumerate(parts)
    ]
    blocks = [MessageColumns.of(some) for some in given_messages]
    whole = MessageColumns.concat(blocks)
    plain = [message for some in given_messages for message in some]
    assert [*whole] == plain
    assert [[*block] for block in blocks] == given_messages
    cut = slice(*sorted(data.draw(st.tuples(st.integers(0, 25), st.integers(0, 25)))))
    part, rest = whole[cut], plain[cut]
    assert [*part] == [part[n] for n in range(len(part))] == rest
    assert part.payload.joined == b"\n".join(message.payload for message in rest)
    kept = [n for n in range(len(part)) if data.draw(st.booleans())]
    assert [*part.rows(np.array(kept, np.int64))] == [rest[n] for n in kept]
    keys = [(m.arrival, m.partition) for m in plain]
    runs = whole.runs(whole.arrival, whole.partition)
    assert [len(run) for run in runs] == [len([*some]) for _, some in groupby(keys)]
    assert [*MessageColumns.concat(runs)] == plain
    assert [*by_partition(blocks)] == sorted(plain, key=lambda m: m.partition)


def test_a_message_that_comes_again_is_in_the_log_once(tmp_path: Path) -> None:
    log = StreamLog(tmp_path)
    assert log.append([message(1), message(2), message(2), message(1, 7)]) == 3
    assert log.append([message(2), message(3)]) == 1
    log.commit()
    assert log.append([message(3), message(1, 7), message(2, 7)]) == 1
    log.close()  # the last one was not committed
    log = StreamLog(tmp_path)
    assert log.places == {0: 3, 7: 1}
    assert log.append([message(2, 7)]) == 1
    log.commit()
    assert offsets(log) == [(0, 1), (0, 2), (7, 1), (0, 3), (7, 2)]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), max_size=4), max_size=9),
    st.integers(1, 200),
)
@settings(deadline=None, max_examples=60)
def test_places_are_known_after_segments_are_dropped(
    tmp_path_factory: pytest.TempPathFactory,
    commits: list[list[tuple[int, int]]],
    segment_bytes: int,
) -> None:
    directory = tmp_path_factory.mktemp("log")
    expected: dict[int, int] = {}
    log = StreamLog(directory, segment_bytes)
    for commit in commits:
        log.append([message(offset, partition) for partition, offset in commit])
        log.commit()
        for partition, offset in commit:
            expected[partition] = max(offset, expected.get(partition, -1))
    log.log.drop_before(log.log.end)
    assert log.places == expected
    log.close()
    assert StreamLog(directory, segment_bytes).places == expected


def test_the_number_of_partitions_is_kept(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, segment_bytes=1)
    log.note_partitions(3)
    log.append([message(1)])
    log.commit()
    log.note_partitions(3)
    log.note_partitions(2)
    log.append([message(2)])
    log.commit()
    assert entries(log) == [Partitions(3), message(1), message(2)]
    log.log.drop_before(3)
    log.close()
    log = StreamLog(tmp_path)
    log.note_partitions(3)
    log.commit()
    assert log.log.end == 3
    log.note_partitions(4)
    log.note_heartbeat(2, -5)
    log.commit()
    assert log.reader(3).read() == [Partitions(4), Heartbeat(2, -5)]
    log.close()
    assert StreamLog(tmp_path).places == {0: 2}


def test_the_log_numbers_messages_without_places(tmp_path: Path) -> None:
    for first in (1, 4):
        log = StreamLog(tmp_path)
        log.append([Message(b"a", 0, UNNUMBERED), Message(b"a", 0, UNNUMBERED)])
        log.append([Message(b"a", 0, UNNUMBERED)])
        log.commit()
        assert log.places == {0: first + 2}
        log.close()
    log = StreamLog(tmp_path)
    assert offsets(log) == [(0, n) for n in range(1, 7)]
    log.close()


@pytest.mark.parametrize("segment_bytes", [1, 10**6])
def test_marks_are_committed_with_their_messages(tmp_path: Path, segment_bytes: int) -> None:
    def marked(**marks: str) -> Message:
        return Message(b"a", 0, UNNUMBERED, marks=tuple(marks.items()))

    log = StreamLog(tmp_path, segment_bytes)
    log.append([marked(a="1"), marked(a="2", b="1"), marked()])
    assert log.marks == {}
    log.commit()
    assert log.marks == {"a": "2", "b": "1"}
    log.append([marked(b="", c="3")])
    log.commit()
    log.append([marked(a="never committed")])
    found = [entry for entry in entries(log) if isinstance(entry, Marks)]
    assert found == [Marks({"a": "2", "b": "1"}), Marks({"b": "", "c": "3"})]
    log.close()
    log = StreamLog(tmp_path, segment_bytes)
    assert log.marks == {"a": "2", "c": "3"}
    log.append([marked()])
    log.commit()
    log.log.drop_before(log.log.end)
    log.close()
    log = StreamLog(tmp_path, segment_bytes)
    assert log.marks == {"a": "2", "c": "3"}
    log.close()


def test_a_log_keeps_its_name(tmp_path: Path) -> None:
    names = []
    for directory in ("a", "a", "b"):
        log = StreamLog(tmp_path / directory)
        names.append(log.identity())
        log.close()
    assert names[0] == names[1] != names[2]


def test_a_record_of_a_later_version_is_refused(tmp_path: Path) -> None:
    plain = SegmentLog(tmp_path, notes=lambda: b"[1, []]")
    plain.append([b"\x09" + bytes(40)])
    plain.commit()
    plain.close()
    with pytest.raises(RunError, match="kind 9"):
        StreamLog(tmp_path)
