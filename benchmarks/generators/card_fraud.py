"""Card fraud: a stream of transactions, and a stream of confirmations that holders gave by phone.

Transactions come at random intervals, about one per card in 90 seconds, and some share a timestamp.
Most amounts are everyday amounts. An episode is a run of amounts, each at least 1.5 times the one
before, and then small amounts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .case import Case, Dice, Generated, Planted
from .episodes import Part, Schedule, Script
from .names import BANKS, PEOPLE
from .nquads import RDF_TYPE, Stamp, decimal, event, hundredths, milliseconds

BASE = "http://cards.example/"
NS = f"{BASE}ns#"
START = milliseconds("2024-09-10T12:00:00")
TRANSACTIONS, CONFIRMATIONS = 0, 1
CHANNELS = ("ATM", "Shop", "Online")

KINDS = (
    "hit",
    "holder confirms",
    "hit",
    "grows too little",
    "hit",
    "only two small ones",
    "hit",
    "small ones are not small enough",
)


class Act(NamedTuple):
    """A transaction with its amount in hundredths, or a confirmation (None)."""

    amount: int | None


def _episode(dice: Dice, kind: str) -> list[Part[Act]]:
    """Growing amounts, then small ones; sometimes with everyday amounts in between."""
    amount = dice.whole(1500, 2800)
    grown = [amount]
    for _ in range(dice.whole(2, 3)):
        amount = amount * dice.whole(155, 200) // 100
        grown.append(amount)
    if kind == "grows too little":
        grown[2:] = [grown[1] * 14 // 10]
        amount = grown[-1]
    scale = 9 if kind != "small ones are not small enough" else 14
    small = [Part(Act(amount * dice.whole(scale - 3, scale) // 100)) for _ in range(3)]
    parts = [Part(Act(a)) for a in grown]
    if kind == "holder confirms":
        parts.append(Part(Act(None), False))
    elif dice.chance(0.4):
        parts.append(Part(Act(dice.whole(amount // 5, amount)), False))
    return parts + (small[:2] if kind == "only two small ones" else small)


class Payments:
    """Writes the events of both streams, numbering them."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._numbers = [0, 0]

    def write(self, time: int, card: int, act: Act, mark: Planted | None) -> Generated:
        """A transaction or a confirmation as an event."""
        stream = TRANSACTIONS if act.amount is not None else CONFIRMATIONS
        self._numbers[stream] += 1
        graph = f"{BASE}{('transaction', 'confirmation')[stream]}/{self._numbers[stream]}"
        e, c = f"<{graph}>", f"<{BASE}card/{card}>"
        if act.amount is None:
            triples = [(e, RDF_TYPE, f"<{NS}Confirmation>"), (e, f"<{NS}card>", c)]
        else:
            triples = [
                (e, RDF_TYPE, f"<{NS}Transaction>"),
                (e, f"<{NS}card>", c),
                (e, f"<{NS}amount>", decimal(hundredths(act.amount))),
                (e, f"<{NS}channel>", f"<{NS}{self._dice.pick(CHANNELS)}>"),
                (e, f"<{NS}merchant>", f"<{BASE}merchant/{self._dice.whole(1, 40)}>"),
            ]
        return Generated(stream, graph, event(e, time, triples, Stamp.BEFORE), mark)


def events(dice: Dice, keys: int) -> Iterator[Generated]:
    """The transactions and confirmations of `keys` cards, without end."""
    payments, schedule = Payments(dice), Schedule(KINDS)
    scripts: list[Script[Act]] = [Script() for _ in range(keys)]
    longest = 180_000 // keys
    grain = 1000 if longest >= 2000 else 1  # whole seconds if intervals are long enough
    time = START
    while True:
        time += grain * dice.whole(0, longest // grain)
        card = dice.whole(0, keys - 1)
        script = scripts[card]
        if not script and dice.chance(0.03):
            number, kind = schedule.next()
            script.plan(number, kind, "query", _episode(dice, kind))
        if script:
            yield payments.write(time, card, *script.next())
        else:
            act = Act(None) if dice.chance(0.02) else Act(dice.whole(2500, 12000))
            yield payments.write(time, card, act, None)


def knowledge(keys: int) -> str:
    """Cards with class, holder and bank."""
    rows = [
        f"@prefix : <{NS}> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "",
    ]
    for b, bank in enumerate(BANKS):
        rows.append(f'<{BASE}bank/{b}> a :Bank ; rdfs:label "{bank}" .')
    for c in range(keys):
        kind = ("CreditCard", "DebitCard")[c % 2]
        rows.append(
            f'<{BASE}card/{c}> a :{kind} ; :holder "{PEOPLE[c % len(PEOPLE)]}" ; '
            f":issuedBy <{BASE}bank/{c % len(BANKS)}> ."
        )
    return "\n".join(rows) + "\n"


CASE = Case(
    "card-fraud",
    ("transactions", "confirmations"),
    events,
    knowledge,
    default_events=560,
    default_keys=9,
    max_keys=180_000,
)
