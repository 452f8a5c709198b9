"""What an answer used of the knowledge base: looked up when somebody asks, not kept with it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spaseq.diagnosis.used_triples import UsedTriples, used_triples
from spaseq.errors import UsageError
from spaseq.limits import DEFAULT_LIMITS
from spaseq.rdf.terms.term import Triple, triple_json
from spaseq.rdf.terms.times import format_time
from spaseq.runtime.live.run_views import QueryView
from spaseq.runtime.live.standing_run import StandingRun
from spaseq.serve.logged_events import TraceEvents
from spaseq.serve.query_files import checked_query
from spaseq.sinks.answer_json import answer_id

_READ_BYTES = 64 * 2**20
"""How much of the end of a stream's log is looked through for events."""

_LIMITS = replace(DEFAULT_LIMITS, timeout_s=5.0)


@dataclass(frozen=True, slots=True)
class UsedKnowledge:
    """Looks up which triples the events of an answer used.

    Attributes:
        run: has the answers.
        events: finds events that are still logged.
    """

    run: StandingRun
    events: TraceEvents

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
        events = self.events.find(answer.trace, _READ_BYTES)
        batches = {item: found.event for item, found in events.items()}
        found = used_triples(checked.query, answer, batches, self.run.knowledge_at, _LIMITS)
        since = self.run.knowledge_since
        arrivals = [events[item].arrived if item in events else 0 for item in answer.trace]
        changed = min(logged.logged_ms, *arrivals) < since
        return {"id": name, "changed": changed, "events": [self._as_json(used) for used in found]}

    def _as_json(self, used: UsedTriples) -> dict[str, Any]:
        item = used.item
        return {
            "gpm": item.gpm,
            "stream": item.stream,
            "event": item.event,
            "time": format_time(item.time),
            "exact": used.is_exact,
            "graphs": [
                {"graph": graph, "triples": [self._triple(graph, t, item.time) for t in triples]}
                for graph, triples in used.graphs.items()
            ],
            "more": used.more,
        }

    def _triple(self, graph: str, triple: Triple, time: int) -> dict[str, Any]:
        """A triple that held at a time (ms); `until` says when it went."""
        until = self.run.graphs.held_until(graph, triple, time)
        shown = triple_json(triple)
        return shown if until is None else {**shown, "until": format_time(until)}
