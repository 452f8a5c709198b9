"""The identity of a checkpoint, and output files that drop a batch that runs again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.compile import CompileOptions, compile_query
from spaseq.errors import RunError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import StageOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following.checkpoint import Checkpoint, OutputPositions
from spaseq.sources.files import FileSource
from spaseq.storage.checksums import read_json, write_json
from tests.storage.damage import damaged


@dataclass(frozen=True)
class Identity:
    """The part of a query's identity that a checkpoint uses."""

    name: str


@dataclass(frozen=True)
class Signature:
    """The part of a query's signature that a checkpoint uses."""

    fingerprint: str
    canonical: str


@dataclass(frozen=True)
class Inputs:
    """The part of a query's inputs that a job uses."""

    streams: tuple[()] = ()


@dataclass(frozen=True)
class Plan:
    """The part of a plan that a job and a checkpoint use."""

    identity: Identity
    signature: Signature
    evaluator: str
    levels: tuple[()] = ()
    inputs: Inputs = Inputs()
    shape: None = None


def plan(name: str, text: str, evaluator: str = "registers") -> Plan:
    return Plan(Identity(name), Signature(f"{text} {evaluator}", text), evaluator)


def job_of(*plans: Plan, paths: tuple[str, ...] = ("/in",)) -> Job:
    chosen: Any = plans or (plan("q", "1"),)
    return Job(chosen, (FileSource(StreamOptions("http://s", paths)),), KnowledgeBase.empty())


def test_the_same_job_resumes_with_the_buckets_of_the_first_run(tmp_path: Path) -> None:
    first = Checkpoint.open(tmp_path / "c", job_of(), 5000, buckets=8)
    again = Checkpoint.open(tmp_path / "c", job_of(), 5000)
    assert (first.resumed, again.resumed) == (False, True)
    assert (again.buckets, again.id) == (8, first.id)
    with pytest.raises(UsageError, match="it has 8 buckets, not 16"):
        Checkpoint.open(tmp_path / "c", job_of(), 5000, buckets=16)


@pytest.mark.parametrize(
    ("job", "watermark_ms", "change"),
    [
        (job_of(plan("q", "2")), 0, "query q has changed"),
        (job_of(plan("p", "1")), 0, "query p is new; query q is missing"),
        (job_of(paths=("/elsewhere",)), 0, "stream http://s has changed"),
        (job_of(), 1, "the watermark was 0 ms and is now 1 ms"),
    ],
)
def test_another_job_is_refused_with_what_has_changed(
    tmp_path: Path, job: Job, watermark_ms: int, change: str
) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8)
    with pytest.raises(UsageError, match=change):
        Checkpoint.open(tmp_path, job, watermark_ms, 8)


def of_earlier_version(directory: Path, *, without: str | None = None) -> None:
    """Let a version have made the checkpoint that knew fingerprints only, and no state's format."""
    stored = read_json(directory / "spaseq.json", dict)
    queries = stored.pop("fingerprints")
    kept = {name: value for name, value in stored.items() if name not in ("state", without)}
    write_json(directory / "spaseq.json", {**kept, "version": 2, "queries": queries})


def test_a_query_that_another_evaluator_runs_is_refused_with_the_cause(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8)
    now = job_of(plan("q", "1", "compiled-registers"))
    cause = "q ran with the evaluator registers, and this version .* run it with compiled-registers"
    with pytest.raises(UsageError, match=f"{cause}.* Let the version that wrote it read its input"):
        Checkpoint.open(tmp_path, now, 0, 8)
    of_earlier_version(tmp_path)
    with pytest.raises(UsageError, match=cause):
        Checkpoint.open(tmp_path, now, 0, 8)
    Checkpoint.open(tmp_path, job_of(), 0, 8)  # its state may be readable


def test_an_early_checkpoint_names_no_evaluators(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8)
    of_earlier_version(tmp_path, without="evaluators")
    cause = "another version of spaseq ran q with another evaluator than compiled-registers"
    with pytest.raises(UsageError, match=f"query q has changed, or {cause}"):
        Checkpoint.open(tmp_path, job_of(plan("q", "1", "compiled-registers")), 0, 8)


def test_a_limit_is_refused_if_a_query_has_been_split_by_a_key(tmp_path: Path) -> None:
    """A limit counts the answers of all keys together, but not those of all partitions."""
    text = """SELECT * WITHIN 1 MINUTES {} FROM STREAM S <http://s> WHERE {{
        SEQ(A; B) DEFINE GPM A ON S {{ ?x a ?v }} DEFINE GPM B ON S {{ ?x a ?w }} }}"""
    plans: list[Any] = [compile_query(text.format(p)) for p in ("", "PARTITION BY (?x)")]
    keyed, partitioned = map(job_of, plans)
    limit = StageOptions(limit_per_event=1)
    Checkpoint.open(tmp_path / "keyed", keyed, 0, 8)
    with pytest.raises(UsageError, match="without --limit-per-event, and is resumed with it"):
        Checkpoint.open(tmp_path / "keyed", replace(keyed, options=limit), 0, 8)
    Checkpoint.open(tmp_path / "partitioned", partitioned, 0, 8)
    Checkpoint.open(tmp_path / "partitioned", replace(partitioned, options=limit), 0, 8)
    for job in (replace(keyed, options=limit), keyed):  # the split stays as it is
        assert Checkpoint.open(tmp_path / "limited", job, 0, 8).limited


