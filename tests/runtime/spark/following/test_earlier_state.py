"""A followed checkpoint whose state another version wrote goes on: its state is rebuilt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from spaseq.api.run import answers_of
from spaseq.compile import CompileOptions, compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import NO_CACHE, load_kb
from spaseq.kb.watched_graphs import KbWatch
from spaseq.options import FileSourceSettings, FollowOptions, RuntimeOptions, ServiceOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following import follow as follow_module
from spaseq.runtime.spark.following import logged_output
from spaseq.runtime.spark.following.follow import run
from spaseq.sinks.answer_json import answer_json, partial_json
from spaseq.sources.files import FileSource
from spaseq.storage.checksums import read_json, write_json
from tests.connectors.hook import Hook
from tests.runtime.live.live_jobs import IRI, QUERY, event, events, lines
from tests.runtime.machines import put
from tests.sizes import first_of

pytestmark = pytest.mark.spark

WINDOW = f"""SELECT ?n FROM STREAM S <{IRI}> FROM WINDOW W ON S RANGE 3 SECONDS SLIDE 1 SECONDS
WHERE {{ SEQ(A) DEFINE GPM A ON W {{
  {{ SELECT (COUNT(*) AS ?n) {{ EVENT {{ ?x <http://example/is> "hot" }} }} }} }} }}"""
SKIP = "AFTER MATCH SKIP PAST LAST EVENT"
KB = "http://example/kb"
NAMED = QUERY.replace("WHERE", f"FROM NAMED <{KB}> WHERE").replace("SELECT ?x", "SELECT ?x ?n")
QUERIES = {
    "plain": QUERY,
    "absent": QUERY.replace("SEQ(A; B)", "SEQ(A; B!)"),
    "keyed": QUERY.replace("FROM", "PARTITION BY (?x) FROM", 1),
    "counted": QUERY.replace("5 SECONDS", "20 EVENTS"),
    "skipping": QUERY.replace("FROM", f"{SKIP} FROM", 1),
    "muting": QUERY.replace("FROM", "AFTER MATCH MUTE 400 MILLISECONDS FROM", 1),
    "windowed": WINDOW,
}
OF_KB = {
    "named": NAMED.replace('"hot"', f'"hot" GRAPH <{KB}> {{ ?x <http://example/name> ?n }}'),
    "correlated": NAMED.replace(
        '"cold"', f'"cold" GRAPH <{KB}> {{ ?x <http://example/name> ?n }} FILTER (?x != ?y)'
    ).replace('{ ?x <http://example/is> "hot"', '{ ?y <http://example/is> "hot"'),
}
ALL = {**QUERIES, **OF_KB}

LAST_MS = 1_767_225_666_400
"""The time of the last event: 160 * 40 ms and a minute after the first one."""

TOLD = [r"the state is rebuilt from the log of files", r"the state was rebuilt in \d+\.\d s"]


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


class Followed:
    """A directory of files that is followed, in several runs with one checkpoint."""

    def __init__(self, place: Path, names: Sequence[str] = ("plain", "absent")) -> None:
        place.mkdir()
        self.incoming, self.state, self.kb = (place / n for n in ("incoming", "state", "kb.nt"))
        self.out, self.late, self.partial = (place / n for n in ("out.jsonl", "late", "partial"))
        self.incoming.mkdir()
        self.notes: list[str] = []
        self._names, self._fed = names, 0

    @property
    def job(self) -> Job:
        """With a knowledge base, the queries have partial matches, too."""
        kb = [(KB, self.kb)] if self.kb.exists() else []
        options = CompileOptions(several=True, partial=bool(kb))
        return Job(
            tuple(compile_query(ALL[name], name, options) for name in self._names),
            (FileSource(StreamOptions(IRI, (str(self.incoming),))),),
            load_kb(kb),
            watch=KbWatch(kb, ServiceOptions(), NO_CACHE) if kb else None,
            on_note=self.notes.append,
        )

    def name(self, name: str) -> None:
        """Write a knowledge base in which all things have this name."""
        named = (f'<http://example/x{n}> <http://example/name> "{name}" .\n' for n in range(9))
        self.kb.write_text("".join(named))

    def feed(self, given: Sequence[bytes]) -> None:
        put(self.incoming / f"{self._fed:03}.nq", b"".join(given).decode())
        self._fed += 1

    def run(self, given: Sequence[bytes] = (), to: str | None = None) -> None:
        """Feed events, and read all that is there."""
        if given:
            self.feed(given)
        options = FollowOptions(self.state, FileSourceSettings(delay_ms=500), until_done=True)
        with ExitStack() as stack:
            late, partial = (stack.enter_context(p.open("a")) for p in (self.late, self.partial))
            job = self.job
            job.on_late = lambda event: print(event.event, file=late)
            job.on_partial = lambda name, found: print(partial_json(name, found), file=partial)
            sides = {str(self.late): late, str(self.partial): partial}
            run(job, options, out=to or str(self.out), form="jsonl", sides=sides)

    @property
    def written(self) -> list[bytes]:
        return [path.read_bytes() for path in (self.out, self.late, self.partial)]

    def spoil(self, version: int = 2) -> None:
        """Let another version have written the state; whoever reads it fails."""
        manifest = self.state / "spaseq.json"
        stored = read_json(manifest, dict)
        if version == 2:
            stored |= {"version": 2, "queries": dict.fromkeys(stored["queries"], "earlier")}
            for name in ("state", "fingerprints", "repetition", "is_begun", "half_written"):
                stored.pop(name, None)
        else:
            stored["state"] = [0, 0]
        write_json(manifest, stored)
        for path in (self.state / "spark" / "state").rglob("*"):
            if path.is_file():
                path.write_bytes(b"damaged")


def parts(count: int = 160) -> list[list[bytes]]:
    """Events in three parts, the second with one that is late; the last one ends windows."""
    *given, end = events(count, disorder_ms=300)
    half = count // 2
    return [given[:half], [*given[half:], event(9999, 0, "x1", "hot")], [end]]


def expected(name: str, given: Sequence[Sequence[bytes]], place: Path) -> list[str]:
    """The answers of a bounded local run over the events that are not late."""
    path = place / "expected.nq"
    path.write_bytes(b"".join(e for part in given for e in part if b"e9999>" not in e))
    plan = compile_query(QUERIES[name], name)
    source = FileSource(StreamOptions(IRI, (str(path),)))
    job = Job((plan,), (source,), KnowledgeBase.empty())
    found = [answer for _, answer in answers_of(job, RuntimeOptions("local"))]
    # Nothing that ends with the last event is final.
    return [answer_json(name, answer) for answer in found if answer.end[0] < LAST_MS - 500]


def check(place: Path, followed: Followed, names: Sequence[str], given: Any) -> None:
    """Each query has the answers of a local run, in their order. One event was late."""
    found = lines(followed.out)
    for name in names:
        own = [line for line in found if json.loads(line)["query"] == name]
        assert own == expected(name, given, place)
        assert len(own) > 5, name
    assert followed.late.read_text().split() == ["http://example/e9999"]


def told(notes: Sequence[str]) -> bool:
    """Whether the state was rebuilt. A slow run also notes that it is being rebuilt, every 10 s."""
    found = [note for note in notes if "rebuilt" in note and "being rebuilt" not in note]
    assert not found or all(re.match(*pair) for pair in zip(TOLD, found, strict=True))
    return bool(found)


def test_no_answer_is_lost_or_comes_twice(spark: Any, tmp_path: Path) -> None:
    """All kinds of queries together; undisturbed, the output has the same bytes."""
    given = parts()
    whole, spoilt = (Followed(tmp_path / n, [*QUERIES]) for n in ("whole", "spoilt"))
    for number, part in enumerate(given):
        whole.run(part)
        if number:
            spoilt.spoil(number + 1)
        spoilt.run(part)
        assert told(spoilt.notes) == (number > 0)
        spoilt.notes.clear()
    assert spoilt.written == whole.written
    check(tmp_path, spoilt, [*QUERIES], given)
    assert not told(whole.notes)


def test_graphs_are_as_they_were(spark: Any, tmp_path: Path) -> None:
    """Each event is matched with the knowledge base that it was matched with before."""
    whole, spoilt = (Followed(tmp_path / n, [*OF_KB]) for n in ("whole", "spoilt"))
    for part, name in zip(parts(), ("Ann", "Ben", "Cid"), strict=True):
        for followed in (whole, spoilt):
            followed.name(name)
            if name == "Cid" and followed is spoilt:
                spoilt.spoil(3)
            followed.run(part)
    assert told(spoilt.notes)
    assert spoilt.written == whole.written
    found = [json.loads(line) for line in lines(spoilt.out)]
    assert {answer["bindings"]["n"]["value"] for answer in found} == {"Ann", "Ben"}
    assert len(lines(spoilt.partial)) > 5


class Killed(Exception):
    """The run ends here."""


def raising(*_: object) -> None:
    raise Killed


def killed_in(followed: Followed, what: str, monkeypatch: pytest.MonkeyPatch, to: Any) -> None:
    """A run that ends where a function is called, by its name in `follow` or `logged_output`."""
    *names, method = what.split(".")
    owner: Any = follow_module
    for name in names:
        owner = getattr(follow_module, name, None) or getattr(logged_output, name)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(owner, method, raising)
        followed.run(to=to)


KILLS = {
    "files, written": "_FileOutput.end",
    "webhook, not logged": "LoggedOutput.end",
    "webhook, logged": "Deliveries.check",
}
"""Where a run ends whose batch Spark has planned and not committed."""


@pytest.mark.parametrize("kill", first_of([*KILLS], 1))
def test_killed_at_any_moment_it_goes_on(
    spark: Any, tmp_path: Path, hook: Hook, kill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch before the change was half done, and rebuilding the state is interrupted."""
    given, followed = parts(), Followed(tmp_path / "killed")
    to = None if "files" in kill else f"http://127.0.0.1:{hook.port}/"
    followed.run(given[0], to)
    followed.feed(given[1])
    killed_in(followed, KILLS[kill], monkeypatch, to)
    followed.spoil()
    for place in ("_start", "_Delivery._repeat"):
        killed_in(followed, place, monkeypatch, to)
    followed.run(to=to)
    followed.run(given[2], to)
    assert told(followed.notes[-2:])
    if to is not None:
        posted = [json.loads(body) for _, _, body in hook.requests]
        assert len({answer.pop("id") for answer in posted}) == len(posted)
        followed.out.write_text("".join(f"{json.dumps(answer)}\n" for answer in posted))
    check(tmp_path, followed, ["plain", "absent"], given)
