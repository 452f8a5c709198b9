"""Reports: an example on which engine and oracle disagree, and the features a run exercised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from spaseq.algebra.answers import Answer as EngineAnswer
from tests.oracle.answers import Answer
from tests.oracle.comparison import comparable
from tests.oracle.differences import REMOVALS
from tests.oracle.draw_events import NS
from tests.oracle.engine import EVALUATORS
from tests.oracle.patterns import nt
from tests.oracle.strategies import Case

if TYPE_CHECKING:
    from tests.oracle.agreement import Tally


def events_table(case: Case) -> str:
    """One line per event, in order of time: time, k, stream, graph, its triples by subject."""
    rows = []
    for stream, events in case.streams.items():
        ties: Counter[int] = Counter()
        for time, iri, triples in events:
            facts: dict[str, list[str]] = {}
            for s, p, o in triples:
                facts.setdefault(short(nt(s)), []).append(f"{short(nt(p))} {short(nt(o))}")
            text = " | ".join(f"{s}: {', '.join(f)}" for s, f in facts.items())
            rows.append((time, ties[time], stream, f"{short(iri or '-')}  {text}"))
            ties[time] += 1
    head = "    time  k  stream    graph  triples\n"
    lines = (f"{t:8d} {k:2d}  {short(s):9s} {text}" for t, k, s, text in sorted(rows))
    return head + "\n".join(lines)


def short(text: str) -> str:
    text = text.replace("<" + NS, "").replace(NS, "").replace(">", "")
    return text.replace('"^^<http://www.w3.org/2001/XMLSchema#integer', "").strip('"')


def answers_text(answers: Iterable[Answer | EngineAnswer]) -> str:
    lines = []
    for answer in answers:
        _, end, trace, bindings, singles, lists = comparable(answer)
        steps = " ".join(f"{g}@{t}.{k}/{short(s)[-1]}" for t, k, g, s, _ in trace)  # type: ignore
        shown = ", ".join(f"{v}={short(x)}" for v, x in bindings)  # type: ignore[attr-defined]
        hidden = ", ".join(f"{v}={short(x)}" for v, x in singles)  # type: ignore[attr-defined]
        group = ", ".join(f"{v}={[short(x) for x in xs]}" for v, xs in lists)  # type: ignore
        lines.append(f"  {steps}  end {end}  {{{shown}}}  singles {{{hidden}}}  lists {{{group}}}")
    return "\n".join(lines) or "  (none)"


def disagreement(case: Case, expected: list[Any], found: list[Any]) -> str:
    """Everything needed to understand a failure, on one page."""
    if "CONSTRUCT" in case.features:
        events = ["the oracle's events:", *map(str, expected), "the engine's events:"]
        made = [str((a.end[0], a.graph)) for a in found]
        return "\n".join(["", case.query, events_table(case), *events, *made])
    own, other = [comparable(a) for a in expected], [comparable(a) for a in found]
    missing = [a for a in expected if comparable(a) not in other]
    surplus = [a for a in found if comparable(a) not in own]
    what = "the order differs" if not missing and not surplus else "the answers differ"
    return "\n".join(
        [
            f"\n{what}",
            case.query,
            events_table(case),
            f"the oracle's {len(expected)} answers:",
            answers_text(expected),
            f"the engine's {len(found)} answers:",
            answers_text(found),
            "missing:",
            answers_text(missing),
            "surplus:",
            answers_text(surplus),
        ]
    )


def coverage(tally: Tally, rows: Iterable[str]) -> str:
    """A table of features: examples with it, with answers, and with answers by evaluator.

    Features of loops also have the number of examples that without it have other answers.
    """
    names = "".join(f"{e:>20s}" for e in EVALUATORS)
    lines = [f"{'feature':24s}  examples  with answers  mattered{names}"]
    for row in sorted(set(rows) | set(tally.exercised)):
        by = "".join(f"{tally.by[row, e]:20d}" for e in EVALUATORS)
        mattered = str(tally.mattered[row]) if row in REMOVALS else ""
        counts = f"{tally.exercised[row]:8d}  {tally.answered[row]:12d}  {mattered:>8s}"
        lines.append(f"{row:24s}  {counts}{by}")
    lines.append(f"too big for the oracle: {tally.too_big}")
    lines.append(f"not supported by the engine: {tally.not_supported}")
    return "\n".join(lines)
