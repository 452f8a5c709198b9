"""Draws cases, runs copies of each, and says which copies have other answers than the case alone.

`python -m tests.oracle.copies.campaign --cases N --events N` prints as it goes. Every tenth case is
run as a process, whose start takes most of the time of a case; the others are run in this one.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

from spaseq.compile import check_query
from spaseq.errors import UsageError
from spaseq.lang import ast
from spaseq.plan.query_plan import CompileOptions
from spaseq.thresholds import ENTRIES
from tests.oracle.choices import seeded
from tests.oracle.copies.command import Output, Road, run
from tests.oracle.copies.files import Written, written
from tests.oracle.copies.layouts import (
    Layout,
    by_key,
    is_tumbling,
    joined_by_key,
    layout,
    needs_own_keys,
    with_fillers,
    without_partition,
)
from tests.oracle.copies.rows import (
    Expected,
    Reader,
    Row,
    Wrong,
    by_copy,
    expected,
    expected_partials,
    lines_by_query,
    wanted,
)
from tests.oracle.draw_events import NS
from tests.oracle.model import Refused, TooBig
from tests.oracle.query_sets import queries_of
from tests.oracle.report import events_table
from tests.oracle.spark_sample import apart
from tests.oracle.strategies import EVERYTHING, Case, case

MOST_ANSWERS = 400_000
"""Answers of all copies of a run, at most: a case with many answers gets fewer copies."""

COMPILED_TEXT = """
    , ; : + * ? {n,m} | & AND ! !-first !-last nested repeated-bracket stateful-filter equality-join
    PREV WITHIN EVENTS several-keys several-streams ties TUMBLING PARTITION PARTITION-2 MAX STRICT
    CONSUME PAST-LAST-EVENT own-operator greedy until running SELECT-vars
"""
COMPILED = frozenset(COMPILED_TEXT.split())
"""Features of which compiled evaluators run most: they are fast, and know most sizes."""


@dataclass(frozen=True)
class Sample:
    """Queries over a case's streams, and how their copies lie, are written and are run."""

    name: str
    case: Case
    texts: dict[str, str]
    layout: Layout
    road: Road
    parts: int = 1
    in_order: bool = True

    @property
    def events(self) -> int:
        return self.layout.count * sum(map(len, self.case.streams.values()))


@dataclass
class Tallied:
    """What a campaign has run."""

    cases: Counter[str] = field(default_factory=Counter)
    answers: int = 0
    events: int = 0
    crossed: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def table(self) -> str:
        """Counts by kind of case, the runs that crossed each threshold, and those that none did."""
        rows = [f"{name:28s} {n:6d}" for name, n in sorted(self.cases.items())]
        rows += [f"crossed {name:28s} {n:6d}" for name, n in sorted(self.crossed.items())]
        rows.append(f"crossed by no run: {', '.join(sorted(ENTRIES.keys() - self.crossed))}")
        sums = f"{self.events} events, {self.answers} answers, {len(self.wrong)} differ"
        return "\n".join([*rows, sums])


@dataclass(frozen=True)
class Wish:
    """What kind of sample is drawn, and about how many events it has."""

    own: bool
    events: int
    several: bool = False
    keyed: bool = False  # whether each key must be evaluated by itself
    features: frozenset[str] = EVERYTHING
    road: Road = field(default_factory=Road)


def drawn(seed: str, wish: Wish) -> Sample | None:
    """A sample, or nothing if the drawn case does not suit."""
    choices = seeded(seed)
    example = case(choices, wish.features)
    texts = queries_of(example, choices, 30) if wish.several else [example.query]
    if wish.own and choices.chance(2):
        texts = [_joined(text) for text in texts]
    queries = [check_query(text).query for text in texts]
    if not queries or None in queries:
        return None
    parsed = [query for query in queries if query is not None]
    if not wish.own and any(map(needs_own_keys, parsed)):
        return None
    if wish.keyed and not all(map(by_key, parsed)):
        return None
    example = with_fillers(example, parsed)
    copies = wish.events // max(1, sum(map(len, example.streams.values())))
    lying = layout(choices, example, parsed, wish.own, copies)
    named = {f"q{seed.rpartition(':')[2]}x{i}": text for i, text in enumerate(texts)}
    parts, in_order = choices.pick([1, 1, 3]), not choices.chance(6)
    return Sample(seed, example, named, lying, wish.road, parts, in_order)


def _joined(text: str) -> str:
    """The query without PARTITION BY, if its GPMs are joined by the key."""
    other = without_partition(text)
    query = check_query(other).query
    return other if query is not None and joined_by_key(query) else text


def _all_expected(sample: Sample, query: ast.Query, partial: bool) -> tuple[Expected, Expected]:
    """What the first copy should have, and each of the others."""
    asked = expected_partials if partial else expected
    first = asked(query, sample.case, sample.layout.offset(0))
    if sample.layout.base:
        return first, first
    return first, asked(query, sample.case, sample.layout.coarse(1))


