"""The files that `spaseq init` writes: lifts, a query, its test, knowledge, a configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from spaseq.first_steps.samples import SUBJECT, EventKind, FirstRule, Sample
from spaseq.rdf.terms.times import format_time
from spaseq.sources.feed_files import PREFIX

KB = "http://example/kb"
_PREFIXES = """PREFIX : <http://example/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""
_KEYS = 20
_GROWS = (".csv", ".tsv", ".jsonl", ".ndjson", ".nq", ".nt")


def lift_text(sample: Sample) -> str:
    """The lift of a file of rows."""
    taken = {*sample.types, *sample.names}
    names, binds = {}, []
    used = {field for kind in sample.kinds for field in kind.fields}
    for field, kind in sample.types.items():
        if field not in used:
            continue
        names[field] = field
        if kind.name in ("integer", "number"):
            names[field] = _new(f"{field}_number", taken)
            binds.append(f"  BIND ({kind.term(field)} AS ?{names[field]})")
    graphs: list[str] = []
    named: list[str] = []
    for each in sample.kinds:
        event, when = _new(each.name or "event", taken), _new(f"{each.name}_when".strip("_"), taken)
        triples = [f"a :{sample.name}", *(f":{f} ?{names[f]}" for f in each.fields)]
        inside = " ;\n    ".join(triples)
        graphs.append(
            f"  GRAPH ?{event} {{ ?{event} {inside} }}\n  ?{event} prov:generatedAtTime ?{when}"
        )
        named += _name_and_time(sample, each, event, when)
    what = "an event" if len(graphs) == 1 else f"up to {len(graphs)} events, each with its time"
    return (
        f"# Each row of {Path(sample.path).name} as {what}. Types were found in its first rows.\n"
        f"{_PREFIXES}CONSTRUCT {{\n"
        + " .\n".join(graphs)
        + "\n}\nWHERE {\n"
        + "\n".join([*named, *binds])
        + "\n}\n"
    )


def _name_and_time(sample: Sample, kind: EventKind, event: str, when: str) -> Iterator[str]:
    """The BINDs of an event's name and time."""
    iri_parts = f'"http://example/{sample.name}/", STR(?_line)'
    if kind.name:  # without a time there is no name, and so no event
        iri_parts += f', "/{kind.name}/", STR(?{kind.time})'
    yield f"  BIND (IRI(CONCAT({iri_parts})) AS ?{event})"
    if kind.time is None:
        yield "  # The file has no times: each row is one second after the one before."
        yield f"  BIND (?_line * 1000 AS ?{when})"
    else:
        day, clock = sample.types[kind.time], kind.clock
        term = day.term(kind.time)
        if clock is not None:
            term = day.term_with(kind.time, sample.types[clock], clock)
        yield f"  BIND ({term} AS ?{when})"


def query_text(sample: Sample, rule: FirstRule) -> str:
    """The first query."""
    is_subject = rule.key == SUBJECT
    key = None if rule.key is None or is_subject else f"{_predicate(sample, rule.key)} ?key"
    value = None if rule.value is None else _predicate(sample, rule.value)
    thing = "?key" if is_subject else f"?thing {key} ;"
    known = f"\n    OPTIONAL {{ GRAPH <{KB}> {{ {thing} :label ?label }} }}" * rule.has_labels
    shown = ["?key"] * (rule.key is not None) + ["?label"] * rule.has_labels
    shown += ["?before", "?after"] * (value is not None)
    what = "of one key" if rule.key else "of one value"
    title = f"a value that has grown within {rule.window}" if value else f"two events {what}"
    if len(rule.rows) == 1:
        title = "every event with a value"
    lines = [f"# title: {sample.name}: {title}", _PREFIXES.splitlines()[0]]
    lines += [f"SELECT {' '.join(shown)}", f"WITHIN {rule.window}"]
    lines += [f"FROM STREAM {sample.name} <http://example/stream/{sample.name}>"]
    lines += [f"FROM NAMED <{KB}>"] * rule.has_labels
    one, other = ("key", "key") if is_subject else ("a", "b")
    anything = ["?p ?o"] if is_subject and value is None else []
    first = _graph(one, [key, value and f"{value} ?before", *anything])
    if len(rule.rows) == 1:
        body = ["  SEQ (A)  # each event", f"  DEFINE GPM A ON {sample.name} {{ {first}{known} }}"]
    else:
        more = " FILTER (?after > ?before)" if value else ""
        second = _graph(other, [key, value and f"{value} ?after", *anything])
        body = [
            "  SEQ (A; B)  # A, then the next event that is a B",
            f"  DEFINE GPM A ON {sample.name} {{ {first}{known} }}",
            f"  DEFINE GPM B ON {sample.name} {{ {second}{more} }}",
        ]
    return "\n".join([*lines, "WHERE {", *body, "}", ""])


