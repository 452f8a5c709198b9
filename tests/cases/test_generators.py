"""The generators write the checked-in files; planted episodes match or miss as their mark says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import generate
import pyoxigraph
import pytest
from generators import CASES, Case, Dice, Generated, Planted

from .expected import STREAMS, expected
from .raw import read_stream


def episodes(case: Case, seed: int, events: int) -> Iterator[tuple[Planted, list[Generated]]]:
    """The complete episodes among the first events: their last mark and their events."""
    parts: dict[int, list[Generated]] = defaultdict(list)
    for event in islice(case.events(Dice(seed), case.default_keys), events):
        if event.planted:
            parts[event.planted.episode].append(event)
    for marked in parts.values():
        if marked[-1].planted and marked[-1].planted.last:
            yield marked[-1].planted, marked


@pytest.mark.parametrize("name", CASES)
def test_checked_in_files_are_what_the_generator_writes(name: str, tmp_path: Path) -> None:
    assert generate.main([name, "--seed", "1", "--out", str(tmp_path)]) == 0
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    kept = {p.name: p.read_bytes() for p in (STREAMS / name).iterdir() if p.name in written}
    assert kept == written
    assert sum(map(len, written.values())) <= 1_000_000


@pytest.mark.each_once
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_planted_hits_are_answers_and_near_misses_are_not(
    name: str, seed: int, tmp_path: Path
) -> None:
    case = CASES[name]
    arguments = [name, "--seed", str(seed), "--events", "2000", "--out", str(tmp_path)]
    assert generate.main(arguments) == 0
    traces = defaultdict(set)
    for answer in expected(name, tmp_path):
        events = [item["event"] for item in answer["trace"]]
        traces[answer["query"]].add(tuple(events))
    kinds = set()
    for mark, events in episodes(case, seed, 2000):
        kinds.add(mark.kind)
        planted = {event.graph for event in events}
        if mark.kind == "hit":
            assert any(set(trace) == planted for trace in traces[mark.query]), mark
        else:
            ends = events[0].graph, events[-1].graph
            assert not any((t[0], t[-1]) == ends for t in traces[mark.query]), mark
    assert len(kinds) >= 4  # the hit, and at least three near misses


@pytest.mark.parametrize("name", [*CASES, "synthetic"])
def test_a_longer_run_begins_with_the_shorter(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = [] if name == "synthetic" else ["--stream", CASES[name].streams[-1]]
    outputs = []
    for events in (300, 600):
        assert generate.main([name, "--events", str(events), *stream]) == 0
        outputs.append(capsys.readouterr().out)
    short, long = outputs
    assert short and len(short) < len(long) and long.startswith(short)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("keys", [1, 100])
def test_any_number_of_keys_keeps_streams_in_order(name: str, keys: int, tmp_path: Path) -> None:
    arguments = [name, "--keys", str(keys), "--events", "800", "--out", str(tmp_path)]
    assert generate.main(arguments) == 0
    for stream in CASES[name].streams:
        times = [event.time for event in read_stream(tmp_path / f"{stream}.nq", stream)]
        assert times == sorted(times)
    assert len(list(pyoxigraph.parse(path=str(tmp_path / "kb.ttl")))) >= keys


def test_synthetic_events_have_five_triples_on_every_stream(tmp_path: Path) -> None:
    arguments = ["synthetic", "--events", "90", "--streams", "3", "--out", str(tmp_path)]
    assert generate.main(arguments) == 0
    for name in ("s1", "s2", "s3"):
        quads = list(pyoxigraph.parse(path=str(tmp_path / f"{name}.nq")))
        sizes: dict[str, int] = defaultdict(int)
        for quad in quads:
            sizes[str(quad.graph_name)] += 1
        times = sizes.pop("DEFAULT")
        assert times == len(sizes) == 30
        assert set(sizes.values()) == {5}


def test_synthetic_selectivity_is_the_share_of_each_type() -> None:
    options = generate.arguments().parse_args(
        ["synthetic", "--types", "2", "--selectivity", "0.05", "--keys", "7"]
    )
    events = list(generate.generate(generate.chosen_case(options), 20_000, 5, 7))
    for rare in ("T1", "T2"):
        share = sum(f"ns#{rare}>" in e.text for e in events) / len(events)
        assert 0.04 < share < 0.06
    assert sum("/k/7>" in e.text for e in events) == 0
    assert sum("/k/6>" in e.text for e in events) > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["traffic"],
        ["traffic", "--stream", "sensor-9"],
        ["vessel", "--keys", "0"],
        ["synthetic", "--types", "20", "--selectivity", "0.1"],
    ],
)
def test_impossible_arguments_are_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        generate.main(arguments)
    assert exit_.value.code == 2
