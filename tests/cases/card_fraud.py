"""Expected answers of `streams/card-fraud`: `SEQ (A, B{2,}; D!; C{3})`, one card at a time."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from .raw import (
    MINUTE,
    Answer,
    Event,
    Knowledge,
    after,
    answer,
    by,
    in_order,
    next_instant,
    read_stream,
)

NS = "http://cards.example/ns#"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
TRANSACTIONS = "http://cards.example/stream/transactions"
CONFIRMATIONS = "http://cards.example/stream/confirmations"


def answers(folder: Path) -> Iterator[Answer]:
    """The answers of query.rq, in no particular order."""
    kb = Knowledge(folder / "kb.ttl")
    holder, issued_by, label = kb.one(f"{NS}holder"), kb.one(f"{NS}issuedBy"), kb.one(LABEL)
    events = in_order(
        read_stream(folder / "transactions.nq", TRANSACTIONS),
        read_stream(folder / "confirmations.nq", CONFIRMATIONS),
    )
    for card, own in by(events, f"{NS}card").items():
        for grown, small in matches(own):
            trace = [("A", grown[0]), *(("B", b) for b in grown[1:]), *(("C", c) for c in small)]
            yield answer(
                "query",
                trace,
                {
                    "card": card,
                    "holder": holder[card],
                    "bankName": label[issued_by[card]],
                    "first": grown[0].one(f"{NS}amount"),
                    "big": grown[-1].one(f"{NS}amount"),
                    "small": small[-1].one(f"{NS}amount"),
                },
            )


def amount(event: Event) -> Decimal:
    return event.number(f"{NS}amount")


def matches(events: list[Event]) -> Iterator[tuple[list[Event], list[Event]]]:
    """At least three consecutive growing amounts, then the next three small amounts."""
    for a in events:
        if a.stream != TRANSACTIONS:
            continue
        for grown in growing(events, [a]):
            big = grown[-1]
            small = [
                c
                for c in after(events, big)
                if c.stream == TRANSACTIONS and amount(c) <= Decimal("0.1") * amount(big)
            ][:3]
            if len(small) < 3 or small[-1].time - a.time > 30 * MINUTE:
                continue
            confirmed = any(
                d.stream == CONFIRMATIONS and d.instant < small[0].instant
                for d in after(events, big)
            )
            if not confirmed:
                yield grown, small


def growing(events: list[Event], run: list[Event]) -> Iterator[list[Event]]:
    """The run and its extensions by the next event, as long as each is 1.5 times the one before."""
    if len(run) >= 3:
        yield run
    for b in next_instant(events, run[-1]):
        if b.stream == TRANSACTIONS and amount(b) >= Decimal("1.5") * amount(run[-1]):
            yield from growing(events, [*run, b])
