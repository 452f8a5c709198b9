"""Answers with equal traces come in the order of their bindings, each once."""

from __future__ import annotations

from random import Random

import spaseq

TEXTS = ["a", "ab", "a b", "a\\u0001", "b", "\u00e9", "\U0001f600", "\uffff", "", "A", "a-b"]


def test_answers_of_one_window_event_stand_by_their_texts() -> None:
    query = """PREFIX : <http://e/> SELECT ?p ?o WITHIN 0 SECONDS
        FROM STREAM S <http://e/s> FROM WINDOW W ON S RANGE 5 SECONDS
        WHERE { SEQ((A & B)) DEFINE GPM A ON W { :x ?p ?o } DEFINE GPM B ON W { :y ?q ?u } }"""
    draw = Random(1)
    events = []
    for time in range(40):
        lines = [
            f'<http://e/{draw.choice("xy")}> <http://e/{draw.choice(["p", "pq", "p-"])}> "{text}" .'
            for text in draw.sample(TEXTS, 4)
        ]
        events.append(spaseq.Event("\n".join(lines), time * 500))
    matches = [*spaseq.run(query, {"S": events}, runtime="local")]
    keys = [match.answer.order_key() for match in matches]
    assert len(keys) > 500
    assert keys == sorted(set(keys))
