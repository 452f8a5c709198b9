"""`spaseq.run`: queries over bounded streams, on either runtime."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from os import PathLike
from typing import Any, Literal, TypeAlias, TypeVar, Unpack, cast

from spaseq.algebra.answers import Answer
from spaseq.api.answers import Answers
from spaseq.api.match import Match, PartialMatch
from spaseq.api.prepare import load_knowledge, plan_queries
from spaseq.api.queries import QueryInput
from spaseq.api.streams import StreamInput, bounded_sources, lifted_inputs, sources_if_any
from spaseq.errors import UsageError
from spaseq.options import KbInput, RunKeywords, RunOptions, RuntimeOptions, check_callback
from spaseq.rdf.inputs.stream_options import BadInput, FirstWarnings
from spaseq.runtime.bounded_run import batches_of
from spaseq.runtime.job.binding import bind_streams
from spaseq.runtime.job.job import Job, Stats
from spaseq.sources.iterables import Event

AsyncStreamInput: TypeAlias = StreamInput | AsyncIterable[Event]
"""The stream inputs of `spaseq.run`, or asynchronous iterables of events."""

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

    It takes the arguments of `run`. A stream may also be an asynchronous iterable of `Event`s in
    order of time. The run works in its thread, so the event loop stays free. Callbacks and
    generators that are not asynchronous run in that thread, too.

    Returns:
        The matches. The run starts with the first `async for` step, which raises the errors of
        `run`.
    """
    counts = Stats() if stats is None else stats
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
        """End the run. Matches that were not taken are lost."""
        await self._matches.aclose()

    def __repr__(self) -> str:
        return f"<AsyncAnswers: {self.stats.matches} so far>"


class _Thread:
    """A thread that does the work of a run."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(1, thread_name_prefix="spaseq")

    async def do(self, work: Callable[[], T]) -> T:
        """Run a function in the thread; return its result or raise its error."""
        import asyncio  # other runs need not import it

        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def end(self) -> None:
        """End the thread after its work."""
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
    """The answers that become certain with the next event of a stream, or its end."""
    answers: list[tuple[int, Answer]] = run.end(iri) if event is _END else run.take(iri, event)
    return answers


def run(
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, StreamInput],
    kb: Mapping[str, KbInput] | None = None,
    runtime: Literal["spark", "local"] | None = None,
    *,
    on_bad: Callable[[BadInput], None] | None = None,
    stats: Stats | None = None,
    **options: Unpack[RunKeywords],
) -> Answers:
    """Replay streams to their ends; the result iterates over the matches of the queries.

    Args:
        query: query text, the `Path` of a query file, or a result of `spaseq.parse`; several in a
            list. The queries of one call can read the streams that others register.
        streams: by the query's name for a stream, or its IRI: a path (file, directory, glob),
            several paths, or an iterable of `Event`s. A list may be in any order. A generator must
            be in order of time; each match then comes as soon as it is certain.
        kb: by graph IRI: a path, an rdflib.Graph, or the URL of a SPARQL endpoint.
        runtime: "spark", or "local" for this process alone. By default Spark, unless a stream is a
            generator. Spark reads generators to their ends first.
        on_bad: called for each bad input. Without it, a bad event of a generator ends the run, and
            the logger `spaseq` warns of the first three bad inputs of other streams.
        stats: the object that gets the counts during the run.
        options: any of `spaseq.options.RunKeywords`: how streams are read (`time_predicate`,
            `triples_per_event`, `base`, `threads`, `watermark_ms`, `lifts`), how knowledge is
            loaded (`kb_cache`, `services`), how queries are planned (`ontology`, `entailment`,
            `disable`), and the maximum number of matches per event (`limit_per_event`).

    Returns:
        The matches, query by query, each query's in order (docs/meaning.md#order-of-answers).
        A query that reads the stream of another comes after it. Over generators the matches of
        several queries come as they become certain.

    Raises:
        QueryError: with all errors of the queries.
        InputError: a stream or knowledge base is missing or does not load.
        UsageError: a stream has no input, an input has no stream, queries read each other's
            streams in a circle, or an option is unknown or contradicts another.
    """
    streams = lifted_inputs(streams, options.get("lifts"))
    live = isinstance(streams, Mapping) and any(isinstance(s, Iterator) for s in streams.values())
    runtime = runtime or ("local" if live else "spark")
    streaming = live and runtime == "local"
    task = prepare("run", query, streams, kb, runtime, options, pushed=streaming)
    task.listen(on_bad, stats)
    batches = _streamed(task) if streaming else _batches(task)
    return Answers(batches, task.job.plans, task.job.stats, live=streaming)


@dataclass(slots=True)
class Task:
    """A run that is ready to begin. `streams` are the user's inputs, by stream IRI.

    `delay_ms` is the maximum delay of an event of a live stream. With `strict` a bad event ends the
    run.
    """

    job: Job
    streams: dict[str, Any]
    options: RunOptions
    delay_ms: int
    strict: bool = True

    def listen(self, on_bad: Callable[[BadInput], None] | None, stats: Stats | None) -> None:
        """Report to the user's callback, and count."""
        check_callback("on_bad", on_bad)
        if not isinstance(stats, Stats | None):
            raise UsageError(f"stats is {stats!r}; it must be a spaseq.Stats")
        self.strict = on_bad is None
        self.job.on_bad = on_bad or FirstWarnings()
        self.job.stats = stats or self.job.stats

    def named(self, answers: Sequence[tuple[int, Answer]]) -> list[Match]:
        """The answers as matches."""
        return [Match(self.job.plans[n].identity.name, answer) for n, answer in answers]


