"""The log of what SPARQL endpoints have answered, batch by batch.

An endpoint may answer differently tomorrow. So a batch that asks endpoints is logged before its
answers are: where it begins and ends in the logs of the streams, and the answers that it used. A
run that was killed reads the same batches again with the same answers, and asks nobody.
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
from spaseq.kb.answer_rows import AnswerRow
from spaseq.kb.endpoint import AnswerCache, Answered, AnswerKey, Endpoint
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
    """Says which endpoints may be asked.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pauses: dict[str, _Pause] = {}

    def check(self, url: str) -> None:
        """ServiceFailure if an endpoint must not be asked now."""
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
    """A batch that asked endpoints.

    Attributes:
        before: where it begins.
        after: where it ends.
        answers: what it used and no batch before it since the last saved state, by key.
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
    """Asks endpoints for a run, and keeps what they answer; one thread uses it.

    A request with its repetitions takes no longer than `timeout_s` of the options. An endpoint that
    has failed is not asked for a while, see `EndpointPauses`. In one batch a question has one
    answer.

    Args:
        directory: of the log, which must not be open twice.
        options: how endpoints are asked.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        directory: Path,
        options: ServiceOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log, self._options = SegmentLog(directory), options
        self._cache = AnswerCache(options, clock)
        self._pauses = EndpointPauses(clock)
        self._logged: dict[str, list[AnswerRow]] = {}  # since the last saved state
        self._used: dict[str, Answered] = {}  # in this batch
        self._new: dict[str, Answered] = {}  # those of them that must be logged
        self._before: Places | None = None
        self._asks = False  # whether this batch, or one since the last saved state, has asked
        self._unwritten: list[bytes] = []
        self._again: deque[AskingBatch] = deque()
        self._repeated: AskingBatch | None = None

    def used_by(self, knowledge: KnowledgeBase) -> KnowledgeBase:
        """The knowledge base, with endpoints that are asked here."""
        return replace(knowledge, asked=self)

    # --- asking -----------------------------------------------------------------------------------

    def get(self, key: AnswerKey) -> Answered | None:
        """What this batch must use; None if the endpoint must be asked."""
        self._asks, digest = True, _digest(key)
        known = self._used.get(digest)
        if known is not None:
            return known
        answer = self._cache.get(key) if self._repeated is None else self._logged.get(digest)
        if answer is not None:
            self._use(digest, answer)
        return answer

    def put(self, key: AnswerKey, answer: Answered) -> None:
        """Take note of an answer or a failure."""
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
        """A batch begins, unless the one before could not be ended."""
        if self._before is None:
            self._before = dict(places)

    def end_batch(self, places: Places) -> None:
        """The batch ends; `commit` makes sure that its answers are logged."""
        before, self._before = self._before, None
        if before is not None and self._asks and (self._repeated is None or self._new):
            batch = AskingBatch(before, dict(places), self._new)
            self._unwritten.append(batch.to_bytes())
        self._used, self._new = {}, {}

    def commit(self) -> None:
        """Log the batches that have ended; LogNotWritten if the disk is full."""
        if self._unwritten:
            self._log.write(self._unwritten)
            self._unwritten = []

    # --- restarts ---------------------------------------------------------------------------------

    @property
    def log(self) -> SegmentLog:
        """The log."""
        return self._log

    @property
    def end(self) -> int:
        """The number of the next batch that is logged."""
        return self._log.end

    def saved(self) -> None:
        """All state is saved: no restart needs what was logged before."""
        self._logged, self._asks = {}, False

    def read_again(self, index: int, iris: Iterable[str]) -> None:
        """Get ready to repeat the batches from an index on; `iris` are the run's streams."""
        batches = [
            AskingBatch.of_bytes(record, number) for number, record in self._log.records(index)
        ]
        streams = [*iris]
        batches.sort(key=lambda batch: place_of(batch.before, streams))
        self._again = deque(batches)

    @property
    def next_repeated(self) -> AskingBatch | None:
        """The next batch that must be repeated."""
        return self._again[0] if self._again else None

    @property
    def is_repeating(self) -> bool:
        """Whether batches must be repeated, or one is."""
        return bool(self._again) or self._repeated is not None

    def begin_repeating(self) -> AskingBatch:
        """Answer as in the next batch that must be repeated."""
        batch = self._again.popleft()
        self._repeated, self._used = batch, {**batch.answers}
        while self._again and self._again[0].before == batch.before:  # a repetition asked for more
            self._used.update(self._again.popleft().answers)
        self._logged.update(
            (key, v) for key, v in self._used.items() if not isinstance(v, ServiceFailure)
        )
        return batch

    def end_repeating(self) -> None:
        """Ask endpoints again."""
        self._repeated = None

    def close(self) -> None:
        """Close the file."""
        self._log.close()


def place_of(places: Places, iris: Iterable[str]) -> int:
    """How far places are; of two places of a run, the later one is farther."""
    return sum(places.get(iri, 0) for iri in iris)


def _digest(key: AnswerKey) -> str:
    """A short name of a question, without the password that an address may have."""
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