def fitting(sample: Sample) -> Sample | None:
    """The sample with no more copies than its answers allow; nothing if an oracle refuses it."""
    most = 0
    for text in sample.texts.values():
        query = check_query(text).query
        assert query is not None
        try:
            if sample.road.partial:
                options = CompileOptions(partial=True)
                plan = check_query(text, options=options).plan
                if plan is None or not plan.levels or isinstance(query.form, ast.Construct):
                    return None
                most += len(_all_expected(sample, query, True)[1].rows)
            most += len(_all_expected(sample, query, False)[1].rows)
        except (TooBig, Refused, UsageError):
            return None
    copies = min(sample.layout.count, MOST_ANSWERS // max(1, most))
    fewer = sample.layout.of(copies)
    if fewer.block == sample.layout.count:
        fewer = replace(fewer, block=copies)
    return replace(sample, layout=fewer)


def difference(sample: Sample, tally: Tallied | None = None) -> str | None:
    """How a run's answers differ from what they should be, if they do."""
    return next(iter(differences([sample], tally).values()), None)


def differences(samples: Sequence[Sample], tally: Tallied | None = None) -> dict[str, str]:
    """How the answers of samples that run together differ, by the sample's name.

    Their streams and queries have different names, and their keys are the same.
    """
    directory = Path(tempfile.mkdtemp(prefix="copies"))
    try:
        files = {}
        for number, each in enumerate(samples):
            own = directory / str(number)
            own.mkdir()
            files[each.name] = written(each.case, each.layout, own, each.parts, each.in_order)
        texts = {name: text for each in samples for name, text in each.texts.items()}
        output = run(samples[0].road, texts, list(files.values()), directory)
        if tally is not None:
            tally.crossed.update(output.crossed)
        if output.problem:
            return {samples[0].name: output.problem}
        told = {each.name: _compared(each, files[each.name], output, tally) for each in samples}
        return {name: text for name, text in told.items() if text is not None}
    finally:
        shutil.rmtree(directory)


def _compared(sample: Sample, files: Written, output: Output, tally: Tallied | None) -> str | None:
    """The first difference of a run's answers, and of its partial matches."""
    for partial in (False, True) if sample.road.partial else (False,):
        lines = lines_by_query(output.partial if partial else output.answers)
        for name, text in sample.texts.items():
            query = check_query(text).query
            assert query is not None
            reader = Reader(sample.layout, files, is_tumbling(query))
            try:
                found = reader.rows(lines.get(name, []), partial)
            except Wrong as wrong:
                return f"{'partial matches of ' * partial}{name}: {wrong}"
            if tally is not None:
                tally.answers += len(found)
            each = _all_expected(sample, query, partial)
            ordered = not partial and not isinstance(query.form, ast.Construct)
            right = wanted(*each, sample.layout, files, reader.tumbling) if ordered else None
            if told := told_apart(found, each, sample.layout, right):
                return f"{'partial matches of ' * partial}{name}: {told}"
    return None


def told_apart(
    found: list[tuple[int, Row]],
    each: tuple[Expected, Expected],
    layout: Layout,
    right: list[tuple[int, Row]] | None,
) -> str | None:
    """Which copies have other answers; else whether the order differs."""
    if right is not None and found == right:
        return None
    own = by_copy(found)
    wrong = [c for c in range(layout.count) if own.get(c, []) != (each[1] if c else each[0]).rows]
    if not wrong:
        return "answers of different copies stand in another order" if right is not None else None
    copy = wrong[0]
    expects = Counter((each[1] if copy else each[0]).rows)
    has = Counter(own.get(copy, []))
    lines = [f"{len(wrong)} of {layout.count} copies differ; copy {copy}:"]
    lines += [f"  missing {row}" for row in (expects - has).elements()]
    lines += [f"  surplus {row}" for row in (has - expects).elements()]
    return "\n".join([*lines, *([] if len(lines) > 1 else ["  another order"])])


# --- a smaller example ----------------------------------------------------------------------------


def shrunk(sample: Sample, seconds: float = 60) -> Sample:
    """A smaller sample that still differs: fewer queries, events and copies."""
    end = time.monotonic() + seconds
    improved = True
    while improved and time.monotonic() < end:
        improved = False
        for smaller in _smaller(sample):
            if time.monotonic() > end:
                break
            if _differs(smaller):
                sample, improved = smaller, True
                break
    return sample


def _differs(sample: Sample) -> bool:
    try:
        return difference(sample) is not None
    except (TooBig, Refused):
        return False


def _smaller(sample: Sample) -> Iterator[Sample]:
    if sample.road.process:
        yield replace(sample, road=replace(sample.road, process=False))
    if sample.parts > 1:
        yield replace(sample, parts=1)
    if not sample.in_order:
        yield replace(sample, in_order=True)
    names = list(sample.texts)
    if len(names) > 1:
        for size in (len(names) // 2, 1):
            for i in range(0, len(names), size):
                cut = set(names[i : i + size])
                yield replace(sample, texts={n: t for n, t in sample.texts.items() if n not in cut})
    for smaller in sample.case.with_fewer_events():
        yield replace(sample, case=smaller)
    n = sample.layout.count
    for size in (n // 10, n // 4, n // 2, n * 3 // 4, n * 9 // 10, n - 1):
        if 0 < size < n:
            block = size if sample.layout.block == n else sample.layout.block
            yield replace(sample, layout=replace(sample.layout, count=size, block=block))


def page(sample: Sample, told: str) -> str:
    """All that one needs to run a sample again."""
    texts = "\n\n".join(f"# {name}\n{text}" for name, text in sample.texts.items())
    how = f"{sample.name}: {sample.layout}\n{sample.road}"
    how += f", {sample.parts} files, in order: {sample.in_order}"
    return f"{how}\n{texts}\n{events_table(sample.case)}\n{told}\n"


# --- many -----------------------------------------------------------------------------------------


def kind(sample: Sample) -> Iterator[str]:
    """The rows of the table in which a sample counts."""
    yield "own keys" if sample.layout.own_keys else "same keys"
    yield "apart" if sample.layout.separate else "between each other"
    yield f"{sample.road.runtime}{', partial' * sample.road.partial}"
    if len(sample.texts) > 1:
        yield "sets of queries"
    if sample.events >= 200_000:
        yield "200,000 events"
    yield from (f"with {feature}" for feature in sample.case.features)


def samples(seed: str, wishes: Sequence[Wish], first: int = 0) -> Iterator[Sample]:
    """A sample for each wish; cases that do not suit are passed over."""
    number = count(first)
    for wish in wishes:
        for n in number:
            sample = drawn(f"{seed}:{n}", wish)
            if sample is not None and (sample := fitting(sample)) is not None:
                yield sample
                break


def check(sample: Sample, tally: Tallied) -> None:
    """Run a sample, and note whether it differs."""
    told = difference(sample, tally)
    tally.cases.update(kind(sample))
    tally.events += sample.events
    if told is not None:
        small = shrunk(sample)
        tally.wrong.append(page(small, difference(small) or told))


def wish(number: int, events: int, road: Road) -> Wish:
    """The usual mixture: every second has keys of its own, half of these evaluate each key by
    itself, every eighth is a set, every fifth gives partial matches, and every third has mostly
    what compiled evaluators run.
    """
    partial = number % 5 == 4 and road.runtime == "local"
    road = replace(road, partial=partial)
    features = COMPILED if number % 3 == 2 else EVERYTHING
    return Wish(number % 2 == 1, events, number % 8 == 7, number % 4 == 1, features, road)


EACH = 10
"""One case in this number is run as a process."""

TOGETHER = 12
"""Samples that run together on Spark, where a run takes long to start."""


def check_together(numbers: Sequence[int], events: int, road: Road, tally: Tallied) -> None:
    """Run samples in one run, each with streams of its own."""
    drawn_ones = []
    for number in numbers:
        (one,) = samples(f"together:{number}", [wish(number, events, road)])
        drawn_ones.append(_with_own_streams(one, number))
    told = differences(drawn_ones, tally)
    for each in drawn_ones:
        tally.cases.update(kind(each))
        tally.events += each.events
        if each.name in told:
            tally.wrong.append(page(each, told[each.name]))


def _with_own_streams(sample: Sample, number: int) -> Sample:
    """The sample with other streams and names of queries than the others of a run."""
    moved = apart(sample.case, number)
    texts = {
        f"r{number}{name}": text.replace(f"<{NS}stream/", f"<{NS}{number}/stream/")
        for name, text in sample.texts.items()
    }
    return replace(sample, name=f"{sample.name} of {number}", case=moved, texts=texts)


def main() -> int:
    """Run the cases that the arguments ask for."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--events", type=int, default=20_000, help="of each case, about")
    parser.add_argument("--processes", action="store_true", help="a process for each case")
    parser.add_argument("--spark", action="store_true", help="on Spark, several cases in one run")
    parser.add_argument("--thresholds", default="", help="forced, as least, never or random")
    asked = parser.parse_args()
    road = Road("spark" if asked.spark else "local")
    tally, began, step = Tallied(), time.monotonic(), TOGETHER if asked.spark else 1
    for number in range(asked.first, asked.first + asked.cases, step):
        before = len(tally.wrong)
        if asked.spark:
            check_together(range(number, number + step), asked.events, road, tally)
        else:
            words = f"random:{number}" if asked.thresholds == "random" else asked.thresholds
            process = asked.processes or number % EACH == 0
            road = replace(road, thresholds=words, process=process)
            (sample,) = samples(f"copies:{number}", [wish(number, asked.events, road)])
            check(sample, tally)
        for told in tally.wrong[before:]:
            print(f"case {number}\n{told}", flush=True)
        if number % 10 == 9 or asked.spark:
            done, names = number + step - asked.first, len(tally.crossed)
            took = time.monotonic() - began
            print(f"{done} cases in {took:.0f} s, {names} thresholds crossed", flush=True)
    print(tally.table())
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
