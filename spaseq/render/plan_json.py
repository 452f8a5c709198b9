"""The plan of a query as JSON values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from spaseq.automaton.program.window import Counted, Tumbling
from spaseq.message_text import public_address
from spaseq.plan.pattern_plan import GpmPlan
from spaseq.plan.query_plan import QueryPlan
from spaseq.plan.rules import NAMES
from spaseq.render.picture.diagram import BRACKETS, Diagram, Picture, StateBox
from spaseq.render.plan_text import computed_text, kernel_of, memory_text, projected_text
from spaseq.render.query_words import QueryWords, extent_words, window_text
from spaseq.render.rule_effects import effects, shared_patterns

if TYPE_CHECKING:
    from spaseq.render.picture.live import DrawnCounts  # NumPy, which `explain` need not import

Json: TypeAlias = dict[str, Any]


def plan_json(plan: QueryPlan, words: QueryWords, rate: float | None = None) -> Json:
    """The plan; `rate` is the number of solutions per second for the estimate of memory."""
    inputs, changes = plan.inputs, dict(effects(plan))
    streams = zip(inputs.stream_names, inputs.streams, inputs.predicates, strict=True)
    windows = {
        "windows": [
            {
                "name": window.name,
                "streams": [inputs.stream_names[stream] for stream in window.streams],
                "extent": extent_words(window.extent),
            }
            for window in inputs.windows
        ]
    }
    return {
        "query": plan.identity.name,
        "registers": None if plan.maintained else plan.identity.register,
        "maintains": plan.maintained,
        "window": _window(plan),
        "streams": [
            {"name": name, "iri": iri, "predicates": None if reads is None else list(reads)}
            for name, iri, reads in streams
        ],
        **(windows if inputs.windows else {}),
        "knowledge": list(inputs.kbs),
        "changing": [] if plan.changing is None else list(plan.changing.graphs),
        "endpoints": [public_address(service) for service in inputs.services],
        "gpms": [_gpm(plan, gpm, words) for gpm in plan.patterns.gpms],
        "shared": [
            {"gpms": names, "triples": [words.triple(triple) for triple in triples]}
            for names, triples in shared_patterns(plan)
        ],
        "sequence": _sequence(plan, rate),
        "answers": _answers(plan, words),
        "rules": [
            {"name": name, "disabled": name in plan.disabled, "changes": changes.get(name, [])}
            for name in NAMES
            if name in changes or name in plan.disabled
        ],
    }


def _window(plan: QueryPlan) -> Json:
    window = plan.sequence.window
    text = window_text(window)
    if isinstance(window, Counted):
        return {"text": text, "kind": "events", "events": window.events}
    kind = "tumbling" if isinstance(window, Tumbling) else "sliding"
    return {"text": text, "kind": kind, "ms": window.length_ms}


def _gpm(plan: QueryPlan, gpm: GpmPlan, words: QueryWords) -> Json:
    return {
        "name": gpm.name,
        "streams": list(plan.sources_of(gpm)),
        "binds": [v for v in gpm.variables if not v.startswith("_:")],
        "keeps": sorted(v for v in gpm.private if not v.startswith("_:")),
        "filters": words.filters(gpm),
        "conditions": words.looking_back(gpm),
        "negated": gpm.negated,
        "in_stage_2": None if gpm.correlation is None else gpm.correlation.reason,
    }


def _sequence(plan: QueryPlan, rate: float | None) -> Json:
    sequence = plan.sequence
    key = sequence.key.variables
    return {
        "key": None if key is None else list(key),
        "key_reason": sequence.key.reason,
        "evaluator": sequence.evaluator.name,
        "kernel": kernel_of(plan),
        "reason": sequence.evaluator.reason,
        "all_instants": sequence.needs_instants,
        "memory": memory_text(plan, rate),
    }


def _answers(plan: QueryPlan, words: QueryWords) -> Json:
    answers = plan.answers
    template = answers.template
    return {
        "selection": answers.strategy,
        "after_match": answers.after_match.kind,
        "after_match_gpm": answers.after_match.gpm,
        "mute_ms": answers.after_match.mute_ms or None,
        "computed": [computed_text(variable, words) for variable in answers.computed],
        "having": None if answers.having is None else words.condition(answers.having),
        "distinct": answers.distinct,
        "project": [projected_text(item, words) for item in answers.projection],
        "construct": None
        if template is None
        else [" ".join(map(words.term, triple.terms)) for triple in template.triples],
    }


def automaton_json(picture: Picture, live: DrawnCounts | None = None) -> Json:
    """The automaton: states, edges, and the automata of negated steps and UNTIL.

    With `live`, each state of the sequence has its `label` and the number of its `partial_matches`,
    and each edge the `count` of solutions that were taken along the edges of its step.
    """
    panels = [{"title": each.title, **_diagram(each.diagram)} for each in picture.panels]
    return {"sequence": picture.title, **_diagram(picture.main, live), "beside": panels}


def _diagram(diagram: Diagram, live: DrawnCounts | None = None) -> Json:
    return {
        "states": [
            {
                "id": box.id,
                "takes": box.name or None,
                "streams": list(box.streams),
                "joined": list(box.joined),
                "conditions": list(box.conditions),
                "counts": list(box.counts),
                "final": box.final,
                "ends": list(box.ends),
                "operands": [_diagram(operand, live) for operand in box.operands],
                **_waiting(box, live),
            }
            for box in diagram.states
        ],
        "edges": [
            {
                "from": diagram.states[link.source].id,
                "to": diagram.states[link.target].id,
                "operator": link.operator or None,
                "again": link.again,
                "unless": list(link.unless),
                **_taken(diagram.states[link.target].name, live),
            }
            for link in diagram.links
        ],
    }


def _taken(name: str, live: DrawnCounts | None) -> Json:
    """The count of the edges into a state that takes `name`; it is not known of a bracket's."""
    if live is None:
        return {}
    if live.taken is None or name in BRACKETS:
        return {"count": None}
    return {"count": live.taken.get(name, 0)}


def _waiting(box: StateBox, live: DrawnCounts | None) -> Json:
    if live is None:
        return {}
    waiting = None if live.waiting is None else live.waiting.get(box.id, 0)
    return {"label": box.title if box.name else "", "partial_matches": waiting}
