"""The log of the answers of SPARQL endpoints, batch by batch.

An endpoint may answer differently tomorrow. So a batch that uses endpoints is logged before its
answers are: its beginning and end in the logs of the streams, and the endpoints' answers. A run
that was killed reads the same batches again with the same answers, and sends no request.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path

from spaseq.back_off import BackOff
from spaseq.errors import RunError
from spaseq.kb.endpoint import AnswerCache, Answered, AnswerKey, AnswerRow, Endpoint
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.service_address import ServiceFailure
from spaseq.logs.segment_log import SegmentLog
from spaseq.options import ServiceOptions


@dataclass(slots=True)
class _Pause:
    back_off: BackOff
    until: float
    reason: str


class EndpointPauses:
    """Decides whether an endpoint may get a request.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pauses: dict[str, _Pause] = {}

    def check(self, url: str) -> None:
        """ServiceFailure if an endpoint must not get a request now."""
        pause = self._pauses.get(url)
        if pause is not None and self._clock() < pause.until:
            raise ServiceFailure(f"it has failed a moment ago ({pause.reason})", False)

    @contextmanager
    def watching(self, url: str) -> Iterator[None]:
        """Watch a request to an endpoint."""
        begun = self._clock()
        try:
            yield
        except ServiceFailure as failure:
            if failure.again:
                known = self._pauses.get(url)
                back_off, now = BackOff() if known is None else known.back_off, self._clock()
                until = now + max(back_off.failed(), now - begun)
                self._pauses[url] = _Pause(back_off, until, str(failure))
            raise
        self._pauses.pop(url, None)


Places = Mapping[str, int]
"""The next record of each stream's log, by IRI."""


@dataclass(frozen=True, slots=True)
class AskingBatch:
    """A batch that used endpoints.

    Attributes:
        before: where it begins.
        after: where it ends.
        answers: by key, the endpoints' answers that it used, without those logged since the last
            saved state.
        index: its number in the log.
    """

    before: Places
    after: Places
    answers: Mapping[str, Answered]
    index: int = field(default=0, compare=False)

    def to_bytes(self) -> bytes:
        """The record; `of_bytes` is the inverse."""
        answers = {key: _as_json(answer) for key, answer in self.answers.items()}
        return json.dumps([self.before, self.after, answers]).encode("ascii")

    @classmethod
    def of_bytes(cls, record: bytes, index: int = 0) -> AskingBatch:
        """The inverse of `to_bytes`; RunError if a later version wrote it."""
        try:
            before, after, answers = json.loads(record)
            return cls(before, after, {key: _of_json(v) for key, v in answers.items()}, index)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise RunError(f"the log of endpoints cannot be read: {error}") from error


