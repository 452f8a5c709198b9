"""NGSI-LD: representations, times, deletes, contexts, and what is bad."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.inputs.contexts import JsonLdContexts
from tests.rdf.streams import XSD, Event, read, write

NGSI = "https://uri.etsi.org/ngsi-ld/"
CORE = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.6.jsonld"
OWN = {"level": "http://w/level", "gate": "http://w/gate", "note": "http://w/note"}
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def notification(*data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "urn:n:1",
        "type": "Notification",
        "notifiedAt": "1970-01-01T00:00:09Z",
        "data": [*data],
        "@context": [OWN, CORE],
        **more,
    }


def weir(**attributes: Any) -> dict[str, Any]:
    return {"id": "urn:w:7", "type": "Weir", **attributes}


def events(tmp_path: Path, *values: Any, **options: Any) -> tuple[list[Event], list[str]]:
    lines = "".join(json.dumps(value) + "\n" for value in values)
    found, bad = read(write(tmp_path / "w.ngsild", lines), **options)
    return found, [one.reason for one in bad]


def values(event: Event, attribute: str, member: str = "hasValue") -> set[str]:
    """What the instances of an attribute have."""
    nodes = {o for _, p, o in event.triples if p == f"<{attribute}>"}
    return {o for s, p, o in event.triples if s in nodes and p == f"<{NGSI}{member}>"}


def test_normalized_and_concise_give_the_same_triples(tmp_path: Path) -> None:
    normalized = weir(
        level={
            "type": "Property",
            "value": 2.5,
            "observedAt": "1970-01-01T00:00:03Z",
            "accuracy": {"type": "Property", "value": 0.1},
        },
        gate={"type": "Relationship", "object": "urn:g:1"},
        note={"type": "LanguageProperty", "languageMap": {"en": "high"}},
        location={"type": "GeoProperty", "value": {"type": "Point", "coordinates": [4, 52]}},
        is_open={"type": "Property", "value": True},
    )
    concise = weir(
        level={"value": 2.5, "observedAt": "1970-01-01T00:00:03Z", "accuracy": 0.1},
        gate={"object": "urn:g:1"},
        note={"languageMap": {"en": "high"}},
        location={"type": "Point", "coordinates": [4, 52]},
        is_open=True,
    )
    (one, other), bad = events(tmp_path, notification(normalized), notification(concise))
    assert (set(one.triples), one.time, bad) == (set(other.triples), other.time, [])
    assert one.time == 3000
    assert values(one, "http://w/gate", "hasObject") == {"<urn:g:1>"}
    assert values(one, "http://w/note", "hasLanguageMap") == {'"high"@en'}
    assert values(one, f"{NGSI}default-context/is_open") == {f'"true"^^<{XSD}boolean>'}


def test_each_entity_is_an_event_in_order_of_time(tmp_path: Path) -> None:
    early = {**weir(level={"value": 1, "observedAt": "1970-01-01T00:00:02Z"}), "id": "urn:w:8"}
    late = weir(level=[{"value": v, "observedAt": f"1970-01-01T00:00:0{v}Z"} for v in (5, 4)])
    found, bad = events(tmp_path, notification(late, early))
    assert [(e.time, e.graph) for e in found] == [(2000, "urn:n:1#2"), (5000, "urn:n:1#1")]
    assert bad == []


@pytest.mark.parametrize(
    ("entity", "time"),
    [
        (weir(level={"value": 1}), 9000),
        (weir(level={"value": 1, "modifiedAt": "1970-01-01T00:00:04Z"}), 4000),
        (weir(level={"value": 1}, modifiedAt="1970-01-01T00:00:05Z"), 5000),
        (weir(deletedAt="1970-01-01T00:00:06Z"), 6000),
        (weir(level={"value": 1, "observedAt": "1970-01-01T02:00:07.5+02:00"}), 7500),
    ],
)
def test_times(tmp_path: Path, entity: dict[str, Any], time: int) -> None:
    found, bad = events(tmp_path, notification(entity))
    assert ([event.time for event in found], bad) == ([time], [])


def test_times_are_those_of_xml_schema(tmp_path: Path) -> None:
    seen = "1970-01-01T00:00:03Z"
    (event,), _ = events(tmp_path, notification(weir(level={"value": 1, "observedAt": seen})))
    assert values(event, "http://w/level", "observedAt") == {f'"{seen}"^^<{XSD}dateTime>'}


def test_what_is_deleted_has_no_value(tmp_path: Path) -> None:
    gone = {"value": "urn:ngsi-ld:null", "previousValue": 3, "deletedAt": "1970-01-01T00:00:08Z"}
    (event,), _ = events(
        tmp_path, notification(weir(level=gone, gate={"object": "urn:ngsi-ld:null"}))
    )
    assert not any("ngsi-ld:null" in o for _, _, o in event.triples)
    assert values(event, "http://w/level", "hasPreviousValue") == {f'"3"^^<{XSD}integer>'}
    deleted = {f'"1970-01-01T00:00:08Z"^^<{XSD}dateTime>'}
    assert values(event, "http://w/level", "deletedAt") == deleted
    assert values(event, "http://w/gate", "deletedAt") == deleted


def test_key_values_are_values_of_the_entity(tmp_path: Path) -> None:
    entity = weir(level={"dataset": {"@none": 1, "urn:d:1": 2}}, gate="urn:g:1")
    (event,), _ = events(tmp_path, notification(entity))
    levels = {o for _, p, o in event.triples if p == "<http://w/level>"}
    assert levels == {f'"1"^^<{XSD}integer>', f'"2"^^<{XSD}integer>'}
    assert ("<urn:w:7>", "<http://w/gate>", '"urn:g:1"') in event.triples
    assert event.time == 9000


def test_contexts_by_name_and_of_each_entity(tmp_path: Path) -> None:
    contexts = JsonLdContexts(named=(("http://w/context", json.dumps(OWN)),))
    named = notification(weir(level={"value": 1}), **{"@context": "http://w/context"})
    inside = notification(weir(level={"value": 1}, **{"@context": OWN}))
    del inside["@context"]
    none = notification(weir(level={"value": 1}))
    del none["@context"]
    found, bad = events(tmp_path, named, inside, none, contexts=contexts)
    predicates = [{p for s, p, _ in e.triples if s == "<urn:w:7>"} - {RDF_TYPE} for e in found]
    assert predicates == [
        {"<http://w/level>"},
        {"<http://w/level>"},
        {f"<{NGSI}default-context/level>"},
    ]
    assert bad == []


def test_a_value_that_is_no_geometry(tmp_path: Path) -> None:
    odd = {"type": ["Point"], "coordinates": [1, 2]}
    found, bad = events(tmp_path, notification(weir(level={"value": odd})))
    assert (len(found), bad) == (1, [])


MEMBERS = "type", "value", "object", "languageMap", "observedAt", "datasetId", "unitCode", "kind"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(MEMBERS), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES, st.dictionaries(st.sampled_from(["id", "type", "notifiedAt"]), VALUES, max_size=2))
@settings(max_examples=25, deadline=None)
def test_no_value_ends_the_stream(value: Any, around: dict[str, Any]) -> None:
    good = notification(weir(level={"value": 1}))
    with TemporaryDirectory() as directory:
        found, bad = events(Path(directory), {**notification(weir(level=value)), **around}, good)
    assert any(event.time == 9000 for event in found)
    assert len(found) == 2 or bad


def test_an_entity_by_itself_and_a_document_of_several_lines(tmp_path: Path) -> None:
    seen = "1970-01-01T00:00:03Z"
    entity = {**weir(level={"value": 1, "observedAt": seen}), "@context": OWN}
    path = write(tmp_path / "one.ngsild", json.dumps([entity, notification(entity)], indent=2))
    found, bad = read(path)
    assert [e.graph for e in found] == [f"urn:w:7#{seen}", "urn:n:1"]
    assert (found[0].triples, bad) == (found[1].triples, [])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (notification(weir(level={"value": 1, "observedAt": "noon"})), "readable timestamp"),
        (notification({"type": "Weir"}), "needs a URI as its id"),
        (notification({"id": "weir 7", "type": "Weir"}), "needs a URI as its id"),
        (notification(weir(), **{"@context": "http://w/unknown"}), "nothing is fetched"),
        (notification(weir(), id=7), "the id of a notification"),
        (7, "a notification or an entity"),
        ({**weir(), "@context": OWN}, "without a timestamp"),
    ],
)
def test_what_is_bad_costs_only_itself(tmp_path: Path, value: Any, reason: str) -> None:
    found, bad = events(tmp_path, value, notification(weir(level={"value": 1})))
    assert [event.time for event in found] == [9000]
    assert len(bad) == 1 and reason in bad[0]


def test_a_bad_entity_leaves_the_others_of_its_notification(tmp_path: Path) -> None:
    found, bad = events(tmp_path, notification(weir(level={"value": 1}), "no entity"))
    assert ([event.graph for event in found], len(bad)) == (["urn:n:1#1"], 1)


def test_the_core_context_is_known_to_all_json_ld(tmp_path: Path) -> None:
    entity = {**weir(level={"type": "Property", "value": 1}), "@context": [OWN, CORE]}
    time = {"@id": "http://t/1", "http://www.w3.org/ns/prov#generatedAtTime": 5}
    text = json.dumps({"@context": CORE, **time, "@graph": [entity]})
    for name in ("d.jsonld", "d.ndjsonld"):
        (event,), bad = read(write(tmp_path / name, text))
        assert values(event, "http://w/level") == {f'"1"^^<{XSD}integer>'}
        assert (event.time, bad) == (5, [])