def prepare(
    call: str,
    query: QueryInput | Sequence[QueryInput],
    streams: Mapping[str, Any],
    kb: Mapping[str, KbInput] | None,
    runtime: str,
    options: RunKeywords,
    pushed: bool,
) -> Task:
    """Plan queries and load the knowledge base for a call; raises the errors of `run`.

    `pushed` says that events come one by one.
    """
    chosen = RunOptions.of(call, RunKeywords, options)
    chosen = replace(chosen, runtime=RuntimeOptions(runtime))
    on_partial = options.get("on_partial")
    check_callback("on_partial", on_partial)
    delay_ms = options.get("watermark_ms", 0)
    if delay_ms < 0:
        raise UsageError(f"watermark_ms is {delay_ms}; it must be at least 0")
    planning = replace(chosen.planning, partial=on_partial is not None)
    changing = chosen.knowledge.kb_changes
    plans = plan_queries(query, planning, pushed, changing=changing)
    bound = bind_streams(plans, lifted_inputs(streams, options.get("lifts")))
    given = sources_if_any(bound, chosen)
    knowledge = load_knowledge(plans, kb or {}, chosen.knowledge, given)
    job = Job(plans, (), knowledge, chosen.stages)
    if on_partial is not None:
        job.on_partial = lambda name, partial: on_partial(PartialMatch.of(name, partial))
    if options.get("dump_graphs"):
        if pushed:
            raise UsageError("dump_graphs goes with streams that end, not with generators")
        from spaseq.runtime.job.graph_dumps import GraphDumps  # few runs maintain graphs

        job.dumps = GraphDumps(options["dump_graphs"], plans)
    return Task(job, bound, chosen, delay_ms)


def _batches(task: Task) -> Generator[tuple[str, Sequence[Answer]]]:
    """(name of the query, some of its answers) of bounded streams."""
    job = replace(task.job, streams=bounded_sources(task.streams, task.options))
    with closing(batches_of(job, task.options.runtime)) as batches:
        for number, answers in batches:
            yield job.plans[number].identity.name, answers


def _streamed(task: Task) -> Generator[tuple[str, Sequence[Answer]]]:
    """The answers over generators of events, each as soon as it is certain."""
    live, bounded = split_live(task.streams)
    if not live:  # they were generators of paths
        yield from _batches(replace(task, streams=bounded))
        return
    run = live_run(task, list(live), bounded)
    try:
        while (iri := run.waits_for) is not None:
            event = next(live[iri], _END)
            for number, answer in run.end(iri) if event is _END else run.take(iri, event):
                yield task.job.plans[number].identity.name, [answer]
    finally:
        run.finish()


def split_live(streams: Mapping[str, Any]) -> tuple[dict[str, Iterator[Any]], dict[str, Any]]:
    """Split streams into live ones, whose events come one by one, and the others.

    The first item of an iterator tells whether it has events or paths.
    """
    live: dict[str, Iterator[Any]] = {}
    others: dict[str, Any] = {}
    for iri, given in streams.items():
        if not isinstance(given, Iterator):
            others[iri] = given
            continue
        first = next(given, _END)
        if isinstance(first, str | PathLike):
            others[iri] = [first, *given]
        else:
            live[iri] = given if first is _END else chain((first,), given)
    return live, others


def live_run(task: Task, live: Sequence[str], bounded: Mapping[str, Any]) -> Any:
    """The run over live streams (IRIs) and bounded ones, which are read to their ends first."""
    from spaseq.runtime.streaming import GeneratorRun, refuse, reporting

    job = replace(task.job, streams=bounded_sources(bounded, task.options))
    return GeneratorRun(job, live, task.delay_ms, refuse if task.strict else reporting(job))


def answers_of(job: Job, runtime: RuntimeOptions) -> Generator[tuple[int, Answer]]:
    """(number of the query, answer) of a job whose streams end."""
    with closing(batches_of(job, runtime)) as batches:
        for number, answers in batches:
            for answer in answers:
                yield number, answer