def test_other_knowledge_is_refused(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8)
    other = KnowledgeBase.of_quads([], [], ["http://kb"], {})
    with pytest.raises(UsageError, match="the knowledge base has changed"):
        Checkpoint.open(tmp_path, replace(job_of(), knowledge=other), 0, 8)


def test_another_lift_of_a_dataframe_is_refused(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8, {"http://s": ["1"], "http://t": ["2"]})
    Checkpoint.open(tmp_path, job_of(), 0, 8, {"http://s": ["1"], "http://t": ["2"]})
    change = "the lift of stream http://s has changed"
    with pytest.raises(UsageError, match=f"cannot be resumed: {change}. Start again with an empty"):
        Checkpoint.open(tmp_path, job_of(), 0, 8, {"http://s": ["9"], "http://t": ["2"]})
    manifest = tmp_path / "spaseq.json"
    older = read_json(manifest, dict)
    del older["lifts"]
    write_json(manifest, older)  # an older checkpoint does not know its lifts
    Checkpoint.open(tmp_path, job_of(), 0, 8, {"http://s": ["9"], "http://t": ["2"]})


def test_another_format_version_is_refused(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8)
    manifest = tmp_path / "spaseq.json"
    write_json(manifest, {**read_json(manifest, dict), "version": 0})
    with pytest.raises(UsageError, match="format version 0"):
        Checkpoint.open(tmp_path, job_of(), 0, 8)


def test_a_manifest_of_an_earlier_version_has_no_checksum(tmp_path: Path) -> None:
    first = Checkpoint.open(tmp_path, job_of(), 0, 8)
    manifest = tmp_path / "spaseq.json"
    manifest.write_text(json.dumps(read_json(manifest, dict), indent=2) + "\n")
    assert Checkpoint.open(tmp_path, job_of(), 0).id == first.id


@pytest.mark.thorough
def test_a_damaged_manifest_is_named_and_refused(tmp_path: Path) -> None:
    Checkpoint.open(tmp_path, job_of(), 0, 8)
    manifest = tmp_path / "spaseq.json"
    for bad in damaged(manifest.read_bytes()):
        manifest.write_bytes(bad)
        with pytest.raises(RunError, match=r"spaseq\.json is damaged"):
            Checkpoint.open(tmp_path, job_of(), 0)


def test_damaged_positions_are_refused_before_output_is_cut(tmp_path: Path) -> None:
    with (tmp_path / "out.jsonl").open("a") as file:
        positions = OutputPositions(tmp_path, {"out": file})
        positions.begin(3)
        file.write("three\n")
        positions.end(3)
        kept = tmp_path / "output.json"
        for bad in damaged(kept.read_bytes()):
            kept.write_bytes(bad)
            with pytest.raises(RunError, match=r"output\.json is damaged"):
                positions.begin(3)
    assert (tmp_path / "out.jsonl").read_text() == "three\n"


def test_a_directory_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(UsageError, match="not a checkpoint"):
        Checkpoint.open(tmp_path, job_of(), 0, 8)


def test_a_batch_that_is_run_again_replaces_what_it_had_written(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with out.open("a") as file:
        positions = OutputPositions(tmp_path, {"out": file})
        positions.begin(0)
        file.write("zero\n")
        positions.end(0)
        positions.begin(1)
        file.write("one, hal")
    with out.open("a") as file:
        positions = OutputPositions(tmp_path, {"out": file})
        positions.begin(1)
        file.write("one\n")
        positions.end(1)
        positions.begin(2)
        file.write("two\n")
        positions.end(2)
    assert out.read_text() == "zero\none\ntwo\n"


def test_a_checkpoint_of_older_versions_has_no_families(tmp_path: Path) -> None:
    """Its state is that of each query by itself."""
    text = """PREFIX : <http://e/> SELECT * WITHIN 1 SECONDS FROM STREAM S <http://e/s>
        WHERE { SEQ(A) DEFINE GPM A ON S { ?x :v %d } }"""
    options = CompileOptions(several=True)
    plans: Any = [compile_query(text % i, f"q{i}", options) for i in range(9)]
    first = Checkpoint.open(tmp_path, job_of(*plans), 0)
    assert [len(first.units(plans).plans), len(first.units(plans).members(0))] == [1, 9]
    first.release()
    manifest = tmp_path / "spaseq.json"
    known = read_json(manifest, dict)
    assert known.pop("families") == [[f"q{i}" for i in range(9)]]
    write_json(manifest, {**known, "families": [["q0", "q1"]]})
    with pytest.raises(UsageError, match="ran other queries as one"):
        Checkpoint.open(tmp_path, job_of(*plans), 0)
    write_json(manifest, known)
    older = Checkpoint.open(tmp_path, job_of(*plans), 0)
    assert len(older.units(plans).plans) == 9
    older.release()
