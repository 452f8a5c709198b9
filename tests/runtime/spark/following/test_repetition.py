"""From which batch of the file source log the state of a checkpoint is rebuilt, or why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.compile import compile_query
from spaseq.errors import RunError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import FileSourceSettings
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.log_depth import depths
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following import checkpoint as checkpoint_module
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.sources.files import FileSource, GrowingFiles
from spaseq.storage.checksums import read_json, write_json
from tests.runtime.live.live_jobs import IRI, QUERY, event

COUNTED = QUERY.replace("5 SECONDS", "4 EVENTS")
SESSION = f"""SELECT ?n FROM STREAM S <{IRI}> FROM WINDOW W ON S SESSION 1 SECONDS
WHERE {{ SEQ(A) DEFINE GPM A ON W {{
  {{ SELECT (COUNT(*) AS ?n) {{ EVENT {{ ?x <http://example/is> "hot" }} }} }} }} }}"""
ASKING = QUERY.replace("{ ?x", "{ SERVICE <http://example/ask> { ?x a ?c } ?x", 1)


class Left:
    """What a run has left over 20 batches, each a file with an event, 2 seconds apart.

    Spark has committed the batches up to 17, each by itself, and begun the next one.
    """

    def __init__(self, place: Path, query: str = QUERY, **options: Any) -> None:
        self.place, self.state = place / "in", place / "state"
        self.place.mkdir()
        for number in range(20):
            path = self.place / f"{number:02}.nq"
            path.write_bytes(event(number, number * 2000, "x", "hot"))
        self.job = Job(
            (compile_query(query, "q"),),
            (FileSource(StreamOptions(IRI, (str(self.place),))),),
            KnowledgeBase.empty(),
            **options,
        )
        Checkpoint.open(self.state, self.job, 0, 8).release()
        self.log = FileSourceLog(
            self.state / "arrivals",
            [GrowingFiles.at(StreamOptions(IRI, (str(self.place),)))],
            FileSourceSettings(max_bytes=1),
            depths=depths(self.job.plans, [IRI]),
        )
        for number in range(20):
            assert self.log.plan_batch(number) == number + 1
        for number in range(18):
            self.spark("offsets", number)
        for number in range(17):
            self.spark("commits", number)
        manifest = self.state / "spaseq.json"
        write_json(manifest, {**read_json(manifest, dict), "state": [1, 1]})

    def spark(self, kind: str, number: int) -> None:
        path = self.state / "spark" / kind / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'v1\n{{}}\n{{"batch":{number + 1}}}')

    def dropped_to(self, first: int) -> None:
        """Let the log have dropped its first batches."""
        for number in range(1, first):
            (self.state / "arrivals" / f"{number}.json").unlink()

    def open(self, job: Job | None = None, **options: Any) -> Checkpoint:
        opened = Checkpoint.open(self.state, job or self.job, 0, makes_anew=True, **options)
        opened.release()
        return opened


def test_the_batches_of_the_open_windows_are_repeated(tmp_path: Path) -> None:
    """The watermark is that of the event at 32 s, so matches begin after 27 s (batch 15)."""
    left = Left(tmp_path)
    first = left.open()
    assert first.repetition == (14, 17)
    assert first.lacks_state
    assert not (left.state / "spark").exists()
    left.dropped_to(14)
    again = left.open()
    assert (again.repetition, again.id) == ((14, 17), first.id)
    left.spark("offsets", 15)
    left.spark("commits", 15)
    assert [again.left_to_repeat(15), again.lacks_state] == [1, True]
    left.spark("offsets", 16)
    left.spark("commits", 16)
    assert [again.left_to_repeat(16), again.lacks_state] == [0, False]
    left.spark("offsets", 17)
    assert again.left_to_repeat(17) is None


@pytest.mark.parametrize(
    ("query", "begin"),
    [
        (COUNTED, 13),
        (QUERY.replace("FROM", "AFTER MATCH SKIP TO NEXT EVENT FROM", 1), 0),
        (SESSION, 0),
    ],
)
def test_other_states_need_other_batches(tmp_path: Path, query: str, begin: int) -> None:
    assert Left(tmp_path, query).open().repetition == (begin, 17)


def shorten(left: Left) -> None:
    (left.place / "14.nq").write_text("")


GONE: dict[str, tuple[str, Callable[[Left], object], str]] = {
    "log": (QUERY, lambda left: left.dropped_to(15), "no longer has all events"),
    "counted log": (COUNTED, lambda left: left.dropped_to(15), "no longer has all events"),
    "session": (SESSION, lambda left: left.dropped_to(2), "no longer has all events"),
    "file": (QUERY, lambda left: (left.place / "14.nq").unlink(), "14.nq is gone"),
    "bytes": (QUERY, shorten, "14.nq is shorter than it was"),
}


@pytest.mark.parametrize("what", GONE)
def test_where_events_are_gone_it_is_refused_and_stays_as_it_is(tmp_path: Path, what: str) -> None:
    query, spoil, reason = GONE[what]
    left = Left(tmp_path, query)
    spoil(left)
    before = (left.state / "spaseq.json").read_bytes()
    with pytest.raises(UsageError, match=rf"format \[1, 1\].*{reason}.*Let the version that"):
        left.open()
    assert (left.state / "spaseq.json").read_bytes() == before
    assert (left.state / "spark" / "offsets" / "17").exists()


def test_files_that_no_open_window_needs_may_be_gone(tmp_path: Path) -> None:
    left = Left(tmp_path, QUERY.replace("FROM", "AFTER MATCH SKIP TO NEXT EVENT FROM", 1))
    (left.place / "05.nq").unlink()
    assert left.open().repetition == (6, 17)


def test_endpoints_that_are_asked_are_in_no_log(tmp_path: Path) -> None:
    left = Left(tmp_path, ASKING)
    with pytest.raises(UsageError, match="query q asks endpoints, whose answers are in no log"):
        left.open()


def test_a_state_of_unknown_format_stays_if_it_cannot_be_made_anew(tmp_path: Path) -> None:
    """A worker that reads it finds its format."""
    left = Left(tmp_path)
    manifest = left.state / "spaseq.json"
    stored = read_json(manifest, dict)
    queries = {"version": 2, "queries": stored["fingerprints"], "state": None}
    write_json(manifest, stored | queries)
    left.dropped_to(17)
    assert left.open().repetition == (0, 0)
    assert (left.state / "spark").exists()


def test_killed_before_all_is_thrown_away_it_goes_on_with_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output of the batch that Spark has begun is cut when the batch is repeated."""
    left = Left(tmp_path)
    write_json(left.state / "output.json", [17, {"out": 5}])

    def killed(*_: object) -> None:
        raise RunError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint_module, "begin_anew", killed)
        with pytest.raises(RunError, match="killed"):
            left.open()
    assert (left.state / "spark").exists()
    left.open()
    assert read_json(left.state / "output.json", list) == [-1, {"out": 5}]
    left.open()  # nothing was written since
    manifest = left.state / "spaseq.json"
    write_json(manifest, {**read_json(manifest, dict), "state": [2, 2]})
    assert left.open().repetition == (14, 17)
    assert read_json(left.state / "output.json", list) == [-1, {"out": 5}]


def test_output_of_a_committed_batch_is_not_cut(tmp_path: Path) -> None:
    left = Left(tmp_path)
    write_json(left.state / "output.json", [16, {"out": 5}])
    left.open()
    assert not (left.state / "output.json").exists()


def test_a_damaged_offset_is_named(tmp_path: Path) -> None:
    left = Left(tmp_path)
    (left.state / "spark" / "offsets" / "16").write_text(json.dumps("v1"))
    with pytest.raises(RunError, match=r"offsets/16 is damaged"):
        left.open()


def test_streams_in_another_order_are_refused(tmp_path: Path) -> None:
    left = Left(tmp_path)
    manifest = left.state / "spaseq.json"
    stored = read_json(manifest, dict)
    other = {"http://other": stored["streams"][IRI]}
    write_json(manifest, {**stored, "streams": stored["streams"] | other})
    two = FileSource(StreamOptions("http://other", (str(left.place),)))
    job = replace(left.job, streams=(two, *left.job.streams))
    with pytest.raises(UsageError, match="the streams come in another order"):
        left.open(job)
