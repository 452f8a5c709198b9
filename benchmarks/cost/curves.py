"""The figures: what is varied, at which points, and what is kept as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import kb
from benchmarks.cost.levels import by_range, by_slide
from benchmarks.cost.queries import query
from benchmarks.cost.runs import stage_cost, text_cost, write
from benchmarks.generators.synthetic import Settings, case
from benchmarks.generators.workloads import WORKLOADS
from benchmarks.plots.figures import Curve, Figure
from benchmarks.sequence import Scenario, plain

COST = "ns of CPU time per event"
KEYS = (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)
WINDOWS = (100, 1000, 10_000, 100_000, 1_000_000)
STEPS = (2, 3, 4, 6, 9, 12, 16, 20, 24)
SHARES = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0)
KB_TRIPLES = (100, 1000, 10_000, 100_000, 1_000_000)
WINDOW_MS = 10_000  # and as many events: there is one every millisecond
KINDS = {"no conditions": False, "compared": True}


@dataclass(frozen=True)
class Effort:
    """How long to measure."""

    rounds: int
    longest: int  # events of the longest stream

    @property
    def events(self) -> int:
        """Events of a stream whose length is not varied."""
        return max(self.longest // 6, 1000)


def scenario(compared: bool, steps: int, window: int, keys: int) -> Scenario:
    """The second stage's work for `query`; the same sequence, in which no match ends."""
    name = "correlated" if compared else "plain"
    return Scenario(name, plain(steps, "; "), window, keys, endless=True)


def by_events(folder: Path, effort: Effort) -> Figure:
    sizes = [effort.longest // divisor for divisor in (100, 30, 10, 3, 1)]
    curves = []
    for workload in WORKLOADS.values():
        paths = write(folder, workload.case("high"), workload.keys, sizes)
        text = workload.query.read_text()
        costs = [
            text_cost(text, path, size, effort.rounds)[0]
            for path, size in zip(paths, sizes, strict=True)
        ]
        curves.append(Curve(workload.name, sizes, costs))
    return Figure("events", "Length of the stream", "events", COST, curves, log_x=True)


def by_keys(folder: Path, effort: Effort) -> Figure:
    costs: dict[str, list[float]] = {}
    for keys in KEYS:
        settings = Settings(selectivity=0.3, triples=3)
        (path,) = write(folder, case(settings), keys, [effort.events])
        for label, compared in KINDS.items():
            text = query(3, WINDOW_MS, compared=compared)
            whole, _ = text_cost(text, path, effort.events, effort.rounds)
            costs.setdefault(label, []).append(whole)
            work = scenario(compared, 3, WINDOW_MS, keys)
            stage = stage_cost(work, effort.events, effort.rounds)
            costs.setdefault(f"{label}, second stage", []).append(stage)
    curves = [Curve(label, KEYS, y) for label, y in costs.items()]
    return Figure("keys", "Number of keys", "keys", COST, curves, log_x=True)


def by_window(folder: Path, effort: Effort) -> Figure:
    events = effort.longest // 2
    (path,) = write(folder, case(Settings(selectivity=0.3, triples=3)), 100, [events])
    curves = []
    for label, compared in KINDS.items():
        texts = [query(3, window, compared=compared) for window in WINDOWS]
        whole = [text_cost(text, path, events, effort.rounds)[0] for text in texts]
        works = [scenario(compared, 3, window, 100) for window in WINDOWS]
        stage = [stage_cost(work, events, effort.rounds) for work in works]
        curves += [Curve(label, WINDOWS, whole), Curve(f"{label}, second stage", WINDOWS, stage)]
    return Figure("window", "Window", "window in events", COST, curves, log_x=True)


def by_steps(folder: Path, effort: Effort) -> Figure:
    settings = Settings(types=max(STEPS), selectivity=1 / max(STEPS), triples=3)
    (path,) = write(folder, case(settings), 100, [effort.events])
    curves = []
    for label, compared in KINDS.items():
        texts = [query(steps, WINDOW_MS, compared=compared) for steps in STEPS]
        whole = [text_cost(text, path, effort.events, effort.rounds)[0] for text in texts]
        works = [scenario(compared, steps, WINDOW_MS, 100) for steps in STEPS]
        stage = [stage_cost(work, effort.events, effort.rounds) for work in works]
        curves += [Curve(label, STEPS, whole), Curve(f"{label}, second stage", STEPS, stage)]
    return Figure("steps", "Number of steps", "steps", COST, curves)


def by_selectivity(folder: Path, effort: Effort) -> Figure:
    curves = []
    for label, compared in KINDS.items():
        costs = []
        for share in SHARES:
            settings = Settings(types=2, selectivity=share / 2, triples=3)
            (path,) = write(folder, case(settings), 100, [effort.events])
            text = query(3, WINDOW_MS, compared=compared)
            costs.append(text_cost(text, path, effort.events, effort.rounds)[0])
        curves.append(Curve(f"{label}; x: events with a solution", SHARES, costs))
    answering, ends, costs = WORKLOADS["answering"].query.read_text(), [], []
    for share in SHARES:
        (path,) = write(folder, case(Settings(selectivity=share / 3)), 100, [effort.events])
        cost, answers = text_cost(answering, path, effort.events, effort.rounds)
        if answers:
            ends.append(answers / effort.events)
            costs.append(cost)
    curves.append(Curve("answering; x: answers per event", ends, costs))
    return Figure("selectivity", "Selectivity", "share of the events", COST, curves, log_x=True)


def by_knowledge(folder: Path, effort: Effort) -> Figure:
    events = max(effort.events // 2, 1000)
    costs: dict[str, list[float]] = {"joined with the knowledge base": [], "without": []}
    source, stream = folder / "kb.nt", folder / "events.nq"
    for triples in KB_TRIPLES:
        kb.write_kb(source, triples)
        kb.write_events(stream, events, triples)
        for y, joined in zip(costs.values(), (True, False), strict=True):
            runs = [
                kb.run(kb.query(joined), str(stream), str(source), str(folder / "cache"))
                for _ in range(effort.rounds)
            ]
            y.append(min(run["seconds"] for run in runs) / events * 1e9)
    curves = [Curve(label, KB_TRIPLES, y) for label, y in costs.items()]
    return Figure("knowledge", "Knowledge base", "triples", COST, curves, log_x=True)


FIGURES: dict[str, Callable[[Path, Effort], Figure]] = {
    "events": by_events,
    "keys": by_keys,
    "window": by_window,
    "steps": by_steps,
    "selectivity": by_selectivity,
    "knowledge": by_knowledge,
    "range": lambda folder, effort: by_range(folder, effort.events, effort.rounds),
    "slide": lambda folder, effort: by_slide(folder, effort.events, effort.rounds),
}


def figures(names: list[str], effort: Effort) -> Iterator[Figure]:
    """Measure figures. The streams of each lie in a temporary directory."""
    for name in names or FIGURES:
        with TemporaryDirectory(prefix="spaseq-cost-") as folder:
            yield FIGURES[name](Path(folder), effort)
