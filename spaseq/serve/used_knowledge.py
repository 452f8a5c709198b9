"""What an answer used of the knowledge base: looked up when somebody asks, not kept with it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from spaseq.algebra.answers import TraceItem
from spaseq.diagnosis.used_triples import UsedTriples, used_triples
from spaseq.errors import UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS
from spaseq.logs.messages import Message
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.rdf.terms.term import triple_json
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.live.run_views import QueryView
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.posted_events import MessageReading
from spaseq.serve.query_files import checked_query
from spaseq.sinks.answer_ids import answer_id

_READ_BYTES = 64 * 2**20
"""How much of the end of a stream's log is looked through for events."""

_LIMITS = replace(DEFAULT_LIMITS, timeout_s=5.0)


_Arrived: TypeAlias = tuple[int, EventBatch]
"""When an event arrived, ms since the epoch, and the event as a batch of its own."""


@dataclass(frozen=True, slots=True)
class UsedKnowledge:
    """Looks up which triples the events of an answer used.

    Attributes:
        run: has the answers, and the events that are still logged.
        streams: by IRI a stream's name, and what makes the events of its messages.
        knowledge: the knowledge base of the run.
    """

    run: StandingRun
    streams: Mapping[str, tuple[str, MessageReading]]
    knowledge: KnowledgeBase

    def __call__(self, query: QueryView, name: str) -> dict[str, Any]:
        """The triples, as JSON.

        Args:
            query: the query.
            name: the id of one of its answers.

        Raises:
            AnswerGone: there is no such answer any more.
            UsageError: an earlier text of the query has given it.
        """
        logged = self.run.answers.find(query.name, name)
        checked = checked_query(query.name, query.text)
        assert checked.plan is not None and checked.query is not None
        plan, answer = checked.plan, logged.answer
        if answer_id(plan.identity.name, plan.signature.canonical, answer) != name:
            raise UsageError(f"query {query.name} has changed since it gave the answer {name}")
        events = self._events(answer.trace)
        batches = {item: batch for item, (_, batch) in events.items()}
        found = used_triples(checked.query, answer, batches, self.knowledge, _LIMITS)
        since = self.run.knowledge_since
        arrivals = [events[item][0] if item in events else 0 for item in answer.trace]
        changed = min(logged.logged_ms, *arrivals) < since
        return {"id": name, "changed": changed, "events": [*map(_as_json, found)]}

    def _events(self, trace: Iterable[TraceItem]) -> dict[TraceItem, _Arrived]:
        """The events of a trace that the logs still have."""
        wanted: dict[str, dict[str, list[TraceItem]]] = {}
        for item in trace:
            if item.event is not None and item.stream in self.streams:
                wanted.setdefault(item.stream, {}).setdefault(item.event, []).append(item)
        found: dict[TraceItem, _Arrived] = {}
        for iri, items in wanted.items():
            name, reading = self.streams[iri]
            left = set(items)
            for messages in self.run.newest_records(name, _READ_BYTES):
                for event, arrived in _named(messages, left, reading):
                    found.update((item, arrived) for item in items[event] if event in left)
                    left.discard(event)
                if not left:
                    break
        return found


def _named(
    messages: Sequence[Message], names: Collection[str], reading: MessageReading
) -> Iterable[tuple[str, _Arrived]]:
    """The events with some names among those of messages."""
    ends = [name[max(name.rfind("/"), name.rfind("#")) + 1 :].encode() for name in names]
    for message in messages:
        if not any(end in message.payload for end in ends):  # most messages are not read
            continue
        for batch in reading([message], _ignore):
            found = batch.names(np.arange(len(batch))).texts()
            for at, name in enumerate(found):
                if name is not None and name in names:
                    yield name, (message.arrival, batch.take(np.array([at])))


def _ignore(bad: BadInput) -> None:
    pass


def _as_json(used: UsedTriples) -> dict[str, Any]:
    item = used.item
    return {
        "gpm": item.gpm,
        "stream": item.stream,
        "event": item.event,
        "time": format_time(item.time),
        "exact": used.is_exact,
        "graphs": [
            {"graph": graph, "triples": [triple_json(triple) for triple in triples]}
            for graph, triples in used.graphs.items()
        ],
        "more": used.more,
    }