def test_text(sample: Sample, rule: FirstRule) -> str:
    """A test with the rows of one answer."""
    lines = [
        "# Two rows of the file, and the answer that they make. Run: spaseq test queries",
        'query = "first.rq"',
    ]
    if rule.has_labels:
        lines.append(f'kb = {{ "{KB}" = "../kb.ttl" }}')
    if not sample.is_rdf:
        lines.append(f'lift = {{ {sample.name} = "../{sample.name}.lift.rq" }}')
    lines += ["", "[[test]]", f'name = "an answer of {sample.name}"']
    for seen in rule.rows:
        lines += ["", "[[test.step]]", f'stream = "{sample.name}"']
        if not sample.times:
            lines.append(f'at = "{format_time(seen.time or 0)}"')
        lines.append(f"events = {_toml(_jsonable(seen.given))}")
    lines += ["", "[[test.step]]", 'wait = "1 SECONDS"', f"answers = [{_toml(_expected(rule))}]"]
    return "\n".join(lines) + "\n"


def kb_text(sample: Sample, rule: FirstRule) -> str:
    """The knowledge of the first query: a label for some keys."""
    lines = ["# What you know about the things in your events. The labels are for you to change."]
    lines.append("@prefix : <http://example/> .")
    if rule.key is None or not rule.has_labels:
        return "\n".join(lines) + "\n"
    kind = sample.types[rule.key]
    keys = dict.fromkeys(s.values[rule.key] for s in sample.seen if rule.key in s.values)
    for key in [*keys][:_KEYS]:
        term = str(key) if sample.is_rdf or kind.name == "integer" else json.dumps(key)
        label = json.dumps(str(key).strip('<>"'))
        known = f"{term}" if rule.key == SUBJECT else f"[] {_predicate(sample, rule.key)} {term} ;"
        lines.append(f"{known} :label {label} .")
    return "\n".join(lines) + "\n"


def configuration_text(samples: Sequence[Sample], directory: Path, kb: bool) -> str:
    """The configuration of `spaseq serve`."""
    lines = [
        "# spaseq serve spaseq.toml runs the queries of queries/ over these streams.",
        "[server]",
        'listen = "127.0.0.1:8787"',
        'data = "state"',
        "",
    ]
    for sample in samples:
        lines += [f"[streams.{sample.name}]", f'iri = "http://example/stream/{sample.name}"']
        path = sample.path_in(directory)
        source = os.path.relpath(path, directory)
        if path.lower().endswith(_GROWS):
            lines.append(f"source = {json.dumps(source)}  # read as it grows; without it, POST")
        if path.startswith(PREFIX):
            lines.append('# source = "ldes+https://example/feed"  # where the feed is; else POST')
        if not sample.is_rdf:
            lines.append(f'lift = "{sample.name}.lift.rq"')
        if sample.csv:
            lines.append(f'csv = "{sample.csv}"')
        if sample.format:
            lines.append(f'format = "{sample.format}"')
        if sample.time_predicate is not None:
            lines.append(f'time_predicate = "{sample.time_predicate}"')
        lines.append("")
    if kb:
        lines += ["[kb]", f'"{KB}" = "kb.ttl"', ""]
    lines += ["[queries]", 'directory = "queries"', "", "[sinks.alerts]", 'to = "alerts.jsonl"', ""]
    lines += [
        "# For alerts in Slack, take away the # below, and set SLACK_PATH: the end of its webhook.",
        "# [sinks.slack]",
        '# to = "https://hooks.slack.com/services/${SLACK_PATH}"',
        '# template = "slack"',
    ]
    return "\n".join(lines) + "\n"


def files_of(samples: Sequence[Sample], rule: FirstRule, directory: Path) -> dict[str, str]:
    """The texts by path in the directory; the query is about the first sample."""
    files = {f"{s.name}.lift.rq": lift_text(s) for s in samples if not s.is_rdf}
    files |= {f"{s.name}.jsonl": s.records for s in samples if s.records is not None}
    return {
        **files,
        "queries/first.rq": query_text(samples[0], rule),
        "queries/first.test.toml": test_text(samples[0], rule),
        "kb.ttl": kb_text(samples[0], rule),
        "spaseq.toml": configuration_text(samples, directory, rule.has_labels),
    }


def _new(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _predicate(sample: Sample, field: str) -> str:
    return f"<{field}>" if sample.is_rdf else f":{field}"


def _graph(subject: str, patterns: Sequence[str | None]) -> str:
    return f"?{subject} " + " ; ".join(filter(None, patterns))


def _expected(rule: FirstRule) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    if rule.key is not None:
        key = rule.rows[0].values[rule.key]
        expected["key"] = key if not isinstance(key, str) else key.strip("<>")
    if rule.value is not None:
        one, other = (row.values[rule.value] for row in rule.rows)
        expected |= {"before": one, "after": other}
    return expected


def _jsonable(given: Any) -> Any:
    """A row with the values that JSON has."""
    if not isinstance(given, Mapping):
        return given
    known = str, bool, int, float
    texts = {n: v.isoformat() if isinstance(v, datetime) else str(v) for n, v in given.items()}
    return {n: v if isinstance(v, known) else texts[n] for n, v in given.items()}


def _toml(value: Any) -> str:
    """A value in TOML."""
    match value:
        case Mapping():
            return (
                "{ " + ", ".join(f"{json.dumps(n)} = {_toml(v)}" for n, v in value.items()) + " }"
            )
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)
