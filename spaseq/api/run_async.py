"""`spaseq.run_async`: the twin of `spaseq.run` for programs with an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, cast

from spaseq.algebra.answers import Answer
from spaseq.api.answers import Answers
from spaseq.api.match import Match
from spaseq.api.queries import QueryInput
from spaseq.api.run import Task, live_run, prepare, run, split_live
from spaseq.api.streams import StreamInput
from spaseq.errors import UsageError
from spaseq.options import KbInput, RunKeywords
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import Stats
from spaseq.sources.iterables import Event

AsyncStreamInput: TypeAlias = StreamInput | AsyncIterable[Event]
"""What `spaseq.run` takes, or events that are awaited."""

T = TypeVar("T")

_END = object()


def run_async(
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, AsyncStreamInput],
    kb: Mapping[str, KbInput] | None = None,
    runtime: Literal["spark", "local"] | None = None,
    *,
    on_bad: Callable[[BadInput], None] | None = None,
    stats: Stats | None = None,
    **options: Unpack[RunKeywords],
) -> AsyncAnswers:
    """Replay streams as `spaseq.run` does; the result is iterated with `async for`.

    It takes what `run` takes. A stream may also be an asynchronous iterable of `Event`s in order of
    time. The work is done in a thread of the run, so the event loop goes on. The functions that are
    given are called in that thread. A generator that is not asynchronous runs there, too.

    Returns:
        The matches. The first of them is awaited when it is asked for, and the errors of `run` come
        with it.
    """
    counts = stats or Stats()
    awaited = any(isinstance(given, AsyncIterable) for given in streams.values())
    if not awaited:
        given = cast(Mapping[str, StreamInput], streams)
        begin = partial(run, query, given, kb, runtime, on_bad=on_bad, stats=counts, **options)
        return AsyncAnswers(_taken(begin), counts)
    if runtime == "spark":
        raise UsageError("asynchronous streams go with the runtime local")

    def ready() -> Task:
        task = prepare("run_async", query, streams, kb, "local", options, pushed=True)
        task.listen(on_bad, counts)
        return task

    return AsyncAnswers(_awaited(ready), counts)


class AsyncAnswers(AsyncIterator[Match]):
    """The matches of a run, for `async for`. `stats` has the counts of the run so far."""

    def __init__(self, matches: AsyncGenerator[Match], stats: Stats) -> None:
        self._matches = matches
        self.stats = stats

    def __aiter__(self) -> AsyncAnswers:
        return self

    async def __anext__(self) -> Match:
        return await self._matches.__anext__()

    async def aclose(self) -> None:
        """End the run; the matches that were not taken are lost."""
        await self._matches.aclose()

    def __repr__(self) -> str:
        return f"<AsyncAnswers: {self.stats.matches} so far>"


class _Thread:
    """A thread that does the work of a run."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="spaseq")

    async def do(self, work: Callable[[], T]) -> T:
        """What a function returns or raises in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def end(self) -> None:
        """Let the thread end after its work."""
        self._pool.shutdown(wait=False)


async def _taken(begin: Callable[[], Answers]) -> AsyncGenerator[Match]:
    """The matches of a run without asynchronous streams."""
    thread = _Thread()
    try:
        answers = await thread.do(begin)
        try:
            while (match := await thread.do(partial(_next, answers))) is not _END:
                yield match
        finally:
            await thread.do(answers.close)
    finally:
        thread.end()


async def _awaited(ready: Callable[[], Task]) -> AsyncGenerator[Match]:
    """The matches of a run in which some streams are asynchronous."""
    thread = _Thread()
    try:
        task = await thread.do(ready)
        awaited = {i: aiter(s) for i, s in task.streams.items() if isinstance(s, AsyncIterable)}
        others = {iri: given for iri, given in task.streams.items() if iri not in awaited}
        live, bounded = await thread.do(partial(split_live, others))
        run = await thread.do(partial(live_run, task, [*live, *awaited], bounded))
        try:
            while (iri := run.waits_for) is not None:
                if iri in awaited:
                    event = await anext(awaited[iri], _END)
                else:
                    event = await thread.do(partial(_next, live[iri]))
                answers = await thread.do(partial(_given, run, iri, event))
                for match in task.named(answers):
                    yield match
        finally:
            run.finish()
    finally:
        thread.end()


def _next(items: Iterator[Any]) -> Any:
    return next(items, _END)


def _given(run: Any, iri: str, event: object) -> list[tuple[int, Answer]]:
    """The answers that the next event of a stream, or its end, makes certain."""
    answers: list[tuple[int, Answer]] = run.end(iri) if event is _END else run.take(iri, event)
    return answers