class EndpointLog:
    """Sends requests to endpoints for a run, and keeps the answers; one thread uses it.

    A request with its repetitions takes no longer than `timeout_s` of the options. After a failure
    an endpoint gets no request for a while, see `EndpointPauses`. In one batch a request has one
    answer.

    Args:
        directory: of the log, which must not be open twice.
        options: how endpoints are queried.

    Attributes:
        log: the answers on disk.
    """

    def __init__(self, directory: Path, options: ServiceOptions) -> None:
        self.log, self._options = SegmentLog(directory), options
        self._cache = AnswerCache(options, time.monotonic)
        self._pauses = EndpointPauses()
        self._logged: dict[str, list[AnswerRow]] = {}  # since the last saved state
        self._used: dict[str, Answered] = {}  # in this batch
        self._new: dict[str, Answered] = {}  # those of them that must be logged
        self._before: Places | None = None
        self._asks = False  # whether this batch, or one since the last saved state, has used them
        self._unwritten: list[bytes] = []
        self._again: deque[AskingBatch] = deque()
        self._repeated: AskingBatch | None = None

    def used_by(self, knowledge: KnowledgeBase) -> KnowledgeBase:
        """The knowledge base, with endpoints that send their requests here."""
        return replace(knowledge, asked=self)

    # --- requests ---------------------------------------------------------------------------------

    def get(self, key: AnswerKey) -> Answered | None:
        """The answer that this batch must use; None if the endpoint must get the request."""
        self._asks, digest = True, _digest(key)
        known = self._used.get(digest)
        if known is not None:
            return known
        answer = self._cache.get(key) if self._repeated is None else self._logged.get(digest)
        if answer is not None:
            self._use(digest, answer)
        return answer

    def put(self, key: AnswerKey, answer: Answered) -> None:
        """Record an answer or a failure."""
        if not isinstance(answer, ServiceFailure):
            self._cache.put(key, answer)
        self._use(_digest(key), answer)

    def _use(self, digest: str, answer: Answered) -> None:
        self._used[digest] = answer
        if isinstance(answer, ServiceFailure):
            self._new[digest] = answer
        elif self._logged.get(digest) != answer:
            self._new[digest] = self._logged[digest] = answer

    def select(self, url: str, query: str, variables: Sequence[str]) -> list[AnswerRow]:
        """The solutions of a SELECT.

        Raises:
            ServiceFailure: the endpoint has no answer in time, or has failed a moment ago.
        """
        self._pauses.check(url)
        with self._pauses.watching(url):
            limit = self._options.timeout_s
            return Endpoint(url, self._options).select(query, variables, within_s=limit)

    # --- batches ----------------------------------------------------------------------------------

    def begin_batch(self, places: Places) -> None:
        """Begin a batch, unless the one before could not be ended."""
        if self._before is None:
            self._before = dict(places)

    def end_batch(self, places: Places) -> None:
        """End the batch; `commit` then logs its answers."""
        before, self._before = self._before, None
        if before is not None and self._asks and (self._repeated is None or self._new):
            batch = AskingBatch(before, dict(places), self._new)
            self._unwritten.append(batch.to_bytes())
        self._used, self._new = {}, {}

    def commit(self) -> None:
        """Log the ended batches; LogNotWritten if the disk is full."""
        if self._unwritten:
            self.log.write(self._unwritten)
            self._unwritten = []

    # --- restarts ---------------------------------------------------------------------------------

    def saved(self) -> None:
        """Record that all state is saved: no restart needs earlier records."""
        self._logged, self._asks = {}, False

    def read_again(self, index: int, iris: Iterable[str]) -> None:
        """Prepare to repeat the batches from an index on; `iris` are the run's streams."""
        batches = [
            AskingBatch.of_bytes(record, number) for number, record in self.log.records(index)
        ]
        streams = [*iris]
        batches.sort(key=lambda batch: place_of(batch.before, streams))
        self._again = deque(batches)

    @property
    def next_repeated(self) -> AskingBatch | None:
        """The next batch to repeat."""
        return self._again[0] if self._again else None

    @property
    def is_repeating(self) -> bool:
        """Whether there are batches to repeat, or one is being repeated."""
        return bool(self._again) or self._repeated is not None

    def begin_repeating(self) -> AskingBatch:
        """Answer as in the next batch to repeat."""
        batch = self._again.popleft()
        self._repeated, self._used = batch, {**batch.answers}
        while self._again and self._again[0].before == batch.before:  # a repetition asked for more
            self._used.update(self._again.popleft().answers)
        self._logged.update(
            (key, v) for key, v in self._used.items() if not isinstance(v, ServiceFailure)
        )
        return batch

    def end_repeating(self) -> None:
        """Send requests to endpoints again."""
        self._repeated = None

    def close(self) -> None:
        """Close the file."""
        self.log.close()


def place_of(places: Places, iris: Iterable[str]) -> int:
    """A number that grows with the positions of a run."""
    return sum(places.get(iri, 0) for iri in iris)


def _digest(key: AnswerKey) -> str:
    """A digest of a request, without the password that an address may have."""
    return blake2b(json.dumps(key).encode("ascii"), digest_size=16).hexdigest()


def _as_json(answer: Answered) -> object:
    if isinstance(answer, ServiceFailure):
        return {"failed": str(answer), "again": answer.again}
    return answer


def _of_json(value: object) -> Answered:
    if isinstance(value, dict):
        return ServiceFailure(value["failed"], value["again"])
    assert isinstance(value, list)
    return [tuple(row) for row in value]
